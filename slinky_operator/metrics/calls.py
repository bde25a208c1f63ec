"""Calls to the API server and to slurmrestd: how many, how they ended, how long they took.

Labels name operations and outcomes, never an object: their number is bounded by the code.
"""

from __future__ import annotations

from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from typing_extensions import override

from slinky_operator.metrics.names import PREFIX
from slurm_client.hooks import Attempt, Hook, Outcome

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds."""

OTHER: Final = "other"
"""An operation that Slurm's specification does not name."""


class KubernetesCalls:
    """Requests to the API server; called by `kube.client.KubeClient` after each."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "kubernetes_requests",
            "Requests to the API server by verb, resource and outcome; writes held back count as Fenced.",
            ["verb", "resource", "outcome"],
            namespace=PREFIX,
            registry=registry,
        )
        self._seconds = Histogram(
            "kubernetes_request_duration_seconds",
            "Duration of requests to the API server, watches excepted.",
            ["verb"],
            namespace=PREFIX,
            registry=registry,
            buckets=BUCKETS,
        )

    def __call__(self, verb: str, resource: str, outcome: str, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(verb, resource, outcome).inc()
        self._seconds.labels(verb).observe(seconds)


class SlurmCalls(Hook):
    """Requests to slurmrestd; a hook of every client in the client map."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "slurm_requests",
            "Requests to slurmrestd by operation of its specification, HTTP status (if any) and result.",
            ["operation", "code", "result"],
            namespace=PREFIX,
            registry=registry,
        )
        self._seconds = Histogram(
            "slurm_request_duration_seconds",
            "Duration of requests to slurmrestd, from the first byte to the last.",
            ["operation"],
            namespace=PREFIX,
            registry=registry,
            buckets=BUCKETS,
        )
        self._bytes = Counter(
            "slurm_received_bytes", "Bytes of slurmrestd's answers.", namespace=PREFIX, registry=registry
        )

    @override
    def after(self, attempt: Attempt, outcome: Outcome, begun: Any) -> None:
        operation = attempt.operation or OTHER
        code = "" if outcome.status is None else str(outcome.status)
        self._requests.labels(operation, code, outcome.result).inc()
        self._seconds.labels(operation).observe(outcome.seconds)
        self._bytes.inc(outcome.bytes_received)
