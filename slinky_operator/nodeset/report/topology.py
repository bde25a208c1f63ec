"""Nodes without a place in a topology of `spec.topology`: which labels their Kubernetes Nodes lack.

Slurm starts no job on a node without a place in the topology of its partition. That is for one that has registered;
what Slurm refuses is an Event of the write (`execute.slurm_writes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.report.health import Told
from slinky_operator.nodeset.slurm_nodes import topology
from slinky_operator.reconcile.text import joined, named

REASONS: Final = frozenset({Reason.TOPOLOGY_LABELS_MISSING})
"""Troubles with which a NodeSet is Ready: its nodes serve, if not in each topology."""

_UNWATCHED: Final = "spec.topology has no effect: the operator runs with --no-watch-nodes"


def told(snapshot: Snapshot) -> Iterable[Told]:
    """What there is to report."""
    wanted = snapshot.nodeset.spec.topology
    if not wanted or snapshot.nodeset.deleting:
        return
    if snapshot.hosts is None:
        yield Reason.NODES_NOT_WATCHED, _UNWATCHED, "", frozenset()
        return
    lacking: dict[tuple[str, str], set[str]] = {}
    without: set[str] = set()
    for member in snapshot.members:
        host = snapshot.host_of(member.pod)
        if member.record is None or host is None or host.topology:
            continue
        for one in wanted:
            for label in topology.missing(host.labels, one):
                lacking.setdefault((one.name, label), set()).add(host.name)
                without.add(member.pod.node_name)
    if lacking:
        texts = [
            f"{named(sorted(hosts))} without the label {label} of topology {name}"
            for (name, label), hosts in sorted(lacking.items())
        ]
        text = f"nodes have no place in a topology of spec.topology, and get no jobs there. Nodes: {joined(texts)}"
        yield (
            Reason.TOPOLOGY_LABELS_MISSING,
            text,
            f"no place in the topology: {named(sorted(without), 2)}",
            frozenset(without),
        )
