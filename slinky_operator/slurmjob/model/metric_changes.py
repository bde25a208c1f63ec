"""What a change of a SlurmJob's status adds to metrics.

Each figure belongs to a change that the status records, so neither a pass that is repeated nor an operator that is
restarted counts it again. One that ends between the write and its count loses the figure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, find, is_true
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob, SlurmJobStatus
from slinky_operator.metrics.job_changes import JobChanges

_OF_ITS_OWN: Final = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.JOBS_NOT_ALLOWED,
        Reason.SUSPENDED,
        Reason.DEPENDENCY_NOT_SUBMITTED,
        Reason.DEPENDENCY_NOT_FINISHED,
        Reason.DEPENDENCY_LOOP,
        Reason.DEPENDENCY_NEVER_SATISFIED,
        Reason.VOLUME_NOT_FOUND,
        Reason.PREPARING,
        Reason.PREPARE_FAILED,
        Reason.CLUSTER_NOT_FOUND,
    }
)
"""What a job waits for as its spec says; any other wait is that of the operator or of Slurm."""


def ready_since(job: SlurmJob, now: datetime, before: datetime | None) -> datetime | None:
    """From when on a job that Slurm does not have could have been submitted, as far as it is known.

    Parameters
    ----------
    before
        What the last pass has said; None if this is the first one.

    Returns
    -------
    datetime or None
        Its creation, or this pass if the one before has found it waiting for something of its own. An operator that
        was restarted does not know of waits before the last one.
    """
    known = find(job.status.conditions, SlurmJobCondition.SUBMITTED)
    if known is not None and known.status != "True" and known.reason in _OF_ITS_OWN:
        return now
    return before or job.metadata.creation_timestamp


def count(
    changes: JobChanges, before: SlurmJobStatus, after: SlurmJobStatus, ready: datetime | None, now: datetime
) -> None:
    """Count what has happened between two statuses, once the second one is written.

    Parameters
    ----------
    ready
        From when on the job could have been submitted; None if it is not known.
    """
    attempt = _attempt(after)
    if _attempt(before) != attempt:
        # It has begun, or is taken back: what is shown was counted when it happened.
        return
    if before.job_id is None and after.job_id is not None and not attempt and ready is not None:
        changes.submitted((now - ready).total_seconds())
    if before.start_time is None and _has_started(after) and after.submit_time is not None and after.start_time:
        changes.started((after.start_time - after.submit_time).total_seconds())
    if not _has_ended(before) and _has_ended(after):
        changes.ended(after.reason)
    if not _is_unknown(before) and _is_unknown(after):
        changes.unknown()


def _attempt(status: SlurmJobStatus) -> int | None:
    return status.submission.attempt if status.submission is not None else None


def _has_started(status: SlurmJobStatus) -> bool:
    """Whether it is the first run; what is cancelled in the queue has a time, but no nodes."""
    return bool(status.nodes) and not status.restarts


def _has_ended(status: SlurmJobStatus) -> bool:
    """Whether a job has ended, not only its object: a dry run, or what was cancelled before, has none."""
    return status.job_id is not None and is_true(status.conditions, SlurmJobCondition.FINISHED)


def _is_unknown(status: SlurmJobStatus) -> bool:
    known = find(status.conditions, SlurmJobCondition.SUBMITTED)
    return known is not None and known.reason == Reason.SUBMISSION_UNKNOWN
