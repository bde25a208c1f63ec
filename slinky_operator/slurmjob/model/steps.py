"""What a pass over a SlurmJob may do, with all that doing it takes; when it is done is decided in `plan`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import TypeAlias

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import JobEnd
from slinky_operator.jobs.tenants import Grant
from slinky_operator.jobs.translation import Submission
from slinky_operator.slurmjob.model.dependencies import Ready
from slinky_operator.slurmjob.model.news import News, NoNews
from slinky_operator.slurmjob.model.slurm_records.records import Seen


class OrderKind(Enum):
    """What the operator orders Slurm to do with a job."""

    CANCEL = auto()
    HOLD = auto()
    RELEASE = auto()


@dataclass(frozen=True, slots=True)
class Order:
    """The last order about a job that was given to Slurm.

    Parameters
    ----------
    kind
        What it was.
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

    kind: OrderKind
    job_id: int
    generation: int
    at: datetime
    again: datetime
    refusal: str = ""
    refusals: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A job that nothing keeps from being submitted.

    Parameters
    ----------
    cluster
        Whose Slurm gets it.
    grant
        As whom.
    submission
        What its spec says.
    ready
        The jobs that it waits for in Slurm.
    """

    cluster: Cluster
    grant: Grant
    submission: Submission
    ready: Ready


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing is done."""


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """The object is kept from going, before Slurm is asked."""


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """The object may go.

    Parameters
    ----------
    is_left_behind
        Whether a job may run on that nobody can end.
    ended
        The end of the job, where no status will show it any more.
    """

    is_left_behind: bool = False
    ended: Seen | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """The object is deleted: it has been finished for long enough."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Files are copied to the nodes before the job is submitted."""

    request: Request


@dataclass(frozen=True, slots=True)
class Submit:
    """The job is submitted.

    Parameters
    ----------
    request
        The job.
    attempt
        Which submission it is, from 0.
    failed
        Number of the job before, which has failed; None if there is none.
    again
        Whether it asks for the nodes that an earlier job had.
    """

    request: Request
    attempt: int = 0
    failed: int | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class DryRun:
    """The request that would submit the job is shown."""

    request: Request


@dataclass(frozen=True, slots=True)
class AskHistory:
    """slurmdbd is asked how the job has ended."""


@dataclass(frozen=True, slots=True)
class AskAllocation:
    """slurmctld is asked what a job without a script was given."""

    seen: Seen


@dataclass(frozen=True, slots=True)
class RecordEnd:
    """The end of the work of a job without a script is written into Slurm's accounting.

    Parameters
    ----------
    job_id
        The job.
    end
        How.
    until
        When the operator gives up.
    """

    job_id: int
    end: JobEnd
    until: datetime


@dataclass(frozen=True, slots=True)
class GiveOrder:
    """Slurm gets the order to cancel, hold or release a job."""

    kind: OrderKind
    seen: Seen


@dataclass(frozen=True, slots=True)
class CancelSecond:
    """A job is cancelled besides the one that counts."""

    seen: Seen


Step: TypeAlias = (
    Nothing
    | AddFinalizer
    | RemoveFinalizer
    | Delete
    | Prepare
    | Submit
    | DryRun
    | AskHistory
    | AskAllocation
    | RecordEnd
    | GiveOrder
    | CancelSecond
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The next step, and what is to be shown.

    Parameters
    ----------
    step
        What is done.
    news
        What is shown.
    wake
        Seconds until the next look; None to wait for an event.
    """

    step: Step = field(default_factory=Nothing)
    news: News = field(default_factory=NoNews)
    wake: float | None = None
