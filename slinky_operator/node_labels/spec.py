"""What the controller of Node labels exports to the process; it runs only if the settings name a ConfigMap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.kube.resources import NODES, PODS
from slinky_operator.node_labels.config_map import LabelConfig
from slinky_operator.node_labels.controller import NodeLabelsReconciler
from slinky_operator.node_labels.slurm_nodes import SlurmNodes
from slinky_operator.node_labels.triggers import NodeLabelsTriggers
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_SLURMD_PODS, OWNERS, PODS_OF_CLUSTERS, node_pruner
from slinky_operator.reconcile.cached.kept_fields import prune_pod
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import ALL, Settings

WORKERS: Final = 4
"""Nodes written concurrently."""


def _caches(settings: Settings) -> Sequence[CacheSpec]:
    found = [CacheSpec(NODES, prune=node_pruner(bridged=bool(settings.bridge_clusters)))]
    if settings.node_labels_from_slurm:
        found.append(CacheSpec(PODS, INDEXES_OF_SLURMD_PODS, PODS_OF_CLUSTERS, prune_pod, owners=OWNERS))
    return found


def _build(services: Services) -> Built:
    namespace, _, name = services.settings.node_labels_config_map.partition("/")
    config = LabelConfig(services.kube, services.recorder, (namespace, name))
    services.supervisor.start(f"ConfigMap {namespace}/{name} with labels of Nodes", config.run())
    nodes = services.caches.store(NODES)
    live = services.settings.node_labels_from_slurm
    named = services.settings.node_labels_clusters
    clusters = None if ALL in named else frozenset(named)
    records = SlurmNodes(services.caches.store(PODS), services.slurm, clusters) if live else None
    reconciler = NodeLabelsReconciler(services.kube, services.recorder, nodes, config, records)
    return Built(reconciler, NodeLabelsTriggers(nodes, config.subscribe, records).table())


SPEC: Final = ControllerSpec(
    "node-labels",
    NODES,
    caches=_caches,
    build=_build,
    workers=lambda _: WORKERS,
)
"""One pass over a Node."""
