"""What triggers the NodeSet controller: which NodeSets an event is about, and what to remember of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.kube.cache.informer import Handler
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODES, NODESETS, PERSISTENTVOLUMECLAIMS, PODS
from slinky_operator.nodeset.health import rules
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model.kubernetes_nodes import Hosts, KubernetesNode
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX, HOST_INDEX, NODE_INDEX
from slinky_operator.reconcile.triggers import Triggers, is_same
from slinky_operator.slurm.pods import pod_ownership
from slurm_client.models import Node


class NodeSetTriggers:
    """Handlers of caches and of Clusters' Slurm: each returns the keys of the NodeSets to reconcile.

    Parameters
    ----------
    nodesets, clusters, pods
        Caches, with `INDEXES_OF_NODESETS` and `INDEXES_OF_PODS`.
    hosts
        The Kubernetes Nodes; None if they are not watched.
    memory
        What is remembered of NodeSets, by uid.
    forget
        Called with the uid of a deleted NodeSet.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        nodesets: Store,
        clusters: Store,
        pods: Store,
        hosts: Hosts | None,
        memory: dict[str, Memory],
        forget: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._nodesets = nodesets
        self._clusters = clusters
        self._pods = pods
        self._hosts = hosts
        self._memory = memory
        self._forget = forget
        self._clock = clock

    def table(self, own_writes: Handler) -> Triggers:
        """All handlers, by their source.

        Parameters
        ----------
        own_writes
            Handler of pods that must see a change before any NodeSet is triggered by it.
        """
        return Triggers(
            objects={
                NODESETS: self.nodeset,
                CLUSTERS: self.cluster,
                PODS: self.pod,
                PERSISTENTVOLUMECLAIMS: self.claim,
                NODES: self.host,
            },
            contact=self.contact,
            node=lambda cluster_uid, event: self.node(cluster_uid, event.old, event.new),
            observers={PODS: own_writes},
        )

    def nodeset(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of NodeSets: their own key; of one that is gone, also that of the NodeSet that may use its name."""
        obj = new if new is not None else old
        if obj is None:
            return
        if new is None or (old is not None and old["metadata"]["uid"] != new["metadata"]["uid"]):
            self._forget((old or obj)["metadata"]["uid"])
        yield key_of(obj)
        if new is None:
            namespace, name = key_of(obj)
            neighbour = namespace, name.rpartition("-")[0]
            if neighbour in self._nodesets:
                yield neighbour

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: all NodeSets that name it, unless nothing has changed that they read."""
        if is_same(old, new, _relevant):
            return
        for obj in filter(None, (new if new is not None else old,)):
            namespace, name = key_of(obj)
            for nodeset in self._nodesets.find(CLUSTER_INDEX, f"{namespace}/{name}"):
                yield key_of(nodeset)

    def pod(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of pods: their NodeSet. Records when they were gone, and which of them had ended."""
        obj = new if new is not None else old
        if obj is None:
            return
        own = obj["metadata"].get("labels") or {}
        if not own.get(labels.LABEL_NODESET_UID) and old is not None:
            # Somebody has removed the label: the NodeSet that it named has lost a pod.
            own = old["metadata"].get("labels") or {}
        uid, name = own.get(labels.LABEL_NODESET_UID), own.get(labels.LABEL_NODESET_NAME)
        if not uid or not name:
            return
        memory, node = self._memory.setdefault(uid, Memory()), pod_ownership.node_name(obj)
        if new is not None:
            memory.ended.pop(node, None)
            memory.gone.pop(node, None)
        else:
            memory.gone[node] = self._clock()
            status = obj.get("status") or {}
            if pod_facts.has_ended(status, deleting=True):
                memory.ended[node] = pod_facts.last_end(status)
        yield obj["metadata"].get("namespace") or "", name

    def claim(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of claims: their NodeSet when one is deleted, since its name may be waited for, or created.

        A new one may be surplus already: its pod may have been created and deleted before the cache shows it.
        """
        obj = new if new is not None else old
        if obj is not None and (old is None or new is None):
            own = obj["metadata"].get("labels") or {}
            yield obj["metadata"].get("namespace") or "", own.get(labels.LABEL_NODESET_NAME) or ""

    def node(self, cluster_uid: str, old: Node | None, new: Node | None) -> Iterable[Key]:
        """Node event of a Cluster's Slurm: the NodeSet the record names, or the one whose pod has that name."""
        node = new if new is not None else old
        if node is None:
            return
        found: set[Key] = set()
        for record in (old, new):
            namespace, slash, name = (record.extra if record is not None else "").partition("/")
            if slash and self._nodesets.get(namespace, name) is not None:
                found.add((namespace, name))
        if not found:
            found.update(self._by_name(cluster_uid, node.name))
            for namespace, name in self._clusters_of(cluster_uid):
                pods = self._pods.find(NODE_INDEX, f"{namespace}/{name}/{node.name}")
                found.update(map(_key_of_owner, pods))
            if old is None or new is None:
                # A name that somebody else owned may be free, or one that was free is not.
                of_cluster = frozenset(self.contact(cluster_uid))
                on_hosts = {key_of(nodeset) for nodeset in self._nodesets if _is_on_hosts(nodeset)}
                found.update(on_hosts & of_cluster)
        yield from found

    def host(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Kubernetes Nodes: NodeSets with pods there, those that may want one there, and that of its mark.

        None if nothing relevant has changed; of a condition only NodeSets with pods there and a rule for it.
        """
        change = self._hosts.observe(old, new) if self._hosts is not None else None
        if change is None:
            return
        found = {_key_of_owner(pod) for pod in self._pods.find(HOST_INDEX, change.host.name)}
        if change.conditions:
            found = {key for key in found if not change.conditions.isdisjoint(self._conditions_read(key))}
        else:
            found.update(key_of(nodeset) for nodeset in self._nodesets if _is_on_hosts(nodeset))
            found.update(self._of_mark(change.host))
        yield from found

    def _of_mark(self, host: KubernetesNode) -> Iterable[Key]:
        """The NodeSet that has a Node cordoned for its machine; its pods may be on other Nodes by now."""
        namespace, _, name = (host.mark.owner if host.mark is not None else "").partition("/")
        nodeset = self._nodesets.get(namespace, name)
        if nodeset is not None:
            yield key_of(nodeset)

    def _conditions_read(self, key: Key) -> frozenset[str]:
        """Types of conditions of Kubernetes Nodes for which a NodeSet has rules."""
        nodeset = self._nodesets.get(*key)
        health = ((nodeset or {}).get("spec") or {}).get("health")
        return rules.types_read(health) if isinstance(health, Mapping) else frozenset()

    def contact(self, cluster_uid: str) -> Iterable[Key]:
        """Change of the connection to a Cluster's Slurm: all NodeSets that name it."""
        for namespace, name in self._clusters_of(cluster_uid):
            for nodeset in self._nodesets.find(CLUSTER_INDEX, f"{namespace}/{name}"):
                yield key_of(nodeset)

    def _clusters_of(self, uid: str) -> Iterable[Key]:
        """Key of the Cluster with a uid, if it exists."""
        return [key_of(cluster) for cluster in self._clusters if cluster["metadata"]["uid"] == uid]

    def _by_name(self, cluster_uid: str, node: str) -> Iterable[Key]:
        """The NodeSet that would give a pod this name, among those of a Cluster."""
        head, dash, _ = node.rpartition("-")
        if not dash:
            return
        for key in self.contact(cluster_uid):
            if key[1] == head:
                yield key


def _relevant(cluster: Mapping[str, Any]) -> tuple[Any, ...]:
    """What NodeSets read of a Cluster."""
    metadata = cluster["metadata"]
    status = cluster.get("status") or {}
    config = status.get("config") or {}
    return (
        metadata["uid"],
        metadata.get("deletionTimestamp"),
        metadata.get("generation"),
        tuple(config.get("nodeSets") or ()),
        tuple(config.get("leavingNodeSets") or ()),
        tuple((one.get("name"), one.get("message")) for one in config.get("refused") or ()),
        status.get("slurmVersion"),
        status.get("slurmKeyFile"),
        tuple(
            condition.get("message")
            for condition in status.get("conditions") or ()
            if condition.get("reason") == Reason.UPGRADING
        ),
    )


def _is_on_hosts(nodeset: Mapping[str, Any]) -> bool:
    """Whether a NodeSet has one pod on each matching Node, by its mode once fixed, else by its spec."""
    spec = nodeset.get("spec") or {}
    mode = (nodeset.get("status") or {}).get("scalingMode") or spec.get("scalingMode")
    return mode == ScalingMode.DAEMON_SET if mode else spec.get("replicas") is None


def _key_of_owner(pod: Mapping[str, Any]) -> Key:
    """Key of the NodeSet a pod belongs to."""
    metadata = pod["metadata"]
    return metadata.get("namespace") or "", metadata["labels"].get(labels.LABEL_NODESET_NAME) or ""
