"""What the controller of virtual Nodes exports to the process; it runs only if the settings name Clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.kube.resources import CLUSTERS, VIRTUAL_NODES
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings
from slinky_operator.virtual_nodes.arrival import mark_of
from slinky_operator.virtual_nodes.directory import CACHE
from slinky_operator.virtual_nodes.nodes.controller import VirtualNodesReconciler
from slinky_operator.virtual_nodes.nodes.leases import RENEW_S, NodeLeases
from slinky_operator.virtual_nodes.nodes.model.reachability import Way
from slinky_operator.virtual_nodes.nodes.observation import KubeletAddress, Observation
from slinky_operator.virtual_nodes.nodes.partition_poll import PartitionPoll
from slinky_operator.virtual_nodes.nodes.reachability_poll import PATIENCE_S, ReachabilityPoll
from slinky_operator.virtual_nodes.nodes.triggers import VirtualNodesTriggers

WORKERS: Final = 2
"""Clusters whose Nodes are written concurrently."""


def _caches(_: Settings) -> Sequence[CacheSpec]:
    return [CacheSpec(CLUSTERS, mirrored=True), CACHE]


def _build(services: Services) -> Built:
    settings, nodes = services.settings, services.caches.store(VIRTUAL_NODES)
    # A call that hangs must not outlast the patience of Kubernetes.
    leases = NodeLeases(services.kube.apart(RENEW_S), nodes, renewed=services.changes.leases_renewed.set)
    poll = PartitionPoll()
    clusters = services.clusters
    reachability = ReachabilityPoll(services.kube.apart(PATIENCE_S), _way(settings), clusters.store)
    services.supervisor.start("Leases of virtual Nodes", leases.run())
    services.supervisor.start("partitions for virtual Nodes", poll.run())
    services.supervisor.start("way to virtual Nodes", reachability.run())
    kubelet = KubeletAddress(settings.virtual_nodes_address, settings.virtual_nodes_port)
    reconciler = VirtualNodesReconciler(
        services.kube,
        services.recorder,
        clusters,
        Observation(nodes, services.slurm, poll, kubelet),
        poll,
        reachability,
        leases,
        frozenset(settings.virtual_nodes_clusters),
    )
    return Built(reconciler, VirtualNodesTriggers(clusters.store, services.slurm, poll, reachability).table())


def _way(settings: Settings) -> Way | None:
    """The way of the API server to this process; None if the settings do not name its pod."""
    if not settings.virtual_nodes_pod:
        return None
    return Way(
        settings.lease_namespace,
        settings.virtual_nodes_pod,
        settings.virtual_nodes_address,
        settings.virtual_nodes_port,
        mark_of(settings.identity),
    )


SPEC: Final = ControllerSpec(
    "virtual-nodes",
    CLUSTERS,
    caches=_caches,
    build=_build,
    workers=lambda _: WORKERS,
)
"""One pass over a Cluster for its virtual Nodes."""
