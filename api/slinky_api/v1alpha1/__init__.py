"""Version ``v1alpha1``: the kinds Cluster, NodeSet, LoginSet, Token and SlurmJob."""

from slinky_api.v1alpha1.cluster.kind import CLUSTER, Cluster
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_api.v1alpha1.cluster.status import ClusterStatus
from slinky_api.v1alpha1.common import GROUP, VERSION, Condition, ObjectMeta, api_version
from slinky_api.v1alpha1.loginset import LOGINSET, LoginSet, LoginSetSpec, LoginSetStatus
from slinky_api.v1alpha1.nodeset.kind import NODESET, NodeSet
from slinky_api.v1alpha1.nodeset.spec import NodeSetSpec
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_api.v1alpha1.slurmjob.kind import SLURMJOB, SlurmJob, SlurmJobObjectSpec, SlurmJobStatus
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
