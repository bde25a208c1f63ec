"""Kind NodeSet: a set of slurmd pods, each a node of one Slurm cluster.

Manifests of Slinky 0.1 (complete pod template, ``partition`` and ``paused``) and of 0.2 and 0.3 (``whenScaled``) are
accepted unchanged, and the status has the field names of both generations: `NodeSetStatus.counted` writes all of them.
"""

from typing import Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from slinky_api.resource import Column, Resource, Scale
from slinky_api.v1alpha1.common import GROUP, VERSION, ApiObject, ObjectMeta
from slinky_api.v1alpha1.nodeset.spec import NodeSetSpec, ScalingMode
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_api.v1alpha1.rules import cel

NAME_LENGTH: Final = 57
"""Longest name of a NodeSet: a host name has at most 63 characters, a dash and the ordinal take up to 6."""

LONGEST_NAME: Final = 63
"""Longest name of an existing NodeSet, as Slinky's CRD accepts it: it is a label value. Beyond `NAME_LENGTH` no pod is
created for it; its pods are drained and deleted."""

NODESET: Final = Resource(
    group=GROUP,
    version=VERSION,
    kind="NodeSet",
    plural="nodesets",
    singular="nodeset",
    short_names=("nss",),
    categories=("slurm", "slinky"),
    columns=(
        Column("DESIRED", ".status.desired", "integer", "Desired number of pods."),
        Column("READY", ".status.readyReplicas", "integer", "Pods that are Ready in Kubernetes and in Slurm."),
        Column("STATUS", ".status.summary", "string", "The problem, or else the current activity."),
        Column("WANTED", ".status.autoscaling.wanted", "integer", "Replicas that autoscaling wants.", wide=True),
        Column("REPLICAS", ".status.replicas", "integer", "Existing pods.", wide=True),
        Column("UPDATED", ".status.updatedReplicas", "integer", "Pods of the current revision.", wide=True),
        Column("IDLE", ".status.nodes.idle", "integer", "Nodes without jobs that accept jobs.", wide=True),
        Column("ALLOCATED", ".status.nodes.allocated", "integer", "Nodes with jobs that are not drained.", wide=True),
        Column("DRAINING", ".status.nodes.draining", "integer", "Drained nodes with jobs, for any cause.", wide=True),
        Column("DRAINED", ".status.nodes.drained", "integer", "Drained nodes without jobs.", wide=True),
        Column("DOWN", ".status.nodes.down", "integer", "Nodes that are down or do not respond.", wide=True),
        Column("MAINTENANCE", ".status.maintenance", "string", "The maintenance window that is on or next.", wide=True),
        Column("CLUSTER", ".spec.clusterName", "string", "The Cluster.", wide=True),
        Column(
            "REASON",
            ".status.conditions[?(@.type=='Ready')].reason",
            "string",
            "Reason of the condition Ready.",
            wide=True,
        ),
        Column("AGE", ".metadata.creationTimestamp", "date"),
    ),
    scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
)

NAME_MESSAGE: Final = (
    "metadata.name must be a DNS label without dots of at most"
    f" {NAME_LENGTH} characters: pods and Slurm nodes are named after it, with an ordinal"
)
"""The message that refuses a longer name, and that is reported for an existing NodeSet with one."""

_EXISTS: Final = "has(self.status)"
"""Whether an object existed before the rule: an object has no status when it is created. Slinky's CRD accepted longer
names, and it must be possible to scale such an object down and to remove its finalizers. (A rule with `oldSelf` that
also applies at creation needs Kubernetes 1.30.)"""

_RESERVED_MESSAGE: Final = "metadata.name must not be 'default' or 'all', which mean something else to Slurm"


class NodeSet(ApiObject):
    """A set of slurmd pods, each a node of one Slurm cluster."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    f"{_EXISTS} || (self.metadata.name.size() <= {NAME_LENGTH}"
                    " && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",
                    NAME_MESSAGE,
                    field=".metadata.name",
                ),
                cel(
                    f"{_EXISTS} || !(self.metadata.name in ['default', 'all'])",
                    _RESERVED_MESSAGE,
                    field=".metadata.name",
                ),
            ]
        }
    )

    kind: Literal["NodeSet"] = "NodeSet"
    metadata: ObjectMeta
    spec: NodeSetSpec
    """The desired state of the NodeSet."""
    status: NodeSetStatus = Field(default_factory=NodeSetStatus)
    """The observed state of the NodeSet."""

    @property
    def mode(self) -> ScalingMode:
        """The effective mode: the one fixed in the status, else the one the spec asks for."""
        return self.status.scaling_mode or self.spec.wanted_mode

    @model_validator(mode="after")
    def _name_fits(self) -> Self:
        if len(self.name) > LONGEST_NAME or "." in self.name:
            raise ValueError(NAME_MESSAGE)
        if self.name in {"default", "all"}:
            raise ValueError(_RESERVED_MESSAGE)
        return self
