"""How many nodes of pods are idle, busy or out of service: counted, or counted on from what has changed. Pure.

Each job that starts or ends changes the state of its nodes, so most passes count and do nothing else. Two states of the
same node are then all that they have to look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slinky_api.v1alpha1.nodeset.status import NodeSetNodeCounts, NodeSetStatus
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.slurm_nodes import drains, registration
from slurm_client.models import Node


@dataclass(frozen=True, slots=True)
class Loads:
    """Nodes of the pods that are not being deleted, by their load."""

    words: Mapping[str, int] = field(default_factory=dict)
    """Nodes by the field of the status that counts them."""
    idle: int = 0
    """Nodes that Slurm shows as idle and that accept jobs."""
    allocated: int = 0
    """Nodes that Slurm shows as allocated or mixed."""

    @property
    def counts(self) -> NodeSetNodeCounts:
        """The nodes as the status has them."""
        return NodeSetNodeCounts(**{word: number for word, number in self.words.items() if number})

    def after(self, changed: Iterable[tuple[Pod, Node, Node]]) -> Loads:
        """Count on: records of nodes as they were and as they are, with their pods."""
        words = Counter(self.words)
        idle, allocated = self.idle, self.allocated
        for pod, old, new in changed:
            if pod.deleting:
                continue
            words[word_of(pod, old, readable=True)] -= 1
            words[word_of(pod, new, readable=True)] += 1
            idle += new.is_idle - old.is_idle
            allocated += is_allocated(new) - is_allocated(old)
        return Loads(words, idle, allocated)

    def shown_in(self, status: NodeSetStatus) -> NodeSetStatus:
        """A status with these counts."""
        counts = {
            "slurm_idle": self.idle,
            "number_idle": self.idle,
            "slurm_allocated": self.allocated,
            "number_allocated": self.allocated,
        }
        return status.model_copy(update={**counts, "nodes": self.counts})


def count(nodes: Iterable[tuple[Pod, Node | None]], *, readable: bool) -> Loads:
    """Count the nodes of pods.

    Parameters
    ----------
    nodes
        Pods with the records of their nodes, None where Slurm shows none; those being deleted are left out.
    readable
        Whether Slurm answers.
    """
    found = [(pod, node) for pod, node in nodes if not pod.deleting]
    records = [node for _, node in found if node is not None]
    return Loads(
        Counter(word_of(pod, node, readable=readable) for pod, node in found),
        sum(node.is_idle for node in records),
        sum(map(is_allocated, records)),
    )


def told_by(status: NodeSetStatus) -> Loads:
    """The counts in a status that a pass has made."""
    return Loads(status.nodes.model_dump(), status.slurm_idle, status.slurm_allocated)


def is_allocated(node: Node) -> bool:
    """Whether Slurm shows a node as allocated, in part or whole."""
    return node.state.base in {"ALLOCATED", "MIXED"}


def word_of(pod: Pod, node: Node | None, *, readable: bool) -> str:
    """The field of the status that counts the node of a pod."""
    if not readable:
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
