"""What the controller of the bridge's nodes exports to the process; it runs only if the settings name Clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.bridge.caches import device_caches, pods_cache
from slinky_operator.bridge.nodes.controller import BridgeNodesReconciler
from slinky_operator.bridge.nodes.host_devices import HostDevices
from slinky_operator.bridge.nodes.observation import Observation
from slinky_operator.bridge.nodes.pod_requests import PodRequests
from slinky_operator.bridge.nodes.triggers import BridgeNodesTriggers
from slinky_operator.kube.resources import BRIDGE_PODS, CLUSTERS, NODES, NODESETS, RESOURCECLAIMS, RESOURCESLICES
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS, node_pruner
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings

WORKERS: Final = 2
"""Clusters whose nodes are looked at concurrently."""


def _caches(settings: Settings) -> Sequence[CacheSpec]:
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        CacheSpec(NODESETS, INDEXES_OF_NODESETS, mirrored=True),
        CacheSpec(NODES, prune=node_pruner(bridged=bool(settings.bridge_clusters))),
        *([pods_cache({})] if settings.bridge_devices else []),
        *device_caches(settings),
    ]


def _build(services: Services) -> Built:
    store = services.caches.store
    devices = None
    if services.settings.bridge_devices:
        devices = HostDevices(store(RESOURCESLICES), store(RESOURCECLAIMS), store(BRIDGE_PODS))
    reconciler = BridgeNodesReconciler(
        services.kube,
        services.recorder,
        services.clusters,
        store(NODESETS),
        Observation(store(NODES), PodRequests(services.kube), devices),
        services.slurm,
        frozenset(services.settings.bridge_clusters),
    )
    more = () if devices is None else (store(NODES), store(BRIDGE_PODS), devices.changed)
    triggers = BridgeNodesTriggers(services.clusters.store, services.slurm, *more)
    return Built(reconciler, triggers.table())


SPEC: Final = ControllerSpec(
    "bridge-nodes",
    CLUSTERS,
    caches=_caches,
    build=_build,
    workers=lambda _: WORKERS,
)
"""One pass over a Cluster for Kubernetes Nodes as nodes of its Slurm."""
