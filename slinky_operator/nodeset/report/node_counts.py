"""How many nodes are in which state, for people: each node counts once, by what matters most about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from slinky_api.v1alpha1.nodeset import NodeSetNodeCounts
from slinky_operator.nodeset.model.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains, registration


def count(snapshot: Snapshot, pods: Iterable[Pod]) -> NodeSetNodeCounts:
    """Count the nodes of pods."""
    return NodeSetNodeCounts(**Counter(_word(pod, snapshot) for pod in pods))


def _word(pod: Pod, snapshot: Snapshot) -> str:
    node = snapshot.slurm.nodes.get(pod.node_name)
    if not snapshot.slurm.readable:
        return "unknown"
    if node is None or not pod.registered:
        return "starting"
    if node.is_down or node.is_not_responding or registration.is_invalid(node):
        return "down"
    if node.is_drain:
        return "draining" if drains.is_busy(node) else "drained"
    if drains.is_busy(node):
        return "allocated"
    return "idle" if node.is_idle else "unknown"
