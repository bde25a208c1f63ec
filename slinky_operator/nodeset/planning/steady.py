"""Whether a pass can be left out: since one that planned nothing, only the load of nodes has changed. Pure.

Each job that starts or ends changes the state of its nodes. On a busy site nearly all passes are for that, and plan
nothing: the status gets other counts, and that is all. `is_like` compares what a plan reads; anything that it does not
know to be harmless makes a whole pass. The plan's own time stands: a pass that it asked for is a whole one.

A pass that is left out is followed in its turn: the next one is compared with it, and looks only at what has changed
since then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset.health import PodConditions
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.nodeset.model import loads
from slinky_operator.nodeset.model.loads import Loads
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.planning.plan import Plan
from slinky_operator.nodeset.planning.survey import Survey
from slurm_client.models import Node

LONGEST: Final = 30.0
"""Seconds after which a pass is a whole one: texts that grow old with time are written again."""

LOADED: Final = frozenset({"IDLE", "MIXED", "ALLOCATED"})
"""Base states that differ by the load of a node."""

WORKING: Final = frozenset({"MIXED", "ALLOCATED", "COMPLETING", "PLANNED"})
"""Flags that come and go with jobs."""

LOADS: Final = ("state", "alloc_cpus", "alloc_idle_cpus", "alloc_memory_mib", "gres_used", "tres_used", "owner")
"""Fields of a record that change with jobs."""

COUNTS: Final = frozenset({"nodes", "slurm_idle", "slurm_allocated", "number_idle", "number_allocated"})
"""Fields of the status that change with them."""

_STATUS: Final = tuple(name for name in NodeSetStatus.model_fields if name not in COUNTS)

_READ_OTHERWISE: Final = frozenset({"nodeset", "cluster", "slurm", "pods", "hosts"})
"""Fields of a snapshot that `is_like` compares in ways of their own."""

_NO_MATTER: Final = frozenset({"state_writes", "pods_in_sight"})
"""Budgets: of writes that a plan asks time for, and of questions."""

_PLAIN: Final = tuple(
    one.name for one in fields(Snapshot) if one.name not in _READ_OTHERWISE and one.name not in _NO_MATTER
)


@dataclass(frozen=True, slots=True)
class Steady:
    """A pass that planned nothing, and asked nobody."""

    snapshot: Snapshot
    until: datetime
    """When the next pass is a whole one."""
    wakes_at: datetime | None
    """When the plan wanted a pass although nothing happens; None for never."""
    loads: Loads
    """How many nodes have which load."""
    pods: Mapping[str, Pod]
    """The pods by their nodes."""

    def wakes_in(self, now: datetime) -> float | None:
        """Seconds until the pass that the plan asked for."""
        return None if self.wakes_at is None else max((self.wakes_at - now).total_seconds(), 0.0)


def steady(seen: Survey, planned: Plan, reported: NodeSetStatus) -> Steady | None:
    """Return the pass, if others like it can be left out.

    Parameters
    ----------
    seen
        The last survey of the pass.
    planned
        Its plan.
    reported
        The status that it wrote, or found written.
    """
    snapshot = seen.snapshot
    if not _says_the_same(snapshot.nodeset.status, reported):
        # The cache does not show it yet.
        return None
    health = snapshot.nodeset.spec.health
    if planned.actions or planned.decisions.waiting_for_slurm or seen.suspects or seen.needs_jobs:
        return None
    if not snapshot.slurm.readable or snapshot.slurm.jobs is not None or snapshot.nodeset.deleting:
        return None
    if health is not None and health.pod_conditions is PodConditions.ALL:
        # What changes with each job is written on pods.
        return None
    wakes_at = None if planned.wake_up is None else seen.now + timedelta(seconds=planned.wake_up)
    latest = seen.now + timedelta(seconds=LONGEST)
    until = latest if wakes_at is None else min(wakes_at, latest)
    pods = {pod.node_name: pod for pod in snapshot.pods}
    if len(pods) < len(snapshot.pods):
        # Two pods say that they have the same node: which one it is about is for the rules to find out.
        return None
    return Steady(snapshot, until, wakes_at, loads.told_by(reported), pods)


def goes_on(before: Steady, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pass over a snapshot would plan nothing, as the one before did.

    Parameters
    ----------
    before
        The last whole pass.
    snapshot
        What there is now; its jobs have not been asked for.
    now
        The time; timezone-aware.
    """
    return before.snapshot.nodeset.uid == snapshot.nodeset.uid and now < before.until and is_like(before, snapshot)


