"""How many nodes are in which state, for people: each node counts once, by its most important state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from slinky_api.v1alpha1.nodeset.status import NodeSetNodeCounts
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains, registration


def count(snapshot: Snapshot, members: Iterable[Member]) -> NodeSetNodeCounts:
    """Count the nodes of pods."""
    return NodeSetNodeCounts(**Counter(_word(member, snapshot) for member in members))


def _word(member: Member, snapshot: Snapshot) -> str:
    node = member.record
    if not snapshot.slurm.readable:
        return "unknown"
    if node is None or not member.pod.registered:
        return "starting"
    if node.is_down or node.is_not_responding or registration.is_invalid(node):
        return "down"
    if node.is_drain:
        return "draining" if drains.is_busy(node) else "drained"
    if drains.is_busy(node):
        return "allocated"
    return "idle" if node.is_idle else "unknown"
