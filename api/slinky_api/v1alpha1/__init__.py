"""Version ``v1alpha1``: the kinds Cluster, NodeSet, LoginSet, Token and SlurmJob."""

from slinky_api.v1alpha1.cluster import CLUSTER, Cluster
from slinky_api.v1alpha1.cluster_spec import ClusterSpec
from slinky_api.v1alpha1.cluster_status import ClusterStatus
from slinky_api.v1alpha1.common import GROUP, VERSION, Condition, ObjectMeta, api_version
from slinky_api.v1alpha1.loginset import LOGINSET, LoginSet, LoginSetSpec, LoginSetStatus
from slinky_api.v1alpha1.nodeset import NODESET, NodeSet, NodeSetSpec, NodeSetStatus
from slinky_api.v1alpha1.slurmjob_object import SLURMJOB, SlurmJob, SlurmJobObjectSpec, SlurmJobStatus
from slinky_api.v1alpha1.token import TOKEN, Token, TokenSpec, TokenStatus

__all__ = [
    "CLUSTER",
    "GROUP",
    "LOGINSET",
    "NODESET",
    "SLURMJOB",
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
    "SlurmJob",
    "SlurmJobObjectSpec",
    "SlurmJobStatus",
    "Token",
    "TokenSpec",
    "TokenStatus",
    "api_version",
]
