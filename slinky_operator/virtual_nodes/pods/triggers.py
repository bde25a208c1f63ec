"""What wakes a pod on a virtual Node: itself, its SlurmJob or one that is left for it, its Node, and its Cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slinky_api import labels
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, SLURMJOBS, VIRTUAL_NODES, VIRTUAL_PODS
from slinky_operator.reconcile.cached.bound_pods import BOUND_TO
from slinky_operator.reconcile.triggers import Triggers, is_same, own_key, written_by_users
from slinky_operator.virtual_nodes.directory import Directory
from slinky_operator.virtual_nodes.pod_jobs import SHOWING, owner_pod
from slinky_operator.virtual_nodes.pods import slurmjobs
from slinky_operator.virtual_nodes.pods.observation import PLACE, UID


class PodTriggers:
    """Handlers of caches: each returns the keys of pods.

    Parameters
    ----------
    pods
        Their cache, with `observation.INDEXES_OF_PODS`.
    nodes
        The cache of virtual Nodes.
    """

    def __init__(self, pods: Store, nodes: Store) -> None:
        self._pods = pods
        self._directory = Directory(nodes)

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={
                VIRTUAL_PODS: own_key,
                SLURMJOBS: self.job,
                VIRTUAL_NODES: self.node,
                CLUSTERS: self.cluster,
            }
        )

    def job(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of SlurmJobs: the pods that own one, or owned it, show it, or that one is left for."""
        if is_same(old, new, _shown):
            return
        for namespace, name in {key_of(obj) for obj in (old, new) if obj is not None}:
            for pod in self._pods.find(SHOWING, f"{namespace}/{name}"):
                yield key_of(pod)
        for uid in {owner_pod(obj) for obj in (old, new) if obj is not None} - {""}:
            for pod in self._pods.find(UID, uid):
                yield key_of(pod)
        for where in slurmjobs.by_place(new) if new is not None else ():
            for pod in self._pods.find(PLACE, where):
                yield key_of(pod)

    def node(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Nodes: their pods, if the Node is ready again, or another."""
        if is_same(old, new, _state):
            return
        obj = new or old
        if obj is not None:
            yield from self._bound_to(str(obj["metadata"]["name"]), is_new=False)

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: pods that have no job yet."""
        obj = new or old
        if obj is None or is_same(old, new, written_by_users):
            return
        for node in self._directory.of_cluster(key_of(obj)):
            yield from self._bound_to(node.name, is_new=True)

    def _bound_to(self, node: str, *, is_new: bool) -> Iterable[Key]:
        for pod in self._pods.find(BOUND_TO, node):
            has_job = labels.FINALIZER_VIRTUAL_POD in (pod["metadata"].get("finalizers") or ())
            if not (is_new and has_job):
                yield key_of(pod)


def _shown(obj: Object) -> tuple[Any, ...]:
    metadata = obj["metadata"]
    about = (metadata.get(field) for field in ("uid", "ownerReferences", "deletionTimestamp", "annotations"))
    return (*about, obj.get("status"))


def _state(node: Object) -> tuple[Any, ...]:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((one.get("status") for one in conditions if one.get("type") == "Ready"), None)
    return node["metadata"].get("uid"), node["metadata"].get("annotations"), ready
