"""Version ``v1alpha1``: the kinds Cluster and NodeSet."""

from slinky_api.v1alpha1.cluster import CLUSTER, Cluster
from slinky_api.v1alpha1.cluster_spec import ClusterSpec
from slinky_api.v1alpha1.cluster_status import ClusterStatus
from slinky_api.v1alpha1.common import GROUP, VERSION, Condition, ObjectMeta, api_version
from slinky_api.v1alpha1.nodeset import NODESET, NodeSet, NodeSetSpec, NodeSetStatus

__all__ = [
    "CLUSTER",
    "GROUP",
    "NODESET",
    "VERSION",
    "Cluster",
    "ClusterSpec",
    "ClusterStatus",
    "Condition",
    "NodeSet",
    "NodeSetSpec",
    "NodeSetStatus",
    "ObjectMeta",
    "api_version",
]
