"""What wakes a SlurmJob for its pod: itself, the pod, the Node of its partition, and its Cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, SLURMJOBS, VIRTUAL_NODES, VIRTUAL_PODS
from slinky_operator.reconcile.triggers import Triggers, is_same, written_by_users
from slinky_operator.virtual_nodes.node_names import virtual_node
from slinky_operator.virtual_nodes.pod_jobs import shown_name
from slinky_operator.virtual_nodes.sylabs_pods import model


class SylabsPodTriggers:
    """Handlers of caches: each returns the keys of SlurmJobs.

    Parameters
    ----------
    jobs
        Their cache, with `model.OF_CLUSTER`.
    """

    def __init__(self, jobs: Store) -> None:
        self._jobs = jobs

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={SLURMJOBS: self.job, VIRTUAL_PODS: self.pod, VIRTUAL_NODES: self.node, CLUSTERS: self.cluster}
        )

    def job(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of SlurmJobs: its own key, if it has such a pod and its place may have changed."""
        obj = new or old
        if obj is not None and model.pod_name(obj) and not is_same(old, new, _of_job):
            yield key_of(obj)

    def pod(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of pods: the SlurmJob of one that comes or goes."""
        obj = new or old
        if obj is not None and shown_name(obj) and not is_same(old, new, _of_pod):
            yield str(obj["metadata"]["namespace"]), shown_name(obj)

    def node(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of virtual Nodes: the SlurmJobs of the Cluster, if pods come onto the Node or leave it."""
        obj = new or old
        found = virtual_node(obj) if obj is not None else None
        if found is not None and not is_same(old, new, _of_node):
            yield from self._of("/".join(found.cluster))

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: its SlurmJobs."""
        obj = new or old
        if obj is not None and not is_same(old, new, written_by_users):
            yield from self._of("/".join(key_of(obj)))

    def _of(self, cluster: str) -> Iterable[Key]:
        for job in self._jobs.find(model.OF_CLUSTER, cluster):
            yield key_of(job)


def _of_job(job: Object) -> tuple[Any, ...]:
    metadata = job["metadata"]
    return metadata.get("uid"), metadata.get("deletionTimestamp"), model.partition_of(job)


def _of_pod(pod: Object) -> tuple[Any, ...]:
    metadata = pod["metadata"]
    return metadata.get("uid"), metadata.get("deletionTimestamp"), (pod.get("spec") or {}).get("nodeName")


def _of_node(node: Object) -> tuple[Any, ...]:
    return node["metadata"].get("uid"), bool((node.get("spec") or {}).get("unschedulable")), model.is_going(node)
