"""What the operator has done: pods made and deleted, drains, preflights, configurations, Events.

Counters of the process, without names of objects: what a single NodeSet or Cluster is like now is in `objects`. They
begin at zero for every cause, so that the first deletion already is an increase.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from slinky_operator.metrics.job_changes import JobChanges
from slinky_operator.metrics.names import PREFIX

SEVERAL: Final = "several"
"""The cause of a drain with more than one: a combination for each would be a label of the users' making."""

UNKNOWN: Final = "unknown"
"""The cause of a drain whose reason names none that this version knows."""

DELETED: Final = "deleted"
UNDRAINED: Final = "undrained"

UP: Final = "up"
DOWN: Final = "down"

PREFLIGHT_OUTCOMES: Final = ("passed", "refused", "undecided")

MOST_PREFLIGHTS: Final = 1_000
"""Preflights, and configurations, whose start is remembered."""

_LONG: Final = (1, 10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)
"""Seconds: a drain lasts as long as the longest job on its node."""


def label_of(causes: Collection[str]) -> str:
    """One label for the causes of a drain."""
    if not causes:
        return UNKNOWN
    return next(iter(causes)) if len(causes) == 1 else SEVERAL


class Changes:
    """Counters of what the operator has done.

    Parameters
    ----------
    registry
        Where they are registered; a new one if absent.
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
        registry = registry if registry is not None else CollectorRegistry()
        self.jobs = JobChanges(registry, ends=ends)
        """The same of SlurmJobs."""
        self._created = Counter("pods_created", "slurmd pods created.", namespace=PREFIX, registry=registry)
        self._deleted = Counter(
            "pods_deleted", "slurmd pods deleted, by cause.", ["cause"], namespace=PREFIX, registry=registry
        )
        self._started = Counter(
            "drains_started", "Slurm nodes drained, by cause.", ["cause"], namespace=PREFIX, registry=registry
        )
        self._overdue = Counter(
            "drains_timed_out",
            "Drains that reached spec.drain.timeout, counted each time that spec.drain.onTimeout was applied.",
            namespace=PREFIX,
            registry=registry,
        )
        self._ended = Histogram(
            "drain_duration_seconds",
            "Drains that ended, by cause and by how: the pod was deleted, or the node resumed. The sum is the time for "
            "which nodes took no new jobs.",
            ["cause", "outcome"],
            namespace=PREFIX,
            registry=registry,
            buckets=_LONG,
        )
        self._scaled = Counter(
            "autoscaling_replicas_changed",
            "Replicas that autoscaling has added to NodeSets, or taken away, by direction.",
            ["direction"],
            namespace=PREFIX,
            registry=registry,
        )
        for direction in (UP, DOWN):
            # There before the first change: a rate sees a counter that begins, but not one that comes.
            _ = self._scaled.labels(direction)
        self.leases_renewed = Gauge(
            "virtual_nodes_leases_renewed_timestamp_seconds",
            "When the Leases of all virtual Nodes were last renewed, as Unix time; 0 in a process that does not lead.",
            namespace=PREFIX,
            registry=registry,
        )
        """When the Leases of all virtual Nodes were last renewed."""
        self._preflights = Histogram(
            "preflight_duration_seconds",
            "Preflights of configurations and images that ended, by outcome.",
            ["outcome"],
            namespace=PREFIX,
            registry=registry,
            buckets=(1, 2.5, 5, 10, 20, 40, 60, 120, 300),
        )
        self._applied = Histogram(
            "config_rollout_duration_seconds",
            "Configurations that daemons have come to run, and how long after the spec described them; those of new "
            "Clusters are not counted.",
            namespace=PREFIX,
            registry=registry,
            buckets=_LONG,
        )
        self._events = Counter(
            "events",
            "What Events report, by kind of object, type and reason; those that were dropped for being too many too.",
            ["kind", "type", "reason"],
            namespace=PREFIX,
            registry=registry,
        )
        self._begun: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._described: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """Hash of the configuration that the spec of a Cluster describes and its daemons do not run, and since when."""
        for cause in (*causes, SEVERAL, UNKNOWN):
            self._started.labels(cause)
            for outcome in (DELETED, UNDRAINED):
                self._ended.labels(cause, outcome)
            self._deleted.labels(cause)
        for direction in (UP, DOWN):
            self._scaled.labels(direction)
        for outcome in PREFLIGHT_OUTCOMES:
            self._preflights.labels(outcome)
        for cause in without_drain:
            self._deleted.labels(cause)

    def pods_created(self, count: int) -> None:
        """Count pods that the API server has taken."""
        self._created.inc(count)

    def pod_deleted(self, cause: str) -> None:
        """Count a pod that the API server has deleted."""
        self._deleted.labels(cause).inc()

    def drains_started(self, causes: Collection[str], count: int) -> None:
        """Count nodes that Slurm has drained."""
        self._started.labels(label_of(causes)).inc(count)

    def drains_timed_out(self, count: int) -> None:
        """Count nodes whose drain has lasted too long."""
        self._overdue.inc(count)

    def drain_ended(self, causes: Collection[str], outcome: str, seconds: float) -> None:
        """Count a drain that is over, with its duration."""
        self._ended.labels(label_of(causes), outcome).observe(max(0.0, seconds))

    def replicas_changed(self, before: int, after: int) -> None:
        """Count replicas that autoscaling has set."""
        self._scaled.labels(UP if after > before else DOWN).inc(abs(after - before))

    def preflight_started(self, cluster: str, name: str, at: float) -> None:
        """Remember when a preflight began, in monotonic seconds; a repeated start changes nothing."""
        self._begun.setdefault((cluster, name), at)
        while len(self._begun) > MOST_PREFLIGHTS:
            self._begun.popitem(last=False)

    def preflight_ended(self, cluster: str, name: str, outcome: str, at: float) -> None:
        """Count a preflight; one that an earlier process began has no duration and is not counted."""
        begun = self._begun.pop((cluster, name), None)
        if begun is not None:
            self._preflights.labels(outcome).observe(at - begun)

    def configuration(self, cluster: str, described: str, runs: str, at: float) -> None:
        """Note which configuration the spec describes and which the daemons run, by their hashes, at each pass."""
        known = self._described.get(cluster)
        if not runs or not described:
            return
        if described == runs:
            _ = self._described.pop(cluster, None)
            if known is not None and known[0] == runs:
                self._applied.observe(at - known[1])
        elif known is None or known[0] != described:
            self._described[cluster] = described, at
            while len(self._described) > MOST_PREFLIGHTS:
                self._described.popitem(last=False)

    def event(self, kind: str, severity: str, reason: str) -> None:
        """Count what an Event reports."""
        self._events.labels(kind, severity, reason).inc()
