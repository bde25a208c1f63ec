"""The records of the slurmd pods on a Kubernetes Node, from the caches of pods and of each Cluster's Slurm.

Nothing is asked of Slurm: each Cluster's nodes are polled once for all controllers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from slinky_api import labels
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.node_labels.slurm_labels import facts_of
from slinky_operator.reconcile.cached.indexes import HOST_INDEX, NODE_INDEX
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.slurm.pods import pod_ownership
from slurm_client.models import Node
from slurm_client.watch import NodeEvent

_OVER: Final = frozenset({"Failed", "Succeeded"})


class Slurm(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    nodes_at: float | None
    contact: Contact

    @property
    def namespace(self) -> str:
        """Namespace of the Cluster."""
        ...

    @property
    def name(self) -> str:
        """Name of the Cluster."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Its nodes, by name, as of the last answer."""
        ...


class SlurmByUid(Protocol):
    """What is used of `slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> Slurm | None:
        """The Slurm of a Cluster."""
        ...


@dataclass(frozen=True, slots=True)
class Records:
    """What Slurm shows of the nodes on one Kubernetes Node."""

    nodes: tuple[Node, ...] = ()
    complete: bool = True
    """Whether every Slurm of a pod there has answered once."""


class SlurmNodes:
    """Finds records by Kubernetes Node, and Kubernetes Nodes by what has changed.

    Parameters
    ----------
    pods
        The cache of pods, with `INDEXES_OF_SLURMD_PODS`.
    slurm
        The Slurm of every Cluster.
    clusters
        `<namespace>/<name>` of the Clusters that count: users who may edit a Cluster name partitions and features. None
        for all.
    """

    def __init__(self, pods: Store, slurm: SlurmByUid, clusters: Collection[str] | None) -> None:
        self._pods = pods
        self._slurm = slurm
        self._clusters = clusters

    def on(self, host: str) -> Records:
        """The records of the pods on a Kubernetes Node; a node that has not registered yet has none."""
        found, complete = [], True
        for pod in self._pods.find(HOST_INDEX, host):
            if not _counts(pod) or not self._is_allowed(pod):
                continue
            slurm = self._slurm.get(_cluster_uid(pod))
            if slurm is not None and _cluster(pod) != f"{slurm.namespace}/{slurm.name}":
                # Somebody has made it: its labels name the Cluster of another namespace.
                continue
            if slurm is None or not _has_answered(slurm):
                complete = False
                continue
            record = slurm.nodes.get(pod_ownership.node_name(pod))
            if record is not None:
                found.append(record)
        return Records(tuple(found), complete)

    def _is_allowed(self, pod: Object) -> bool:
        return self._clusters is None or _cluster(pod) in self._clusters

    def pod(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of pods: the Node that one has come to, or has left."""
        before, after = (None if obj is None else _of_interest(obj) for obj in (old, new))
        if before == after:
            return
        for obj in (old, new):
            host = _host(obj)
            if host:
                yield "", host

    def node(self, cluster_uid: str, event: NodeEvent) -> Iterable[Key]:
        """Handler of nodes in Slurm: the Node of the pod, if anything has changed that labels are made from."""
        if event.old is not None and event.new is not None and facts_of(event.old) == facts_of(event.new):
            return
        slurm = self._slurm.get(cluster_uid)
        if slurm is None:
            return
        for pod in self._pods.find(NODE_INDEX, f"{slurm.namespace}/{slurm.name}/{event.key}"):
            host = _host(pod)
            if host:
                yield "", host

    def contact(self, cluster_uid: str) -> Iterable[Key]:
        """Handler of connections to Slurm: the Nodes of all pods of the Cluster."""
        return {("", host) for pod in self._pods if _cluster_uid(pod) == cluster_uid and (host := _host(pod))}


def _has_answered(slurm: Slurm) -> bool:
    """Whether its nodes are known, if only as of its last answer.

    A first answer counts a moment before its nodes are in the cache; only the contact is reported after that.
    """
    return slurm.nodes_at is not None and (slurm.contact.state is ContactState.READY or bool(slurm.nodes))


def _counts(pod: Object) -> bool:
    """Whether a pod is a slurmd's that has not ended."""
    return pod_ownership.is_slurmd(pod) and (pod.get("status") or {}).get("phase") not in _OVER


def _of_interest(pod: Object) -> tuple[Any, ...]:
    own = pod["metadata"].get("labels") or {}
    cluster = own.get(labels.LABEL_CLUSTER_UID), own.get(labels.LABEL_CLUSTER_NAME)
    return pod["metadata"].get("uid"), _host(pod), _counts(pod), *cluster


def _host(pod: Object | None) -> str:
    return str(((pod or {}).get("spec") or {}).get("nodeName") or "")


def _cluster(pod: Object) -> str:
    """Namespace and name of a pod's Cluster, by its labels."""
    name = (pod["metadata"].get("labels") or {}).get(labels.LABEL_CLUSTER_NAME)
    return f"{pod['metadata'].get('namespace')}/{name}"


def _cluster_uid(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(labels.LABEL_CLUSTER_UID) or "")
