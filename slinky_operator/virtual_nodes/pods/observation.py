"""From caches to the snapshot of one pod on a virtual Node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.jobs import tenants
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import CONFIGMAPS, SLURMJOBS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.namespaces import NamespaceReader
from slinky_operator.reconcile.writes.parts import stored_status
from slinky_operator.virtual_nodes.directory import Directory
from slinky_operator.virtual_nodes.node_names import VirtualNode
from slinky_operator.virtual_nodes.pod_jobs import SHOWING, by_shown, job_of, owner_pod, shown_job, shown_name
from slinky_operator.virtual_nodes.pods import deletion, slurmjobs
from slinky_operator.virtual_nodes.pods.plan import needs_place
from slinky_operator.virtual_nodes.pods.pod_owners import place
from slinky_operator.virtual_nodes.pods.projection import ENDED
from slinky_operator.virtual_nodes.pods.snapshot import Away, Place, PodJob, Snapshot
from slinky_operator.virtual_nodes.pods.translation.environment import ConfigMaps, names_of_config_maps
from slinky_operator.virtual_nodes.pods.translation.job_annotations import USER
from slinky_operator.virtual_nodes.pods.translation.slurmjob import translate

UID: Final = "uid"
"""Index of the pod cache over uids."""

PLACE: Final = "place"
"""Index of the pod cache over `<namespace>/<place>` of pods that have a controller."""

MOST_CONFIG_MAPS: Final = 16
"""ConfigMaps that a pod may name: each is read for it."""


def _by_uid(pod: Object) -> list[str]:
    return [str(pod["metadata"].get("uid") or "")]


def _by_place(pod: Object) -> list[str]:
    where = place(pod)
    return [f"{pod['metadata'].get('namespace')}/{where}"] if where else []


INDEXES_OF_PODS: Final[Mapping[str, Indexer]] = {UID: _by_uid, PLACE: _by_place, SHOWING: by_shown}
"""Indexes the cache of pods must have."""

INDEXES_OF_JOBS: Final[Mapping[str, Indexer]] = {slurmjobs.LEFT: slurmjobs.by_place}
"""Indexes the cache of SlurmJobs must have, beside `pod_jobs.OF_POD`."""


class Observer:
    """Builds snapshots.

    Parameters
    ----------
    kube
        Reads Namespaces, ConfigMaps, and SlurmJobs that the cache does not show.
    pods, jobs, nodes
        Caches of pods, SlurmJobs and virtual Nodes.
    clusters
        Reads Clusters.
    permitted
        `<namespace>/<name>` of Clusters that may have virtual Nodes, or `*`.
    now, clock
        The wall clock, and monotonic seconds.
    """

    def __init__(
        self,
        kube: Getter,
        pods: Store,
        jobs: Store,
        nodes: Store,
        clusters: ClusterReader,
        permitted: Collection[str],
        *,
        now: Callable[[], datetime],
        clock: Callable[[], float],
    ) -> None:
        self._kube = kube
        self._pods = pods
        self._jobs = jobs
        self._nodes = nodes
        self._directory = Directory(nodes)
        self._clusters = clusters
        self._permitted = frozenset(permitted)
        self._namespaces = NamespaceReader(kube, clock)
        self._now = now

    async def observe(self, pod: Object, *, is_made: bool) -> Snapshot:
        """Read everything that a pass needs.

        Raises
        ------
        KubeError
            The API server failed, or refused a read.
        """
        name = str((pod.get("spec") or {}).get("nodeName") or "")
        node, obj = self._directory.find(name), self._nodes.get(None, name)
        cluster = await self._clusters.find(node.cluster) if node is not None else None
        virtual = cluster.spec.jobs.virtual_nodes if cluster is not None else None
        found: dict[str, Any] = {
            "pod": pod,
            "now": self._now(),
            "job": await self._job(pod),
            "address": _address(obj),
            "is_node_ready": obj is None or _is_ready(obj),
            "is_preemption_meant": virtual is not None and virtual.allocatable == "Partition",
            "is_made": is_made,
        }
        snapshot = Snapshot(**found)
        if not needs_place(snapshot):
            return snapshot
        where = await self._place(pod, node, cluster)
        left = self._left(pod, where) if isinstance(where, Place) else None
        return Snapshot(**found, place=where, left_job=left, is_predecessor_ending=self._is_predecessor_ending(pod))

    async def _job(self, pod: Object) -> PodJob | None:
        """The SlurmJob that a pod owns, or names: of one that is over, what the cache does not show is asked for."""
        if shown_name(pod):
            shown = shown_job(self._jobs, pod)
            return None if shown is None else PodJob(shown, stored_status(SlurmJobStatus, shown), is_owned=False)
        owned = job_of(self._jobs, pod)
        if owned is not None:
            return PodJob(owned, stored_status(SlurmJobStatus, owned), is_owned=True)
        metadata = pod["metadata"]
        name = str((metadata.get("annotations") or {}).get(labels.ANNOTATION_VIRTUAL_POD_JOB) or "")
        if not name or labels.FINALIZER_VIRTUAL_POD not in (metadata.get("finalizers") or ()):
            # Without the finalizer, it was written by somebody else, or all is done.
            return None
        found = self._jobs.get(metadata["namespace"], name)
        has_ended = (pod.get("status") or {}).get("phase") in ENDED
        if found is None and (has_ended or deletion.is_deleting(pod)):
            try:
                found = await self._kube.get(SLURMJOBS, name, metadata["namespace"])
            except errors.NotFound:
                return None
        if found is None:
            return None
        # The controller of SlurmJobs writes another status if it cannot be read.
        return PodJob(found, stored_status(SlurmJobStatus, found), owner_pod(found) == metadata["uid"])

    async def _place(self, pod: Object, node: VirtualNode | None, cluster: Cluster | None) -> Place | Away:
        namespace = str(pod["metadata"]["namespace"])
        if node is None:
            return Away("NodeNotFound", "the virtual Node is gone: it comes back, or the pod is deleted with it")
        title = "/".join(node.cluster)
        if cluster is None or cluster.uid != node.cluster_uid:
            return Away("ClusterNotFound", f"Cluster {title} of this Node does not exist, or has an invalid spec")
        virtual = cluster.spec.jobs.virtual_nodes
        if cluster.deleting or virtual is None or not {"*", title} & self._permitted:
            return Away(
                "ClusterNotReady", f"Cluster {title} does not run pods any more; its administrator decides that"
            )
        annotations: Mapping[str, str] = pod["metadata"].get("annotations") or {}
        user = annotations.get(labels.VIRTUAL_NODE_PREFIX + USER)
        about = await self._namespaces.labels(namespace) if tenants.needs_labels(cluster) else None
        granted = tenants.grant(cluster, namespace, about, user)
        try:
            maps = await self._config_maps(pod) if isinstance(granted, tenants.Grant) else {}
            translation = translate(pod, node.partition, virtual, maps)
        except InvalidJob as error:
            return Place(cluster, node, granted, error)
        return Place(cluster, node, granted, translation)

    async def _config_maps(self, pod: Object) -> ConfigMaps:
        names = sorted(names_of_config_maps(pod))
        if len(names) > MOST_CONFIG_MAPS:
            raise InvalidJob("spec", f"names {len(names)} ConfigMaps, and a job may have {MOST_CONFIG_MAPS}")
        found: dict[str, Mapping[str, str] | None] = {}
        for name in names:
            try:
                obj = await self._kube.get(CONFIGMAPS, name, pod["metadata"]["namespace"])
            except errors.NotFound:
                found[name] = None
            else:
                found[name] = obj.get("data") or {}
        return found

    def _left(self, pod: Object, where: Place) -> Object | None:
        """The SlurmJob that an outage has left for this pod: the oldest, first of the Node's partition."""
        key = place(pod)
        if not key:
            return None
        found = self._jobs.find(slurmjobs.LEFT, f"{pod['metadata']['namespace']}/{key}")

        def order(job: Object) -> tuple[bool, str, str]:
            return not slurmjobs.is_in(job, where), str(job["metadata"].get("creationTimestamp")), _name(job)

        return min((job for job in found if slurmjobs.fits(job, pod, where)), key=order, default=None)

    def _is_predecessor_ending(self, pod: Object) -> bool:
        key = place(pod)
        if not key:
            return False
        metadata = pod["metadata"]
        others = self._pods.find(PLACE, f"{metadata['namespace']}/{key}")
        return any(
            other["metadata"].get("uid") != metadata.get("uid")
            and labels.FINALIZER_VIRTUAL_POD in (other["metadata"].get("finalizers") or ())
            and bool(deletion.outage(other, is_preemption_meant=False))
            for other in others
        )


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _address(node: Object | None) -> str:
    addresses: Any = ((node or {}).get("status") or {}).get("addresses") or ()
    return next((str(one.get("address")) for one in addresses if one.get("type") == "InternalIP"), "")


def _is_ready(node: Object) -> bool:
    conditions: Any = (node.get("status") or {}).get("conditions") or ()
    return next((one.get("status") == "True" for one in conditions if one.get("type") == "Ready"), True)
