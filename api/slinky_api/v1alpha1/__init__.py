"""Version ``v1alpha1``: the kinds Cluster, NodeSet, LoginSet and Token."""

from slinky_api.v1alpha1.cluster import CLUSTER, Cluster
from slinky_api.v1alpha1.cluster_spec import ClusterSpec
from slinky_api.v1alpha1.cluster_status import ClusterStatus
from slinky_api.v1alpha1.common import GROUP, VERSION, Condition, ObjectMeta, api_version
from slinky_api.v1alpha1.loginset import LOGINSET, LoginSet, LoginSetSpec, LoginSetStatus
from slinky_api.v1alpha1.nodeset import NODESET, NodeSet, NodeSetSpec, NodeSetStatus
from slinky_api.v1alpha1.token import TOKEN, Token, TokenSpec, TokenStatus

__all__ = [
    "CLUSTER",
    "GROUP",
    "LOGINSET",
    "NODESET",
    "TOKEN",
    "VERSION",
    "Cluster",
    "ClusterSpec",
    "ClusterStatus",
    "Condition",
    "LoginSet",
    "LoginSetSpec",
    "LoginSetStatus",
    "NodeSet",
    "NodeSetSpec",
    "NodeSetStatus",
    "ObjectMeta",
    "Token",
    "TokenSpec",
    "TokenStatus",
    "api_version",
]
