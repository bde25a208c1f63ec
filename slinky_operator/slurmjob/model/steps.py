"""What a pass over a SlurmJob may do, and what it shows meanwhile; when it does so is decided in `plan`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import JobRequest
from slinky_operator.slurmjob.model.slurm_records.records import Seen


class Step(Enum):
    """What is done."""

    NOTHING = auto()
    ADD_FINALIZER = auto()
    REMOVE_FINALIZER = auto()
    PREPARE = auto()
    SUBMIT = auto()
    DRY_RUN = auto()
    ASK_HISTORY = auto()
    CANCEL = auto()
    CANCEL_SECOND = auto()
    HOLD = auto()
    RELEASE = auto()
    DELETE = auto()


ORDERS: Final = frozenset({Step.CANCEL, Step.HOLD, Step.RELEASE})
"""Steps that change a job in Slurm."""


@dataclass(frozen=True, slots=True)
class Order:
    """The last order about a job that was given to Slurm.

    Parameters
    ----------
    step
        One of `ORDERS`.
    job_id
        The job.
    generation
        Of the spec that asked for it.
    at
        When Slurm had answered: lists that were asked for before do not show what has become of it.
    again
        The same order for the same spec is not given again before.
    refusal
        Why Slurm has not carried it out, in its own words; empty if it has.
    refusals
        How often in a row it has not.
    """

    step: Step
    job_id: int
    generation: int
    at: datetime
    again: datetime
    refusal: str = ""
    refusals: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The next step, and what is to be shown.

    Parameters
    ----------
    step
        What is done.
    wake
        Seconds until the next look; None to wait for an event.
    seen
        What Slurm says of the job, to be shown; None for what was known before.
    why
        Why the job is not in Slurm, is not known there any more, or is not as the spec wants it.
    attempt
        Of `Step.SUBMIT`: which submission it is.
    failed
        Of `Step.SUBMIT`: number of the job before, which has failed.
    left_behind
        Of `Step.REMOVE_FINALIZER`: whether a job may run on that nobody can end.
    ends_as
        State of a job that counts as ended although Slurm has not said so; empty for all others.
    request
        What a dry run has come to.
    second
        Of `Step.CANCEL_SECOND`: the job that is cancelled besides the one that counts.
    is_followed
        Whether what was seen is the failure of a job after which another is submitted: it is noted first.
    is_held
        Whether the operator holds the job; None for what was noted before.
    """

    step: Step = Step.NOTHING
    wake: float | None = None
    seen: Seen | None = None
    why: tuple[Reason, str] | None = None
    attempt: int = 0
    failed: int | None = None
    left_behind: bool = False
    ends_as: str = ""
    request: JobRequest | None = None
    second: Seen | None = None
    is_followed: bool = False
    is_held: bool | None = None
