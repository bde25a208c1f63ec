"""Version ``v1alpha1``: the kinds Cluster, NodeSet, LoginSet, Token and SlurmJob.

What goes through all kinds has them from `KINDS` and `JOB_KINDS`.
"""

from typing import Final

from slinky_api.resource import Resource
from slinky_api.v1alpha1.cluster.kind import CLUSTER, Cluster
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_api.v1alpha1.cluster.status import ClusterStatus
from slinky_api.v1alpha1.common import GROUP, VERSION, ApiObject, Condition, ObjectMeta, api_version
from slinky_api.v1alpha1.loginset import LOGINSET, LoginSet, LoginSetSpec, LoginSetStatus
from slinky_api.v1alpha1.nodeset.kind import NODESET, NodeSet
from slinky_api.v1alpha1.nodeset.spec import NodeSetSpec
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_api.v1alpha1.slurmjob.kind import SLURMJOB, SlurmJob, SlurmJobObjectSpec, SlurmJobStatus
from slinky_api.v1alpha1.token import TOKEN, Token, TokenSpec, TokenStatus

__all__ = [
    "CLUSTER",
    "GROUP",
    "JOB_KINDS",
    "KINDS",
    "LOGINSET",
    "NODESET",
    "SLURMJOB",
    "TOKEN",
    "VERSION",
    "Cluster",
    "ClusterSpec",
    "ClusterStatus",
    "Condition",
    "Kinds",
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

Kinds = tuple[tuple[Resource, type[ApiObject]], ...]
"""Kinds, each with what it is called and its model."""

KINDS: Final[Kinds] = ((CLUSTER, Cluster), (NODESET, NodeSet), (LOGINSET, LoginSet), (TOKEN, Token))
JOB_KINDS: Final[Kinds] = ((SLURMJOB, SlurmJob),)
"""Kinds of which there are as many objects as jobs; a site without jobs as objects installs none of them."""
