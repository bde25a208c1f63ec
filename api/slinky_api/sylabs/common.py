"""What the old job kinds share: objects that keep unknown fields, node selectors, transfers of files, the status."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from slinky_api.resource import Column
from slinky_api.v1alpha1.common import ApiModel, ApiObject, ObjectMeta
from slinky_api.v1alpha1.fields import AnyMap
from slinky_api.v1alpha1.slurmjob.submission import JobText, NumberOrText

__all__ = [
    "COLUMNS",
    "MAX_BATCH",
    "Batch",
    "JobStatus",
    "NodeSelector",
    "OldJob",
    "OldModel",
    "Prepare",
    "Results",
    "Word",
]

MAX_BATCH: Final = 1_048_576
"""Most characters of a script."""

COLUMNS: Final = (
    Column("AGE", ".metadata.creationTimestamp", "date"),
    Column("STATUS", ".status.status", "string", "Status of the job."),
    Column("JOB", ".status.jobId", "integer", "Number of the job in Slurm."),
    Column("REASON", ".status.reason", "string", "Why it has this status."),
    Column("MESSAGE", ".status.message", "string", "The same in one sentence.", wide=True),
)

Batch = Annotated[str, Field(min_length=1, max_length=MAX_BATCH)]
"""A batch script."""

NodeSelector = Annotated[dict[str, NumberOrText], Field(max_length=64)]
"""Labels and the values they must have. A value may be written as a number, as in ``wlm.sylabs.io/cuda: 10``."""

Word = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
"""What ``status.status`` says: the phase of a pod."""


class OldModel(ApiModel):
    """A part of an old kind; fields that it does not have are kept, also those in Python's spelling."""

    model_config = ConfigDict(extra="allow", validate_by_name=False)

    def unknown_fields(self, path: str) -> Iterator[str]:
        """Give the paths of fields that the kind does not have.

        Parameters
        ----------
        path
            Path of this part: ``spec``.
        """
        for name in self.model_extra or {}:
            yield f"{path}.{name}"
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if isinstance(value, OldModel):
                yield from value.unknown_fields(f"{path}.{field.alias or name}")


class Prepare(OldModel):
    """Files that the job needs."""

    mount: AnyMap
    """The volume that they are in."""
    to: JobText
    """Where they are copied to: a path on the nodes, relative to the job's folder or absolute."""


class Results(OldModel):
    """Files that the job leaves."""

    mount: AnyMap
    """The volume that they are copied to, into a folder with the name of the object."""
    source: JobText = Field(alias="from")
    """What is copied: a path on the nodes, relative to the job's folder or absolute."""


class JobStatus(ApiModel):
    """The observed state of the job."""

    status: Word | None = None
    """Pending, Running, Succeeded, Failed or Unknown. A job that waits in the queue is Pending."""
    job_id: int | None = None
    """Number of the job in Slurm."""
    reason: Annotated[str, Field(max_length=256)] = ""
    """Why it has this status, as one word."""
    message: Annotated[str, Field(max_length=1024)] = ""
    """The same in one sentence; for an object that is refused, the field and what to write instead."""
    observed_generation: int | None = None
    """The generation of the spec that this status describes."""


class OldJob(ApiObject):
    """Base of the old kinds."""

    metadata: ObjectMeta
    status: JobStatus = Field(default_factory=JobStatus)
    """The observed state of the job."""
