"""What triggers the controller of virtual Nodes: Clusters, the Nodes themselves, and what Slurm shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, VIRTUAL_NODES
from slinky_operator.reconcile.triggers import SlurmByUid, Triggers, cluster_of, is_same, written_by_users
from slinky_operator.virtual_nodes.node_names import virtual_node
from slinky_operator.virtual_nodes.nodes.model.partitions import facts_of_node
from slinky_operator.virtual_nodes.nodes.model.wishes import host_of
from slinky_operator.virtual_nodes.nodes.partition_poll import PartitionPoll
from slinky_operator.virtual_nodes.nodes.reachability_poll import ReachabilityPoll
from slurm_client.watch import NodeEvent

NODE_EVENT_DELAY: Final = 1.0
"""Seconds for which events of Slurm's nodes are batched: many register together."""


class VirtualNodesTriggers:
    """Handlers: each returns the keys of Clusters.

    Parameters
    ----------
    clusters
        The cache of Clusters.
    slurm
        The Slurm of every Cluster.
    poll
        What Slurm says of partitions.
    reachability
        Whether the API server reaches the kubelet API.
    """

    def __init__(self, clusters: Store, slurm: SlurmByUid, poll: PartitionPoll, reachability: ReachabilityPoll) -> None:
        self._clusters = clusters
        self._slurm = slurm
        self._poll = poll
        self._reachability = reachability

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={CLUSTERS: self.cluster, VIRTUAL_NODES: self.node},
            contact=lambda uid: self._with_host(cluster_of(self._slurm, uid)),
            node=self.slurm_node,
            node_delay=NODE_EVENT_DELAY,
            others=(self._poll.subscribe, self._reachability.subscribe),
        )

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: itself, and those that want the host name that it has, or had."""
        if is_same(old, new, _of_interest):
            return
        known = {host for obj in (old, new) if obj is not None and (host := host_of(obj)) is not None}
        obj = new or old
        if obj is None or not known:
            return
        yield key_of(obj)
        for other in self._clusters:
            if host_of(other) in known and key_of(other) != key_of(obj):
                yield key_of(other)

    def node(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of virtual Nodes: their Clusters, unless only times have changed."""
        if is_same(old, new, _of_node):
            return
        found = (virtual_node(obj) for obj in (old, new) if obj is not None)
        yield from {node.cluster for node in found if node is not None}

    def slurm_node(self, cluster_uid: str, event: NodeEvent) -> Iterable[Key]:
        """Handler of nodes in Slurm: their Cluster, if anything has changed that Nodes are made from."""
        if event.old is not None and event.new is not None and facts_of_node(event.old) == facts_of_node(event.new):
            return ()
        return self._with_host(cluster_of(self._slurm, cluster_uid))

    def _with_host(self, keys: Iterable[Key]) -> Iterable[Key]:
        """Those that want virtual Nodes."""
        for key in keys:
            obj = self._clusters.get(*key)
            if obj is not None and host_of(obj) is not None:
                yield key


def _of_interest(obj: Object) -> object:
    return written_by_users(obj)


def _of_node(obj: Object) -> tuple[Any, ...]:
    metadata, status = obj["metadata"], obj.get("status") or {}
    conditions = [
        tuple(one.get(key) for key in ("type", "status", "reason", "message")) for one in status.get("conditions") or ()
    ]
    parts = (status.get(key) for key in ("capacity", "allocatable", "addresses", "daemonEndpoints"))
    return (
        *written_by_users(obj),
        metadata.get("labels"),
        metadata.get("annotations"),
        obj.get("spec"),
        conditions,
        *parts,
    )
