"""What a pass over an object of an old kind knows, read once and frozen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slinky_api.sylabs import slurm, wlm
from slinky_api.v1alpha1.slurmjob.kind import SlurmJobStatus
from slinky_operator.jobs import tenants
from slinky_operator.sylabs.clusters import Chosen
from slinky_operator.sylabs.kinds import OldKind


@dataclass(frozen=True, slots=True)
class Child:
    """The SlurmJob of the object's name."""

    is_ours: bool
    """Whether this very object is its controller."""
    of_namesake: bool
    """Whether that is an object of the same kind and name that is gone: the garbage collector deletes the SlurmJob."""
    generation: int | None
    """The generation of the spec that it was made of; None if that is not known."""
    status: SlurmJobStatus


@dataclass(frozen=True, slots=True)
class Unasked:
    """A Slurm that had to be asked which partitions it has, and has not answered."""

    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the plan reads."""

    kind: OldKind
    job: wlm.SlurmJob | wlm.WlmJob | slurm.SlurmJob
    now: datetime
    child: Child | None
    """None if there is none."""
    cluster: Chosen | tenants.Refused | Unasked | None = None
    """Where a SlurmJob would run; None where none is to be created."""
