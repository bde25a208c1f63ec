"""Nodes are counted once each."""

from __future__ import annotations

from slinky_operator.cluster.parts.nodes.counting import count_nodes
from slurm_client.models import Node
from slurm_client.models.node import NodeState


def node(*words: str) -> Node:
    return Node(name="n", state=NodeState.from_words(words))


def test_each_node_counts_once() -> None:
    found = count_nodes(
        [
            node("IDLE"),
            node("IDLE", "DRAIN"),
            node("MIXED", "DRAIN"),
            node("DOWN", "DRAIN", "NOT_RESPONDING"),
            node("IDLE", "DRAIN", "INVALID_REG"),
            node("DOWN", "NOT_RESPONDING"),
            node("ALLOCATED"),
            node("FUTURE"),
        ]
    )
    counts = found.model_dump()
    assert (found.idle, found.drain, found.invalid, found.down) == (1, 3, 1, 1)
    assert counts.pop("total") == 8 == sum(counts.values())
