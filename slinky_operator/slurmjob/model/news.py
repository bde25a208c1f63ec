"""What a pass over a SlurmJob shows of its job and of its pods. `report` writes it into the status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from slinky_api.conditions import Reason, SlurmJobCondition
from slinky_api.v1alpha1.slurmjob.files import JobFilesStatus
from slinky_api.v1alpha1.slurmjob.kind import JobAllocation, JobLogPlace, JobRequest
from slinky_operator.slurmjob.model.slurm_records.records import Seen


class Note(NamedTuple):
    """Why the job is not in Slurm, is not known there any more, or is not as the spec wants it."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class NoNews:
    """What was known before stays shown."""


@dataclass(frozen=True, slots=True)
class Record:
    """What Slurm says of the job.

    Parameters
    ----------
    seen
        The job in Slurm.
    note
        What else is to be said; None if nothing.
    is_followed
        Whether this is the failure of a job after which another is submitted: it is noted first.
    is_held
        Whether the operator holds the job; None for what was noted before.
    allocation
        What a job without a script was given; None for what was noted before.
    """

    seen: Seen
    note: Note | None = None
    is_followed: bool = False
    is_held: bool | None = None
    allocation: tuple[JobAllocation, ...] | None = None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The job counts as ended although Slurm has not said so.

    Parameters
    ----------
    state
        How it ended.
    note
        Why it counts as ended.
    seen
        What Slurm has said of it last; None if nothing.
    request
        What a dry run has come to; None for all others.
    exit_code
        Of the work of a job without a script; None for all others.
    """

    state: str
    note: Note
    seen: Seen | None = None
    request: JobRequest | None = None
    exit_code: int | None = None


News: TypeAlias = NoNews | Note | Record | Conclusion


def note_of(news: News) -> Note | None:
    """Return the note in news; None if there is none."""
    if isinstance(news, Note):
        return news
    return None if isinstance(news, NoNews) else news.note


def with_note(news: News, note: Note) -> News:
    """Return what Slurm says with another note, or the note alone."""
    return replace(news, note=note) if isinstance(news, Record) else note


@dataclass(frozen=True, slots=True)
class LogsReport:
    """The state of the pod with a job's output.

    Parameters
    ----------
    condition
        Status, reason and message of `LogsAvailable`.
    wake
        Seconds until the next look; None to wait for an event.
    is_complete
        Whether the pod knows how the job has ended, or never will.
    place
        Where the output is, if no pod shows it; None for what is known.
    """

    condition: tuple[str, Reason, str]
    wake: float | None = None
    is_complete: bool = False
    place: JobLogPlace | None = None


@dataclass(frozen=True, slots=True)
class FilesReport:
    """The state of the pods that copy a job's files.

    Parameters
    ----------
    kind
        Type of the condition.
    condition
        Its status, reason and message.
    files
        For the status.
    wake
        Seconds until the next look; None to wait for an event.
    """

    kind: SlurmJobCondition
    condition: tuple[str, Reason, str]
    files: JobFilesStatus
    wake: float | None = None
