"""What exists, and what is still to be asked before anything is decided. Pure.

A pass goes survey, ask, decide: `controller` asks what a survey needs to know, and surveys again with the answers;
then `decide` calls each rule once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_operator.nodeset.disruption import repairs, rolling_update
from slinky_operator.nodeset.disruption.repairs import UnregisteredPod
from slinky_operator.nodeset.drain import drain_causes
from slinky_operator.nodeset.health import node_states
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods import pod_names
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.layout import Layout, lay_out
from slinky_operator.nodeset.slurm_nodes import drains, identity
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Node

MOST: Final = 8
"""Pods or nodes looked up in one pass."""

UNHEARD_S: Final = 10.0
"""Seconds for which a slurmd has run without its registration having been seen, after which its node is asked for."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What exists, before anything is decided."""

    snapshot: Snapshot
    now: datetime
    live: tuple[Member, ...]
    """The pods that are neither being deleted nor ended."""
    layout: Layout
    orphans: tuple[Node, ...]
    """Records of this NodeSet without a living pod of that name, those that are cleaned up in this pass."""
    unregistered: Mapping[str, UnregisteredPod]
    """Pods whose slurmd runs and has not registered, by name."""
    suspects: tuple[str, ...]
    """Nodes that answer Slurm and have no pod in the caches: the API server is asked for their pods."""
    needs_jobs: bool
    """Whether the jobs must be queried before anything is decided."""
    unheard: tuple[str, ...] = ()
    """Nodes whose cached records are those of an earlier pod although a slurmd runs. A list of what has changed may
    lack a registration after which all else of the node is as before: seen for three minutes with 24.11 and 26.05."""

    @property
    def reusable_names(self) -> frozenset[str]:
        """Nodes without a pod whose names may be used again: the jobs must have been queried since they had none.

        A suspended job does not show on its node.
        """
        return _reusable_names(self.layout, self.orphans)


def survey(snapshot: Snapshot, now: datetime) -> Survey:
    """Return what exists.

    Parameters
    ----------
    snapshot
        The snapshot.
    now
        The time; timezone-aware.
    """
    live = tuple(
        member for member in snapshot.members if not member.pod.deleting and member.pod.slurmd is not Slurmd.ENDED
    )
    layout = lay_out(snapshot, live)
    found = _orphans(snapshot)
    if not layout.missing and more_to_come(snapshot.pods, now) is not None:
        # The others will follow within seconds, and are cleaned up with them in the same few calls.
        found = [node for node in found if drains.is_busy(node)]
    orphans, unregistered = tuple(found), repairs.waiting(snapshot, live, layout)
    may_ask = may_decide(snapshot) and snapshot.slurm.readable and snapshot.slurm.jobs is None
    needs_jobs = may_ask and (
        _needs_jobs(snapshot, live, layout, orphans) or repairs.needs_jobs(snapshot, unregistered.values(), now)
    )
    suspects, unheard = _suspects(snapshot), _unheard(live, now)
    return Survey(snapshot, now, live, layout, orphans, unregistered, suspects, needs_jobs, unheard)


def has_finalizer(snapshot: Snapshot) -> bool:
    """Whether the NodeSet is kept until its pods are gone; one that is being deleted can get no finalizer."""
    nodeset = snapshot.nodeset
    return nodeset.deleting or labels.FINALIZER_NODESET_DRAIN in nodeset.metadata.finalizers


def may_decide(snapshot: Snapshot) -> bool:
    """Whether anything may be done about pods.

    The status of the first pass fixes the mode: before that, no pod is created that another mode would not recognize.
    """
    return has_finalizer(snapshot) and (snapshot.nodeset.deleting or snapshot.mode_is_fixed)


def _suspects(snapshot: Snapshot) -> tuple[str, ...]:
    """Nodes that answer Slurm, belong to the NodeSet, and have no pod in the caches; the first of them."""
    standing = {pod.node_name for pod in snapshot.pods}
    found = [
        node.name
        for node in snapshot.slurm.nodes.values()
        if node.name not in standing
        and node.name not in snapshot.ended
        and node.name not in snapshot.names_of_other_nodesets
        and not node.is_down
        and not node.is_not_responding
        and identity.is_tagged(node, snapshot.owner)
        and pod_names.pod_name(snapshot.nodeset, node.name) not in snapshot.foreign_pods
    ]
    return tuple(sorted(found)[:MOST])


def _unheard(live: Iterable[Member], now: datetime) -> tuple[str, ...]:
    found = [
        member.pod.node_name
        for member in live
        if member.ownership is RecordOwnership.PREDECESSOR
        and member.pod.slurmd is Slurmd.RUNNING
        and member.pod.slurmd_started_at is not None
        and (now - member.pod.slurmd_started_at).total_seconds() >= UNHEARD_S
    ]
    # In turns: a few slurmds that never register must not keep others from being asked for.
    first = int(now.timestamp() // UNHEARD_S) * MOST % max(1, len(found))
    found.sort()
    return tuple((found[first:] + found[:first])[:MOST])


def _orphans(snapshot: Snapshot) -> list[Node]:
    standing = {pod.node_name for pod in snapshot.pods if pod.slurmd is not Slurmd.ENDED}
    return [
        node
        for node in snapshot.slurm.nodes.values()
        if node.name not in standing
        and node.name not in snapshot.stripped
        # A NodeSet that was force-deleted and recreated has the tag of the former one, whose pods may still run.
        and node.name not in snapshot.names_of_other_nodesets
        and pod_names.pod_name(snapshot.nodeset, node.name) not in snapshot.foreign_pods
        and identity.is_tagged(node, snapshot.owner)
    ]


def _reusable_names(layout: Layout, orphans: tuple[Node, ...]) -> frozenset[str]:
    return frozenset(node.name for node in orphans if layout.missing)


def _needs_jobs(snapshot: Snapshot, live: tuple[Member, ...], layout: Layout, orphans: tuple[Node, ...]) -> bool:
    if layout.excess or layout.misplaced:
        return True
    if any(not drains.is_foreign(node) or drains.is_busy(node) for node in orphans):
        return True
    health = snapshot.nodeset.spec.health
    if health is not None and health.pod_conditions is not None and any(map(node_states.is_open, live)):
        return True
    if _reusable_names(layout, orphans):
        # A suspended job does not show in the state of its node.
        return True
    for member in live:
        is_ours = member.record is not None and drains.is_ours(member.record)
        if is_ours or drain_causes.cordons(snapshot, member):
            return True
    known = pod_state.known(live, snapshot.owner)
    return bool(rolling_update.outdated(live, snapshot.nodeset, snapshot.revision, known))


def more_to_come(pods: Iterable[Pod], now: datetime) -> float | None:
    """Seconds within which the last pod being deleted must be gone; None if there is none, or all are late.

    A pod's time is its grace period: a pod on an unreachable Node is not waited for any longer.
    """
    left = [(pod.gone_by - now).total_seconds() for pod in pods if pod.deleting and pod.gone_by is not None]
    return max((seconds for seconds in left if seconds > 0), default=None)
