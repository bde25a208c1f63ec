"""Metrics of the process: controllers, leadership, event loop; with those of calls and changes in one registry."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from slinky_operator.metrics.calls import KubernetesCalls, SlurmCalls
from slinky_operator.metrics.changes import Changes
from slinky_operator.metrics.names import PREFIX


class Metrics:
    """The operator's metrics in one registry.

    Parameters
    ----------
    registry
        Where they are registered; a new one if absent, so that a test process can run several operators.
    causes
        All causes of drains.
    without_drain
        Causes for which pods are deleted that were not drained.
    ends
        All reasons with which jobs of SlurmJobs end.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        causes: Iterable[str] = (),
        without_drain: Iterable[str] = (),
        ends: Iterable[str] = (),
    ) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self.kubernetes_calls = KubernetesCalls(self.registry)
        self.slurm_calls = SlurmCalls(self.registry)
        self.changes = Changes(self.registry, causes=causes, without_drain=without_drain, ends=ends)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._reconciles = Counter(
            "reconcile", "Passes by outcome.", ["controller", "outcome"], namespace=PREFIX, registry=self.registry
        )
        self._reconcile_seconds = Histogram(
            "reconcile_duration_seconds",
            "Duration of a pass.",
            ["controller"],
            namespace=PREFIX,
            registry=self.registry,
            buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300),
        )
        self._queue_depth = Gauge(
            "queue_depth", "Keys that wait for a worker.", ["controller"], namespace=PREFIX, registry=self.registry
        )
        self._queue_seconds = Histogram(
            "queue_wait_seconds",
            "Time a key has waited for a worker.",
            ["controller"],
            namespace=PREFIX,
            registry=self.registry,
            buckets=(0.001, 0.01, 0.1, 0.5, 1, 5, 10, 60),
        )
        self._retries = Counter(
            "queue_retries", "Keys put back after a failure.", ["controller"], namespace=PREFIX, registry=self.registry
        )
        self._busy = Gauge("workers_busy", "Busy workers.", ["controller"], namespace=PREFIX, registry=self.registry)
        self.leader = Gauge("leader", "1 while this process leads.", namespace=PREFIX, registry=self.registry)
        self.kubelet_certificate = Gauge(
            "virtual_nodes_certificate_end_timestamp_seconds",
            "When the certificate of the kubelet API of virtual Nodes ends, 0 without one.",
            namespace=PREFIX,
            registry=self.registry,
        )
        self.loop_lag = Histogram(
            "event_loop_lag_seconds",
            "Delay of the event loop.",
            namespace=PREFIX,
            registry=self.registry,
            buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
        )

    def controller(self, name: str) -> ControllerFigures:
        """Metrics of one controller; they start at zero, so that rates are known from the first event on."""
        for outcome in ("ok", "requeue", "retry", "error"):
            self._reconciles.labels(name, outcome)
        return ControllerFigures(
            name,
            self._reconciles,
            self._reconcile_seconds,
            self._queue_depth,
            self._queue_seconds,
            self._retries,
            self._busy,
        )


class ControllerFigures:
    """Metrics of one controller and its queue."""

    def __init__(
        self,
        name: str,
        reconciles: Counter,
        seconds: Histogram,
        depth: Gauge,
        waiting: Histogram,
        retries: Counter,
        busy: Gauge,
    ) -> None:
        self._name = name
        self._reconciles = reconciles
        self._seconds = seconds.labels(name)
        self._depth = depth.labels(name)
        self._waiting = waiting.labels(name)
        self._retries = retries.labels(name)
        self._busy = busy.labels(name)

    def depth(self, waiting: int) -> None:
        """Record how many keys wait for a worker."""
        self._depth.set(waiting)

    def waited(self, seconds: float) -> None:
        """Record how many seconds a key has waited."""
        self._waiting.observe(seconds)

    def retried(self) -> None:
        """Count a retry."""
        self._retries.inc()

    def reconciled(self, outcome: str, seconds: float) -> None:
        """Count a pass."""
        self._reconciles.labels(self._name, outcome).inc()
        self._seconds.observe(seconds)

    def workers(self, busy: int) -> None:
        """Record how many workers are busy."""
        self._busy.set(busy)
