"""Which Cluster places a group of pods: one that the operator's settings and its tenants permit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.bridge.clusters import is_allowed
from slinky_operator.bridge.pods.model.snapshot import Away, Place, Snapshot
from slinky_operator.jobs import tenants
from slinky_operator.kube.ports import Getter
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.namespaces import NamespaceReader
from slinky_operator.reconcile.text import named


class BridgeClusters:
    """Clusters that place pods.

    Parameters
    ----------
    kube
        Reads labels of Namespaces.
    clusters
        Reads Clusters.
    permitted
        `<namespace>/<name>` of Clusters that may place pods, or `*`.
    clock
        Monotonic seconds.
    """

    def __init__(
        self, kube: Getter, clusters: ClusterReader, permitted: Collection[str], clock: Callable[[], float]
    ) -> None:
        self._clusters = clusters
        self._permitted = frozenset(permitted)
        self._namespaces = NamespaceReader(kube, clock)

    async def find(self, snapshot: Snapshot) -> Cluster | Away:
        """The Cluster of the job of a group, or of its next one; why there is none.

        Raises
        ------
        KubeError
            The API server failed.
        """
        job = snapshot.job
        if job is None or job.is_over or snapshot.needs_next:
            return await self._choose(snapshot)
        key = (str(job.spec.get("clusterNamespace") or snapshot.namespace), str(job.spec.get("clusterName") or ""))
        cluster = await self._clusters.find(key)
        if cluster is None or not self._may_place(cluster):
            return Away("ClusterNotReady", f"Cluster {'/'.join(key)} does not exist, or places no pods any more")
        return cluster

    async def _choose(self, snapshot: Snapshot) -> Cluster | Away:
        annotations = snapshot.waiting[0].obj["metadata"].get("annotations") or {}
        wanted = str(annotations.get(labels.ANNOTATION_BRIDGE_CLUSTER) or "")
        refused: list[str] = []
        found: list[Cluster] = []
        async for cluster in self._placing():
            if wanted and wanted != _title(cluster):
                continue
            granted = await self._grant(cluster, snapshot.namespace, None)
            if isinstance(granted, tenants.Grant):
                found.append(cluster)
            else:
                refused.append(granted.message)
        if len(found) == 1:
            return _unsuitable(found[0]) or found[0]
        path = f"metadata.annotations[{labels.ANNOTATION_BRIDGE_CLUSTER}]"
        if found:
            choice = named([_title(one) for one in found])
            words = f"{path}: is required, since several Clusters grant this namespace: {choice}"
        elif refused:
            words = refused[0]
        elif wanted:
            words = f"{path}: Cluster {wanted[:320]} does not exist, or places no pods"
        else:
            words = "no Cluster places pods: its administrator decides that in spec.jobs.bridge"
        return Away("Refused", words)

    async def granted(self, cluster: Cluster, namespace: str, user: str | None) -> Place | Away:
        """What a namespace may ask of a Cluster as a user, or as its first one."""
        granted = await self._grant(cluster, namespace, user)
        if isinstance(granted, tenants.Refused):
            return Away("Refused", granted.message)
        return Place((cluster.namespace, cluster.name), granted)

    async def _grant(self, cluster: Cluster, namespace: str, user: str | None) -> tenants.Grant | tenants.Refused:
        about = await self._namespaces.labels(namespace) if tenants.needs_labels(cluster) else None
        return tenants.grant(cluster, namespace, about, user)

    async def _placing(self) -> AsyncIterator[Cluster]:
        """Clusters that place pods, by namespace and name."""
        for key in sorted(self._clusters.store.keys()):
            if is_allowed(key, self._permitted):
                cluster = await self._clusters.find(key)
                if cluster is not None and self._may_place(cluster):
                    yield cluster

    def _may_place(self, cluster: Cluster) -> bool:
        is_permitted = is_allowed((cluster.namespace, cluster.name), self._permitted)
        return is_permitted and not cluster.deleting and cluster.spec.jobs.bridge is not None


_UNSUITABLE: Final = frozenset({Reason.PREEMPTION_UNSUITABLE, Reason.SLURM_TOO_OLD})
"""What Slurm must be before it is asked for anything."""


def _unsuitable(cluster: Cluster) -> Away | None:
    """Why the Slurm of a Cluster cannot place pods; None if it can, or nothing is known."""
    said = cluster.status.bridge
    if said is None or said.ready is not False or said.reason not in _UNSUITABLE:
        return None
    return Away("ClusterNotReady", f"Cluster {_title(cluster)} cannot place pods: {said.message}")


def _title(cluster: Cluster) -> str:
    return f"{cluster.namespace}/{cluster.name}"
