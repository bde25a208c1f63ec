"""What triggers the controller: Clusters, Kubernetes Nodes, NodeSets by their names, and what Slurm shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from slinky_operator.bridge.clusters import chooses, had_bridge, wants_bridge
from slinky_operator.bridge.device_claims import allocated, is_allocated, is_of_bridge, nodes_of
from slinky_operator.bridge.devices import by_node
from slinky_operator.bridge.features import is_bridged
from slinky_operator.bridge.nodes.model.hosts import marks_of_change
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODES, NODESETS, RESOURCECLAIMS, RESOURCESLICES
from slinky_operator.reconcile.triggers import SlurmByUid, Triggers, cluster_of, is_same, written_by_users
from slurm_client.models import Node
from slurm_client.watch import NodeEvent

NODE_EVENT_DELAY: Final = 2.0
"""Seconds for which events of Slurm's nodes are batched."""


class BridgeNodesTriggers:
    """Handlers: each returns the keys of Clusters.

    Parameters
    ----------
    clusters
        The cache of Clusters.
    slurm
        The Slurm of every Cluster.
    hosts
        The cache of Kubernetes Nodes.
    pods
        The cache of pods that Slurm places. None for both if the settings let Slurm give no devices to pods.
    changed
        Told of each Node of which a claim has changed that is not of a pod that Slurm places.
    """

    def __init__(
        self,
        clusters: Store,
        slurm: SlurmByUid,
        hosts: Store | None = None,
        pods: Store | None = None,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._clusters = clusters
        self._slurm = slurm
        self._hosts = hosts
        self._pods = pods
        self._changed = changed

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={
                CLUSTERS: self.cluster,
                NODES: self.host,
                NODESETS: self.nodeset,
                **({RESOURCESLICES: self.devices, RESOURCECLAIMS: self.claim} if self._pods is not None else {}),
            },
            contact=lambda uid: self._with_bridge(cluster_of(self._slurm, uid)),
            node=self.slurm_node,
            node_delay=NODE_EVENT_DELAY,
        )

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: itself, if it wants a bridge, or had one."""
        if is_same(old, new, written_by_users):
            return
        if any(wants_bridge(obj) or had_bridge(obj) for obj in (old, new) if obj is not None):
            yield from (key_of(obj) for obj in (new or old,) if obj is not None)

    def host(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Kubernetes Nodes: the Clusters that choose it, or did. A heartbeat brings no pass."""
        if is_same(old, new, marks_of_change):
            return
        labels = [obj["metadata"].get("labels") or {} for obj in (old, new) if obj is not None]
        for cluster in self._clusters:
            if wants_bridge(cluster) and any(chooses(cluster, one) for one in labels):
                yield key_of(cluster)

    def devices(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of ResourceSlices: the Clusters that choose their Node."""
        if is_same(old, new, lambda obj: obj.get("spec")):
            return
        yield from self._choosing({name for obj in (old, new) if obj is not None for name in by_node(obj)})

    def claim(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of ResourceClaims of pods that Slurm has not placed: the Clusters that choose the Node of devices."""
        if is_same(old, new, allocated):
            return
        some = [obj for obj in (old, new) if obj is not None and is_allocated(obj)]
        if self._pods is not None and not any(is_of_bridge(obj, self._pods) for obj in some):
            names = {name for obj in some for name in nodes_of(obj)}
            for name in names:
                self._changed(name)
            yield from self._choosing(names)

    def _choosing(self, names: Iterable[str]) -> Iterable[Key]:
        found: dict[Key, None] = {}
        hosts = self._hosts if self._hosts is not None else Store()
        for host in (hosts.get("", name) for name in names):
            own = (host["metadata"].get("labels") or {}) if host is not None else {}
            found |= {key_of(one): None for one in self._clusters if wants_bridge(one) and chooses(one, own)}
        yield from found

    def nodeset(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of NodeSets, whose names are taken: its Cluster, when it comes or goes."""
        obj = new or old
        if obj is None or (old is not None and new is not None):
            return ()
        key = (obj["metadata"].get("namespace"), str((obj.get("spec") or {}).get("clusterName") or ""))
        return self._with_bridge([key])

    def slurm_node(self, cluster_uid: str, event: NodeEvent) -> Iterable[Key]:
        """Handler of nodes in Slurm: their Cluster, if it is one of a bridge and anything but its jobs has changed."""
        if not any(is_bridged(one) for one in (event.old, event.new) if one is not None):
            return ()
        if event.old is not None and event.new is not None and _facts(event.old) == _facts(event.new):
            return ()
        return self._with_bridge(cluster_of(self._slurm, cluster_uid))

    def _with_bridge(self, keys: Iterable[Key]) -> Iterable[Key]:
        for key in keys:
            obj = self._clusters.get(*key)
            if obj is not None and (wants_bridge(obj) or had_bridge(obj)):
                yield key


def _facts(node: Node) -> tuple[object, ...]:
    """What the plan looks at. Jobs that come and go bring no pass: one that waits for the last is repeated."""
    about = node.is_drain, node.is_down, node.is_not_responding
    return *about, node.reason, node.features, node.cpus, node.real_memory_mib, node.gres
