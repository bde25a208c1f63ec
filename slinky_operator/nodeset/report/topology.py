"""Nodes without a place in a topology of `spec.topology`, by the labels that their Kubernetes Nodes lack.

Slurm starts no job on a node without a place in the topology of its partition. That is for one that has registered.
Places and features that Slurm refuses are shown, too; the Event is that of the write (`execute.slurm_writes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.report.health import Told
from slinky_operator.nodeset.slurm_nodes import kubernetes_features, topology
from slinky_operator.reconcile.text import joined, named

REASONS: Final = frozenset({Reason.TOPOLOGY_LABELS_MISSING, Reason.TRAITS_REFUSED})
"""Troubles with which a NodeSet is Ready: its nodes serve, if not in each topology."""

_UNWATCHED: Final = "spec.topology has no effect: the operator runs with --no-watch-nodes"


def told(snapshot: Snapshot) -> Iterable[Told]:
    """What there is to report."""
    wanted = snapshot.nodeset.spec.topology
    if snapshot.nodeset.deleting:
        return
    yield from _refused(snapshot)
    if not wanted:
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


def _refused(snapshot: Snapshot) -> Iterable[Told]:
    """Places and features that Slurm does not take; the nodes keep what they had."""
    words = kubernetes_features.words_of(snapshot.refused_traits)
    if not words:
        return
    names = frozenset(name for name, one in snapshot.refused_traits.items() if one.why)
    text = (
        f"Slurm refuses {joined(words)}. The nodes keep what they had. Add the place to topology.yaml of the Cluster, "
        "or correct labels and annotations of their Kubernetes Nodes"
    )
    yield Reason.TRAITS_REFUSED, text, f"Slurm refuses places or features: {named(sorted(names), 2)}", names
