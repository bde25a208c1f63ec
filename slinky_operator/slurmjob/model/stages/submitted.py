"""Jobs that Slurm has taken: what is shown of them, and what follows from that. Pure.

slurmctld forgets a job some time after its end, and slurmdbd learns of an end later. An end that neither has shown is
not concluded from silence: the job then counts as one whose end was not seen.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.jobs import phases, tenants
from slinky_operator.jobs.phases import Phase
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.slurmjob.model.news import Conclusion, Note, Record, with_note
from slinky_operator.slurmjob.model.slurm_records import arrays
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import (
    attempts,
    cancellation,
    external,
    holds_and_cancels,
    late_calls,
    lost,
    obstacles,
    submission,
)
from slinky_operator.slurmjob.model.stages.obstacles import OBSTACLE_S, RETRY_S
from slinky_operator.slurmjob.model.steps import AskHistory, OrderKind, Plan

SKEW: Final = timedelta(seconds=2)
"""By which the clocks of two operators may differ."""

HISTORY_PATIENCE: Final = timedelta(seconds=60)
"""slurmctld tells slurmdbd of an end later; so long is waited for it."""

CLUSTER_GONE: Final = timedelta(minutes=10)
"""For so long a Cluster may be created again before its jobs count as ended."""


def submitted(snapshot: Snapshot) -> Plan:
    """Slurm has taken the job."""
    failure = attempts.noted(snapshot.job.status)
    if failure is not None:
        return _after(snapshot, failure)
    obstacle = obstacles.of(snapshot)
    if obstacle is not None:
        why = cancellation.awaiting(snapshot.job, obstacle)
        return _left_behind(snapshot) if _is_gone(snapshot) else Plan(news=why, wake=OBSTACLE_S)
    looked = snapshot.looked
    if looked is None:
        return Plan(wake=RETRY_S)
    if looked.seen is not None:
        return shown(snapshot, looked.seen)
    if looked.at < listed_from(snapshot) + SKEW:
        return Plan(wake=RETRY_S)
    return _forgotten(snapshot)


def _after(snapshot: Snapshot, failure: Seen) -> Plan:
    """The job has failed, or is lost, and that was noted."""
    if failure.shown.reason is phases.Reason.LOST:
        return _left_behind(snapshot) if _is_gone(snapshot) else lost.followed(snapshot, failure)
    return Plan(news=Record(failure)) if _is_gone(snapshot) else _followed(snapshot, failure)


def _is_gone(snapshot: Snapshot) -> bool:
    """Whether there has been no Cluster for so long that none is waited for."""
    since = snapshot.cluster_gone_since
    return since is not None and snapshot.now - since >= CLUSTER_GONE


def _left_behind(snapshot: Snapshot) -> Plan:
    namespace, name = snapshot.job.cluster_key
    words = f"Cluster {namespace}/{name} is gone: the end of job {snapshot.job.status.job_id} is not known"
    return Plan(news=Conclusion(Phase.UNKNOWN.value, Note(Reason.CLUSTER_GONE, words)))


def listed_from(snapshot: Snapshot) -> datetime:
    """From when on Slurm's list has the job, as long as slurmctld remembers it."""
    begun = snapshot.job.status.submission
    if begun is None:
        return snapshot.now
    if begun.answered_at is not None:
        return begun.answered_at
    started = begun.started_at or snapshot.now
    return started if snapshot.job.status.job_id is not None else started + late_calls.settled(snapshot.cluster)


def _forgotten(snapshot: Snapshot) -> Plan:
    """slurmctld does not list the job any more: slurmdbd knows how it ended."""
    if snapshot.keeps_history:
        if snapshot.history is None:
            return Plan(AskHistory(), wake=RETRY_S)
        seen = snapshot.history.seen
        if seen is not None and seen.is_finished:
            return shown(snapshot, seen)
        since = snapshot.missing_since or snapshot.now
        if snapshot.now - since < HISTORY_PATIENCE:
            return Plan(wake=RETRY_S)
    end = external.end_of(snapshot.job)
    if end is not None:
        return external.concluded(end, f"Slurm had forgotten job {snapshot.job.status.job_id} by then")
    if lost.has_nodes(snapshot.job):
        return lost.noted(snapshot, None)
    message = "Slurm forgot the job before the operator saw its end"
    message += "" if snapshot.keeps_history else "; the Cluster has no accounting that would have recorded it"
    return Plan(news=Conclusion(Phase.UNKNOWN.value, Note(Reason.END_NOT_SEEN, message)))


