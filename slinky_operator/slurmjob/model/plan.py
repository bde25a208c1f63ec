"""The next step for a SlurmJob, and what it shows meanwhile. Pure.

A submission is begun in the status before Slurm is asked, so a process that ends between the two leaves a trace. Then
the job is looked for by its mark: in lists that were asked for long enough after the beginning (`late_calls`). Only
what is not there is submitted again. A call that arrives later all the same leads to a second job: it is cancelled.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, is_true
from slinky_operator.slurmjob.model.news import NoNews, Note, Record
from slinky_operator.slurmjob.model.slurm_records import arrays
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import (
    cancellation,
    late_calls,
    obstacles,
    removal,
    submission,
    submitted,
    unanswered,
)
from slinky_operator.slurmjob.model.stages.obstacles import RETRY_S
from slinky_operator.slurmjob.model.stages.submitted import HISTORY_PATIENCE
from slinky_operator.slurmjob.model.steps import CancelSecond, Plan, RemoveFinalizer

HISTORY_AWAY_S: Final = 30.0
"""Seconds between two questions to a slurmdbd that has not answered for `HISTORY_PATIENCE`."""


def plan(snapshot: Snapshot) -> Plan:
    """Decide on the next step."""
    second = late_calls.to_cancel(snapshot)
    if second is not None:
        return Plan(CancelSecond(second))
    planned = _next(snapshot)
    step = planned.step
    if isinstance(step, RemoveFinalizer) and late_calls.is_kept(snapshot):
        note = late_calls.why_kept(snapshot, obstacles.of(snapshot))
        return Plan(news=Record(step.ended, note) if step.ended is not None else note or NoNews(), wake=RETRY_S)
    return planned


def _next(snapshot: Snapshot) -> Plan:
    job = snapshot.job
    begun = job.status.submission
    if job.deleting:
        return removal.deleting(snapshot)
    if is_true(job.status.conditions, SlurmJobCondition.FINISHED):
        return removal.ended(snapshot)
    if begun is None:
        return cancellation.not_submitted(job) if cancellation.is_asked(job) else submission.before(snapshot)
    if job.status.job_id is None:
        return unanswered.unless_unknown(snapshot, unanswered.looked_for(snapshot))
    return submitted.submitted(snapshot)


def without_history(snapshot: Snapshot, away_since: datetime) -> Plan:
    """What is shown while slurmdbd does not answer what is to be asked; nothing is concluded.

    Parameters
    ----------
    away_since
        Since when it has not answered.
    """
    wake = RETRY_S if snapshot.now - away_since < HISTORY_PATIENCE else HISTORY_AWAY_S
    number = snapshot.job.status.job_id
    if number is None:
        words = (
            "Slurm's answer to the submission was lost, slurmctld does not list the job, and slurmdbd does not answer"
        )
        note = Note(Reason.SUBMITTING, f"{words}; the operator asks again")
        return unanswered.unless_unknown(snapshot, Plan(news=note, wake=wake))
    seen = snapshot.looked.seen if snapshot.looked is not None else None
    what = f"job {number}" if seen is None else f"tasks of job {number}"
    words = f"slurmctld has forgotten {what}, and slurmdbd, which knows how it ended, does not answer"
    note = Note(Reason.ACCOUNTING_DOWN, f"{words}; the operator asks again")
    return Plan(news=note if seen is None else Record(arrays.awaited(seen), note), wake=wake)
