"""What a Cluster shows of itself."""

from datetime import datetime
from typing import Annotated

from slinky_api.v1alpha1.common import CONDITIONS, MAP_BY_NAME, SET, ApiModel, Condition


class NodeCounts(ApiModel):
    """Slurm nodes by state, each counted once: as invalid, else as drain, else under its base state."""

    total: int = 0
    """All nodes."""
    idle: int = 0
    """Nodes without a job."""
    allocated: int = 0
    """Nodes with jobs on all of them."""
    mixed: int = 0
    """Nodes with jobs on a part of them."""
    down: int = 0
    """Nodes that cannot be used."""
    drain: int = 0
    """Nodes that are drained or draining, whatever their base state."""
    invalid: int = 0
    """Nodes whose slurmd has registered with less than their record says; sinfo shows inval."""
    other: int = 0
    """Nodes in any other state."""


class JobCounts(ApiModel):
    """Slurm jobs that have not ended, by state."""

    total: int = 0
    """All jobs that have not ended."""
    running: int = 0
    """Jobs that run."""
    pending: int = 0
    """Jobs that wait."""
    suspended: int = 0
    """Jobs that are suspended."""
    completing: int = 0
    """Jobs that are ending."""
    other: int = 0
    """Jobs in any other state."""


class RefusedNodeSet(ApiModel):
    """A NodeSet whose part of the configuration is not used."""

    name: str
    """Name of the NodeSet."""
    message: str = ""
    """Field and reason."""


class ConfigStatus(ApiModel):
    """How far the configuration is."""

    hash: str = ""
    """Hash of the configuration that the spec describes, over all its inputs."""
    applied_hash: str = ""
    """Hash of the one that the daemons run."""
    node_sets: Annotated[tuple[str, ...], SET] = ()
    """NodeSets that the running configuration knows. A NodeSet gets pods only when it is listed here."""
    refused: Annotated[tuple[RefusedNodeSet, ...], MAP_BY_NAME] = ()
    """NodeSets whose part is left out, or left as it was, and why."""


class ClusterStatus(ApiModel):
    """What the cluster is."""

    summary: str = ""
    """What blocks, else what goes on, in a few words."""
    is_ready: bool = False
    """Whether Slurm serves: slurmrestd and slurmctld answer."""
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    """What holds, what does not, and why."""
    server: str | None = None
    """URL of the slurmrestd that is used."""
    slurm_version: str | None = None
    """Version of Slurm."""
    api_version: str | None = None
    """Version of the REST API that was agreed on, for instance v0.0.42."""
    nodes: NodeCounts | None = None
    """Slurm nodes by state."""
    jobs: JobCounts | None = None
    """Slurm jobs by state."""
    config: ConfigStatus | None = None
    """How far the configuration is."""
    slurmd_image: str | None = None
    """Image of slurmd for NodeSets that name none: the operator's setting when the cluster was created, or a newer
    patch release of it."""
    observed_generation: int | None = None
    """The generation of the spec that this status is about."""
    last_contact: datetime | None = None
    """When Slurm last answered; written when it stops answering, not with every answer."""
