"""Where a job can run: NodeSets and slurmd pods of a Cluster, from caches.

A token for a file is sent to a pod only if a NodeSet of the Cluster controls it: anybody who may create pods in the
namespace can give one any label and any host name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX, INDEXES_OF_SLURMD_PODS, NODE_INDEX
from slinky_operator.slurm.pods import pod_ownership

PODS_BY_CLUSTER: Final = "cluster of a slurmd pod"
"""Index of the pod cache over `<namespace>/<cluster>`, of slurmd pods."""


def _by_cluster(obj: Object) -> list[str]:
    name = (obj["metadata"].get("labels") or {}).get(labels.LABEL_CLUSTER_NAME)
    return [f"{obj['metadata'].get('namespace')}/{name}"] if name and pod_ownership.is_slurmd(obj) else []


INDEXES_OF_PODS: Final[Mapping[str, Indexer]] = {**INDEXES_OF_SLURMD_PODS, PODS_BY_CLUSTER: _by_cluster}
"""Indexes the pod cache must have."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The caches that say where a job can run.

    Parameters
    ----------
    nodesets
        With `reconcile.cached.indexes.INDEXES_OF_NODESETS`.
    pods
        With `INDEXES_OF_PODS`.
    """

    nodesets: Store
    pods: Store

    def nodesets_of(self, cluster: Cluster) -> list[Object]:
        """All NodeSets of a Cluster."""
        return list(self.nodesets.find(CLUSTER_INDEX, f"{cluster.namespace}/{cluster.name}"))

    def pods_of(self, cluster: Cluster) -> Iterable[Object]:
        """Everything that may be a slurmd pod of a Cluster."""
        return self.pods.find(PODS_BY_CLUSTER, f"{cluster.namespace}/{cluster.name}")

    def controlled(self, cluster: Cluster) -> list[Object]:
        """The pods that NodeSets of a Cluster control."""
        known = {str(one["metadata"].get("uid")) for one in self.nodesets_of(cluster)}
        return [one for one in self.pods_of(cluster) if pod_ownership.nodeset_uid(one) in known]

    def of(self, cluster: Cluster, node: str) -> list[Object]:
        """The pods of a node that a NodeSet of the Cluster controls."""
        known = {str(one["metadata"].get("uid")) for one in self.nodesets_of(cluster)}
        found = self.pods.find(NODE_INDEX, f"{cluster.namespace}/{cluster.name}/{node}")
        return [one for one in found if pod_ownership.nodeset_uid(one) in known]

    def pod_of(self, cluster: Cluster, node: str) -> Object | None:
        """The slurmd pod of a node, one that is not being deleted first; None if there is none."""
        pods = self.of(cluster, node)
        return min(pods, key=lambda pod: bool(pod["metadata"].get("deletionTimestamp")), default=None)