def shown(snapshot: Snapshot, seen: Seen) -> Plan:
    """Show what Slurm says, and act on it."""
    if seen.unseen:
        return _unseen(snapshot, seen)
    if seen.is_finished:
        # Noted first; what follows is decided by the pass that finds it noted.
        last = external.ended(snapshot, seen)
        known = Plan(news=Record(last, is_followed=attempts.is_followed(snapshot.job, last)))
        return lost.noted(snapshot, seen) if lost.has_lost_wait(snapshot, seen) else known
    is_new = external.needs_allocation(snapshot, seen)
    now = external.awaiting(seen) if is_new else seen
    if snapshot.job.status.job_id is None:
        return Plan(news=Record(now))
    unusable = external.unusable(snapshot, seen)
    if unusable is not None or cancellation.is_asked(snapshot.job):
        planned = holds_and_cancels.due(snapshot, OrderKind.CANCEL, now)
        return replace(planned, news=with_note(planned.news, unusable)) if unusable is not None else planned
    is_lost = lost.has_lost_start(snapshot, seen)
    planned = lost.noted(snapshot, seen) if is_lost else holds_and_cancels.held(snapshot, seen)
    return external.read(snapshot, seen, planned) if is_new and not is_lost else planned


def _followed(snapshot: Snapshot, failure: Seen) -> Plan:
    """The job has failed, and another is submitted if that is still wanted and possible."""
    job, begun = snapshot.job, snapshot.job.status.submission
    attempt = begun.attempt if begun is not None else 0
    can_be = isinstance(snapshot.granted, tenants.Grant) and not isinstance(snapshot.submission, InvalidJob)
    if not attempts.is_followed(job, failure) or (snapshot.cluster is not None and not can_be):
        return Plan(news=Record(failure))
    looked = snapshot.looked
    if looked is not None and looked.seen is not None and not looked.seen.is_finished:
        # slurmctld was killed before it had written the end, and has the job in its queue again.
        return shown(snapshot, looked.seen)
    obstacle = obstacles.of(snapshot)
    if obstacle is not None:
        return Plan(news=obstacle, wake=OBSTACLE_S)
    if looked is None:
        return Plan(wake=RETRY_S)
    return submission.submit(snapshot, attempt + 1, failed=failure.job_id)


def _unseen(snapshot: Snapshot, seen: Seen) -> Plan:
    """All tasks of an array that slurmctld lists have ended, but it does not list all: slurmdbd knows of them."""
    if not snapshot.keeps_history:
        return _not_seen(seen)
    if snapshot.history is None:
        return Plan(AskHistory(), wake=RETRY_S)
    told = snapshot.history.seen
    if told is not None and told.is_finished and not told.unseen:
        return shown(snapshot, told)
    if snapshot.now - (snapshot.missing_since or snapshot.now) < HISTORY_PATIENCE:
        return Plan(news=Record(arrays.awaited(seen)), wake=RETRY_S)
    if told is None or not told.is_finished:
        return _not_seen(seen)
    return Plan(news=Record(arrays.never_started(told)))


def _not_seen(seen: Seen) -> Plan:
    """Nobody knows of the other tasks. No other job follows, since one may have been cancelled."""
    known, count = seen.array, seen.unseen
    succeeded, failed = (known.succeeded, known.failed) if known is not None else (0, 0)
    words = (
        f"the array has ended, and Slurm has forgotten {count} of its tasks before their end was seen, or they were "
        f"cancelled before they started; at least {succeeded} have succeeded, at least {failed} have failed"
    )
    if failed:
        # That much is certain.
        shown_too = replace(seen.shown, message=f"{seen.shown.message}; {words}")
        return Plan(news=Record(replace(seen, shown=shown_too)))
    return Plan(news=Conclusion(Phase.UNKNOWN.value, Note(Reason.END_NOT_SEEN, words), seen))
