"""Submissions that follow one that has failed (`spec.backoffLimit`). Pure.

The failure is noted in the status before anything else is done: Slurm may forget the job long before it takes another
one, and what was seen once must not be lost. A job that cannot be submitted again has ended with its failure.
"""

from __future__ import annotations

from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.kind import JobFailure, SlurmJob, SlurmJobStatus
from slinky_operator.jobs.phases import Phase, Shown
from slinky_operator.jobs.phases import Reason as ShownReason
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.stages import cancellation

_KNOWN: Final = frozenset(reason.value for reason in ShownReason)


def is_followed(job: SlurmJob, seen: Seen) -> bool:
    """Whether another submission is to follow a job that has ended; none does if somebody ended a part of it."""
    attempt = job.status.submission.attempt if job.status.submission is not None else 0
    is_failure = seen.shown.phase is Phase.FAILED and not seen.is_cancelled
    return is_failure and attempt < job.spec.backoff_limit and not cancellation.is_asked(job)


def failure_of(seen: Seen) -> JobFailure:
    """What is noted of a failure."""
    shown = seen.shown
    return JobFailure(reason=shown.reason.value, message=shown.message, exit_code=shown.exit_code, signal=shown.signal)


def noted(status: SlurmJobStatus) -> Seen | None:
    """The failure that was noted, as Slurm once showed it; None if there is none."""
    begun = status.submission
    if begun is None or begun.failure is None or status.job_id is None:
        return None
    failure = begun.failure
    reason = ShownReason(failure.reason) if failure.reason in _KNOWN else ShownReason.FAILED
    return Seen(
        job_id=status.job_id,
        shown=Shown(Phase.FAILED, reason, failure.message, failure.exit_code, failure.signal),
        user=status.user or "",
        account=status.account or "",
        partition=status.partition or "",
        nodes=status.nodes or "",
        slurm_reason=status.slurm_reason or "",
        submit_time=status.submit_time,
        start_time=status.start_time,
        end_time=status.end_time,
        deadline=status.deadline,
        restarts=status.restarts or 0,
        array=status.array,
        tasks=status.tasks,
        output=status.output or "",
    )


def words(job: SlurmJob, seen: Seen) -> tuple[Reason, str]:
    """What is shown between the failure, or the loss, of a job and the next submission."""
    if seen.shown.reason is ShownReason.LOST:
        return Reason.JOB_LOST, f"{seen.shown.message}: it is submitted again for these nodes"
    attempt = job.status.submission.attempt if job.status.submission is not None else 0
    last = job.spec.backoff_limit + 1
    return (
        Reason.SUBMITTED_AGAIN,
        f"job {seen.job_id} failed and is submitted again ({attempt + 2} of {last}): {seen.shown.message}",
    )