def follow(before: Steady, snapshot: Snapshot) -> Steady:
    """Return a pass that was left out, for the next one; for `goes_on` it is like the one before."""
    then = before.snapshot
    if then.pods is not snapshot.pods:
        other = [new for old, new in zip(then.pods, snapshot.pods, strict=True) if old is not new]
        before = replace(before, pods={**before.pods, **{pod.node_name: pod for pod in other}})
    changed = _changed(then.slurm, snapshot.slurm)
    if changed:
        records = [(before.pods[new.name], old, new) for old, new in changed if new.name in before.pods]
        before = replace(before, loads=before.loads.after(records))
    return replace(before, snapshot=snapshot)


def is_like(before: Steady, now: Snapshot) -> bool:
    """Whether two snapshots differ in nothing but the load of nodes with a registered pod."""
    then = before.snapshot
    return (
        # The caches give the same object as long as nothing has changed.
        (then.pods is now.pods or _pods_are_like(then.pods, now.pods))
        and then.hosts is now.hosts
        and _slurm_is_like(before, now.slurm)
        and all(getattr(then, name) == getattr(now, name) for name in _PLAIN)
        and _timeless(then.cluster) == _timeless(now.cluster)
        and _nodeset_is_like(then.nodeset, now.nodeset)
    )


def _nodeset_is_like(old: NodeSet, new: NodeSet) -> bool:
    if old is new:
        return True
    version = {"resource_version": new.metadata.resource_version}
    return (
        old.metadata.model_copy(update=version) == new.metadata
        and old.spec == new.spec
        and _says_the_same(old.status, new.status)
    )


def _says_the_same(old: NodeSetStatus, new: NodeSetStatus) -> bool:
    """Whether two statuses differ in nothing but the counts of nodes."""
    return all(getattr(old, name) == getattr(new, name) for name in _STATUS)


def _timeless(cluster: ClusterFacts) -> ClusterFacts:
    """Without what counts down; the plan asked for a pass at its end."""
    return replace(cluster, maintenance_changes_in=None)


def _pods_are_like(then: Sequence[Pod], now: Sequence[Pod]) -> bool:
    return len(then) == len(now) and all(map(pod_facts.are_alike, then, now))


def _changed(then: SlurmFacts, now: SlurmFacts) -> Sequence[tuple[Node, Node]]:
    """The records that are others, as they were and as they are; both have the same names."""
    if then.nodes is now.nodes:
        return ()
    return [(old, new) for name, new in now.nodes.items() if (old := then.nodes[name]) is not new]


def _slurm_is_like(before: Steady, now: SlurmFacts) -> bool:
    then = before.snapshot.slurm
    if not now.readable or now.jobs is not None:
        return False
    if then.nodes is not now.nodes and then.nodes.keys() != now.nodes.keys():
        return False
    return _is_load(_changed(then, now), before.pods)


def _is_load(changed: Sequence[tuple[Node, Node]], pods: Mapping[str, Pod]) -> bool:
    """Whether records differ by load alone, and all are those of pods that have registered."""
    return all(
        (pod := pods.get(new.name)) is not None
        and pod.registered
        and {old.state.base, new.state.base} <= LOADED
        and "DRAIN" not in new.state.flags
        and old.state.flags - WORKING == new.state.flags - WORKING
        and replace(old, **{name: getattr(new, name) for name in LOADS}) == new
        for old, new in changed
    )
