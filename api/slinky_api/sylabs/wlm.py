"""Kinds SlurmJob and WlmJob of ``wlm.sylabs.io/v1alpha1``: a batch script, and a container image, as a job.

Their fields are those of wlm-operator; ``prepare`` is of its fork.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from slinky_api.resource import Resource
from slinky_api.sylabs.common import COLUMNS, Batch, NodeSelector, OldJob, OldModel, Prepare, Results
from slinky_api.v1alpha1.slurmjob.submission import JobText

__all__ = [
    "GROUP",
    "SLURMJOB",
    "WLMJOB",
    "ContainerOptions",
    "ContainerResources",
    "SlurmJob",
    "SlurmJobSpec",
    "WlmJob",
    "WlmJobSpec",
]

GROUP: Final = "wlm.sylabs.io"
VERSION: Final = "v1alpha1"

SLURMJOB: Final = Resource(GROUP, VERSION, "SlurmJob", "slurmjobs", "slurmjob", ("sj",), ("slurm",), COLUMNS)
WLMJOB: Final = Resource(GROUP, VERSION, "WlmJob", "wlmjobs", "wlmjob", ("wj",), ("slurm",), COLUMNS)

_Amount = Annotated[int, Field(ge=0, lt=2**31 - 1)]
"""A number for which 0 is the same as none."""


class SlurmJobSpec(OldModel):
    """The desired job."""

    batch: Batch
    """The batch script, with its #SBATCH lines."""
    node_selector: NodeSelector = Field(default_factory=dict)
    """Labels of the virtual nodes that stood for partitions."""
    prepare: Prepare | None = None
    """Files that are copied to the nodes before the job starts."""
    results: Results | None = None
    """Files that are copied from the nodes after the job has ended."""


class SlurmJob(OldJob):
    """A batch script as a job."""

    api_version: str = SLURMJOB.api_version
    kind: Literal["SlurmJob"] = "SlurmJob"
    spec: SlurmJobSpec
    """The desired job."""


class ContainerOptions(OldModel):
    """How the container runs."""

    allow_unsigned: bool = False
    """Whether an image without a signature that can be verified may run."""
    clean_env: bool = False
    """Whether the container gets no variables of the job."""
    fake_root: bool = False
    """Whether the user is root inside of the container."""
    ipc: bool = False
    """Whether the container has an IPC namespace of its own."""
    pid: bool = False
    """Whether the container has a PID namespace of its own."""
    no_privs: bool = False
    """Whether root has no privileges in the container."""
    writable: bool = False
    """Whether the container may write to its file system."""
    app: JobText | None = None
    """Application of the image to run."""
    host_name: JobText | None = None
    """Host name inside of the container."""
    binds: Annotated[tuple[JobText, ...], Field(max_length=64)] = ()
    """Paths to mount, as source[:destination[:options]]."""


class ContainerResources(OldModel):
    """What the job needs."""

    nodes: _Amount = 0
    """Number of nodes; the image runs once on each."""
    cpu_per_node: _Amount = 0
    """CPUs on each node."""
    mem_per_node: _Amount = 0
    """Memory on each node, in MiB."""
    wall_time: _Amount = 0
    """Time limit, in seconds; Slurm rounds it up to minutes."""


class WlmJobSpec(OldModel):
    """The desired job."""

    image: JobText
    """The image, for example docker://alpine:3, or local.file/path/of.sif for a file on the nodes."""
    options: ContainerOptions = Field(default_factory=ContainerOptions)
    """How the container runs."""
    resources: ContainerResources = Field(default_factory=ContainerResources)
    """What the job needs."""
    node_selector: NodeSelector = Field(default_factory=dict)
    """Labels of the virtual nodes that stood for partitions."""
    prepare: Prepare | None = None
    """Files that are copied to the nodes before the job starts."""
    results: Results | None = None
    """Files that are copied from the nodes after the job has ended."""


class WlmJob(OldJob):
    """A container image as a job."""

    api_version: str = WLMJOB.api_version
    kind: Literal["WlmJob"] = "WlmJob"
    spec: WlmJobSpec
    """The desired job."""
