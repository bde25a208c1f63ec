"""Kind Cluster: one Slurm cluster, run by the operator or elsewhere.

``spec.server`` distinguishes the two forms. With it, Slurm runs elsewhere and the operator connects to it; without it,
the operator runs Slurm, and every field is optional: ``spec: {}`` is a working cluster.
"""

from typing import Final, Literal

from pydantic import ConfigDict, Field

from slinky_api.resource import Column, Resource
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_api.v1alpha1.cluster.status import ClusterStatus
from slinky_api.v1alpha1.common import GROUP, VERSION, ApiObject, ObjectMeta
from slinky_api.v1alpha1.rules import cel

MANAGED_NAME_LENGTH: Final = 40
"""Longest name of a managed Cluster: a StatefulSet's revision label has at most 63 characters, of which 11 follow the
name of the StatefulSet (``<cluster>-controller``, ``<cluster>-accounting``)."""

CLUSTER: Final = Resource(
    group=GROUP,
    version=VERSION,
    kind="Cluster",
    plural="clusters",
    singular="cluster",
    categories=("slurm", "slinky"),
    columns=(
        Column("READY", ".status.isReady", "boolean", "Whether slurmrestd and slurmctld answer."),
        Column("STATUS", ".status.summary", "string", "The problem, or else the current activity."),
        Column("NODES", ".status.nodes.total", "integer", "Slurm nodes."),
        Column("DOWN", ".status.nodes.down", "integer", "Nodes that are down."),
        Column("DRAINED", ".status.nodes.drain", "integer", "Nodes that are drained or draining."),
        Column("RUNNING", ".status.jobs.running", "integer", "Running jobs."),
        Column("PENDING", ".status.jobs.pending", "integer", "Pending jobs."),
        Column("VERSION", ".status.slurmVersion", "string", "Version of Slurm."),
        Column("IDLE", ".status.nodes.idle", "integer", "Nodes without jobs that accept jobs.", wide=True),
        Column("INVALID", ".status.nodes.invalid", "integer", "Nodes with an invalid registration.", wide=True),
        Column(
            "MAINTENANCE", ".status.maintenance.next", "string", "The maintenance window that is on or next.", wide=True
        ),
        Column("SERVER", ".status.server", "string", "URL of slurmrestd.", wide=True),
        Column("API", ".status.apiVersion", "string", "Version of the REST API.", wide=True),
        Column(
            "REASON",
            ".status.conditions[?(@.type=='Ready')].reason",
            "string",
            "Reason of the condition Ready.",
            wide=True,
        ),
        Column("AGE", ".metadata.creationTimestamp", "date"),
    ),
)


class Cluster(ApiObject):
    """A Slurm cluster, run by the operator or, with spec.server, elsewhere."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "(has(self.spec.server) && self.spec.server != '') ||"
                    f" (self.metadata.name.size() <= {MANAGED_NAME_LENGTH}"
                    " && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
                    "metadata.name must be a DNS label that begins with a letter and has at most"
                    f" {MANAGED_NAME_LENGTH} characters: Services and StatefulSets are named after it",
                    field=".metadata.name",
                ),
                cel(
                    "self.metadata.name.size() <= 63",
                    "metadata.name must have at most 63 characters: it is used as a label",
                    field=".metadata.name",
                ),
            ]
        }
    )

    kind: Literal["Cluster"] = "Cluster"
    metadata: ObjectMeta
    spec: ClusterSpec = Field(default_factory=ClusterSpec)
    """The desired state of the cluster."""
    status: ClusterStatus = Field(default_factory=ClusterStatus)
    """The observed state of the cluster."""

    @property
    def slurm_name(self) -> str:
        """ClusterName in slurm.conf."""
        if self.spec.cluster_name is not None:
            return self.spec.cluster_name
        joined = f"{self.namespace}_{self.name}"
        return joined if len(joined) <= MANAGED_NAME_LENGTH else self.name
