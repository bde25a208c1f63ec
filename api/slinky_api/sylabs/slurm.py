"""Kind SlurmJob of ``slurm.sylabs.io/v1alpha1``: a batch script that a pod submitted from a node, or by ssh."""

from typing import Annotated, Final, Literal

from pydantic import Field

from slinky_api.resource import Resource
from slinky_api.sylabs.common import COLUMNS, Batch, NodeSelector, OldJob, OldModel
from slinky_api.v1alpha1.fields import AnyMap
from slinky_api.v1alpha1.slurmjob.submission import JobText

__all__ = ["GROUP", "SLURMJOB", "OutputResults", "SlurmJob", "SlurmJobSpec", "Ssh"]

GROUP: Final = "slurm.sylabs.io"

SLURMJOB: Final = Resource(GROUP, "v1alpha1", "SlurmJob", "slurmjobs", "slurmjob", ("sj",), ("slurm",), COLUMNS)


class OutputResults(OldModel):
    """A file that the job leaves."""

    mount: AnyMap
    """The volume that it is copied to, into a folder with the name of the object."""
    source: JobText | None = Field(default=None, alias="from")
    """The file: a path on the nodes, relative to the job's folder or absolute. Default: the job's standard output."""


class Ssh(OldModel):
    """A login by ssh. Refused."""

    user: Annotated[str, Field(min_length=1, max_length=256)]
    """User of the login."""
    key: AnyMap = Field(default_factory=dict)
    """Where its key is."""
    password: AnyMap = Field(default_factory=dict)
    """Where its password is."""


class SlurmJobSpec(OldModel):
    """The desired job."""

    batch: Batch
    """The batch script, with its #SBATCH lines."""
    node_selector: NodeSelector = Field(default_factory=dict)
    """Labels of the node from which the job was submitted."""
    resources: AnyMap = Field(default_factory=dict)
    """Extended resources of the pod that submitted the job. Refused: jobs ask Slurm for what they need."""
    pod_security_context: AnyMap = Field(default_factory=dict)
    """Of the pod that submitted the job. Refused: no pod does."""
    ssh: Ssh | None = None
    """How the pod that submitted the job logged in. Refused: no pod does."""
    results: OutputResults | None = None
    """A file that is copied from the nodes after the job has ended."""


class SlurmJob(OldJob):
    """A batch script as a job."""

    api_version: str = SLURMJOB.api_version
    kind: Literal["SlurmJob"] = "SlurmJob"
    spec: SlurmJobSpec
    """The desired job."""
