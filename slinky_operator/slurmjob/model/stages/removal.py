"""What is still done once the job of a SlurmJob has ended, and before its object goes. Pure.

Results are collected first, for a limited time once the object is deleted. A job that still runs is then cancelled,
unless the user wants to keep it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, is_true
from slinky_operator.slurmjob.model.job_files import is_collecting
from slinky_operator.slurmjob.model.news import NoNews, Record
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import cancellation, external, holds_and_cancels, late_calls, obstacles
from slinky_operator.slurmjob.model.stages.obstacles import OBSTACLE_S, RETRY_S
from slinky_operator.slurmjob.model.stages.submission import has_finalizer
from slinky_operator.slurmjob.model.stages.submitted import SKEW, listed_from
from slinky_operator.slurmjob.model.steps import Delete, OrderKind, Plan, RemoveFinalizer

COLLECTED: Final = timedelta(minutes=10)
"""For so long an object that is deleted waits for the results of its job to be collected."""


def ended(snapshot: Snapshot) -> Plan:
    """The job has ended: nothing of it is left to cancel. Its results are collected first."""
    if is_collecting(snapshot.job):
        return Plan()
    recorded = external.recording(snapshot)
    if recorded is not None:
        return recorded
    if has_finalizer(snapshot):
        return Plan(RemoveFinalizer())
    seconds = snapshot.job.spec.ttl_seconds_after_finished
    condition = next(one for one in snapshot.job.status.conditions if one.type == SlurmJobCondition.FINISHED)
    # What runs for such a job may run on, and ends with this object.
    is_left_behind = snapshot.job.spec.external is not None and condition.reason == Reason.CLUSTER_GONE
    if seconds is None or is_left_behind:
        return Plan()
    ends = condition.last_transition_time or snapshot.now
    left = (ends + timedelta(seconds=seconds) - snapshot.now).total_seconds()
    return Plan(Delete()) if left <= 0 else Plan(wake=left)


def deleting(snapshot: Snapshot) -> Plan:
    """The object goes: its job is cancelled first, unless the user wants to keep it."""
    job = snapshot.job
    if not has_finalizer(snapshot):
        return Plan()
    begun = job.status.submission
    finished = is_true(job.status.conditions, SlurmJobCondition.FINISHED)
    left = _left_to_do(snapshot) if finished else None
    if left is not None:
        return left
    is_kept = job.spec.cancel_policy == "Keep" and not cancellation.is_asked(job)
    if begun is None or finished or is_kept:
        return Plan(RemoveFinalizer())
    if snapshot.cluster is None and snapshot.obstacle is None:
        return Plan(RemoveFinalizer(is_left_behind=True))
    obstacle = obstacles.of(snapshot)
    if obstacle is not None:
        return Plan(news=cancellation.awaiting(job, obstacle), wake=OBSTACLE_S)
    return _cancelling(snapshot)


def _left_to_do(snapshot: Snapshot) -> Plan | None:
    """What is still done, for a limited time, before the object of a job goes that has ended; None if nothing is."""
    since = snapshot.job.metadata.deletion_timestamp
    if is_collecting(snapshot.job) and since is not None and snapshot.now - since < COLLECTED:
        return Plan(wake=RETRY_S)
    return external.recording(snapshot)


def _cancelling(snapshot: Snapshot) -> Plan:
    """The job is ended, and has left its nodes, before the object goes."""
    looked = snapshot.looked
    if looked is None:
        return Plan(wake=RETRY_S)
    if looked.seen is None:
        until = listed_from(snapshot) + SKEW
        if looked.at >= until:
            return Plan(RemoveFinalizer())
        # A call that was under way when the object went may still arrive.
        news = late_calls.looking(until) if snapshot.job.status.job_id is None else NoNews()
        return Plan(news=news, wake=RETRY_S)
    if looked.seen.is_finished and external.end_of(snapshot.job) is not None and snapshot.keeps_history:
        # Noted first: its end is written into accounting before the object goes.
        return Plan(news=Record(external.ended(snapshot, looked.seen)))
    if looked.seen.is_finished:
        return Plan(RemoveFinalizer(ended=looked.seen))
    return holds_and_cancels.due(snapshot, OrderKind.CANCEL, looked.seen)
