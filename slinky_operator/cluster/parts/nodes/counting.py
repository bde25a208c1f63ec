"""How many nodes Slurm has, by state, for the status of a Cluster. Pure.

Each is counted once, so that the numbers add up to the total, and as `sinfo` shows it: one with an invalid registration
is `invalid` whatever else it is, a drained one is `drain` whether it is idle, busy or down.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from slinky_api.v1alpha1.cluster.status import NodeCounts
from slurm_client.models import Node

INVALID: Final = "INVALID_REG"
"""Flag of a node whose slurmd has registered with less than its record contains."""


def count_nodes(nodes: Iterable[Node]) -> NodeCounts:
    """Count nodes, each in one state."""
    counts = dict.fromkeys(("total", "idle", "allocated", "mixed", "down", "drain", "invalid", "other"), 0)
    for node in nodes:
        counts["total"] += 1
        counts[_column(node)] += 1
    return NodeCounts(**counts)


def _column(node: Node) -> str:
    flags = node.state.flags
    if INVALID in flags or node.state.base == "INVALID":
        return "invalid"
    if node.is_drain:
        return "drain"
    base = node.state.base.lower()
    return base if base in {"idle", "allocated", "mixed", "down"} else "other"
