"""Which NodeSets are in the configuration, and their finalizers. Pure.

The operator's finalizer is set on a NodeSet before it is rendered, and removed when a configuration without it is live.
"""

from __future__ import annotations

from collections.abc import Collection

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.actions import SetFinalizer
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.kube.resources import NODESETS
from slinky_operator.slurm.conf import NodeSetConf, Parsed, Rendered


def members(snapshot: Snapshot, running: Collection[str]) -> tuple[list[NodeSet], list[SetFinalizer]]:
    """NodeSets to include in the configuration, and the finalizers they need first.

    Parameters
    ----------
    running
        Names of those in what slurmctld runs.
    """
    found: list[NodeSet] = []
    finalizers: list[SetFinalizer] = []
    for node_set, raw in snapshot.node_sets:
        held = labels.FINALIZER_NODESET_CONFIG in node_set.metadata.finalizers
        if node_set.deleting:
            # It stays as long as it may have pods; one that was never in the configuration has none.
            draining = labels.FINALIZER_NODESET_DRAIN in node_set.metadata.finalizers
            if draining and node_set.name in running:
                found.append(node_set)
            continue
        found.append(node_set)
        if not held:
            finalizers.append(SetFinalizer(NODESETS, raw, labels.FINALIZER_NODESET_CONFIG, present=True))
    return found, finalizers


def leaving(snapshot: Snapshot, rendered: Rendered) -> list[SetFinalizer]:
    """Finalizers to remove: their NodeSets are being deleted, and the live configuration does not contain them."""
    return [
        SetFinalizer(NODESETS, raw, labels.FINALIZER_NODESET_CONFIG, present=False)
        for node_set, raw in snapshot.node_sets
        if node_set.deleting
        and labels.FINALIZER_NODESET_CONFIG in node_set.metadata.finalizers
        and node_set.name not in rendered.node_sets
    ]


def unreadable(snapshot: Snapshot, running: Parsed) -> list[NodeSetConf]:
    """NodeSets whose objects can no longer be parsed: their running part stays unchanged."""
    lines, names = running.by_node_set, (error.name for _, error in snapshot.invalid_node_sets)
    return [NodeSetConf(name, kept=lines[name]) for name in names if name in lines]
