"""Which partition gets which Node, where names collide or cannot be names of Nodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.reconcile.text import joined
from slinky_operator.virtual_nodes.node_names import node_name
from slinky_operator.virtual_nodes.nodes.model.node_labels import is_value

_NODE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Names of the Nodes of a Cluster."""

    names: Mapping[str, str]
    """By name of the Node: its partition."""
    problems: tuple[tuple[Reason, str], ...] = ()


def names_of(host: str, partitions: Iterable[str], standing: Mapping[str, str]) -> NodeNames:
    """Give each partition a Node.

    Parameters
    ----------
    host
        Middle part of the names.
    partitions
        As Slurm writes them.
    standing
        By name of a Node that exists: its partition. Of several that want one name, it keeps it; else the first by name
        gets it.
    """
    names: dict[str, str] = {}
    second, unfit = [], []
    for partition in sorted(partitions):
        name = node_name(host, partition)
        if not _NODE.fullmatch(name) or not is_value(partition):
            unfit.append(partition)
            continue
        other = names.setdefault(name, partition)
        if other == partition:
            continue
        first = standing.get(name)
        kept, lost = (partition, other) if first == partition else (other, partition)
        names[name] = kept
        second.append(f"{lost} would be {name}, as {kept} is")
    problems = []
    if second:
        problems.append((Reason.NODE_NAME_TAKEN, f"two partitions have one name for a Node: {joined(second)}"))
    if unfit:
        told = "cannot be part of the name of a Node, or be a label: letters, digits, '-', '_' and '.', at most 63"
        problems.append((Reason.NODE_NAME_TAKEN, f"{joined(unfit)} {told}"))
    return NodeNames(names, tuple(problems))
