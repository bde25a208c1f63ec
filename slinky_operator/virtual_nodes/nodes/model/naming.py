"""Which partition gets which Node, where names collide, cannot be names of Nodes, or are too many. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.reconcile.text import joined, named
from slinky_operator.virtual_nodes.node_names import node_name
from slinky_operator.virtual_nodes.nodes.model.node_labels import is_value

MOST: Final = 128
"""Virtual Nodes of a Cluster."""

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


def within_limit(names: Mapping[str, str], existing: Collection[str]) -> NodeNames:
    """Leave out what is more than a Cluster may have: Nodes that exist are kept first, each part in order of name.

    Parameters
    ----------
    names
        By name of a Node that is wanted: its partition.
    existing
        Names of all Nodes of the Cluster. One that is to go takes a place until it has gone: names that change again
        and again would make Nodes without end.
    """
    stay = sorted(names.keys() & set(existing))[:MOST]
    new = sorted(names.keys() - set(existing))[: max(0, MOST - len(existing))]
    kept = {name: names[name] for name in sorted([*stay, *new])}
    left_out = sorted(partition for name, partition in names.items() if name not in kept)
    if not left_out:
        return NodeNames(kept)
    told = f"{len(left_out)} of {len(names)} partitions have no Node ({named(left_out)})"
    why = f"a Cluster has at most {MOST} virtual Nodes, with those that are to go"
    what = "name those that need one in spec.jobs.virtualNodes.partitions"
    return NodeNames(kept, ((Reason.TOO_MANY_PARTITIONS, f"{told}: {why}; {what}"),))
