"""The next step for a SlurmJob, and what it shows meanwhile. Pure.

A submission is begun in the status before Slurm is asked, so a process that ends between the two leaves a trace. Then
the job is looked for by its mark: in lists that were asked for long enough after the beginning (`late_calls`). Only
what is not there is submitted again. A call that arrives later all the same leads to a second job: it is cancelled.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason, SlurmJobCondition, find, is_true
from slinky_operator.jobs import tenants
from slinky_operator.jobs.phases import Phase
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.slurmjob.files.facts import is_collecting, needs_preparation
from slinky_operator.slurmjob.model import attempts, cancellation, dependencies, late_calls, orders
from slinky_operator.slurmjob.model.slurm_records import arrays
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.steps import Plan, Step

REMEMBERED: Final = timedelta(seconds=120)
"""For so long after its submission slurmctld surely remembers a job, unless MinJobAge is set; its default is 300."""

SKEW: Final = timedelta(seconds=2)
"""By which the clocks of two operators may differ."""

LABELS_S: Final = 60.0
"""Seconds until it is looked again whether a namespace is granted a user now."""

RETRY_S: Final = 5.0
"""Seconds until the next look, where no event will come."""

OBSTACLE_S: Final = 60.0
"""The same, where an event will come: of the Cluster, or of the connection to its Slurm."""

HISTORY_PATIENCE: Final = timedelta(seconds=60)
"""slurmctld tells slurmdbd of an end later; so long is waited for it."""

COLLECTED: Final = timedelta(minutes=10)
"""For so long an object that is deleted waits for the results of its job to be collected."""

CLUSTER_GONE: Final = timedelta(minutes=10)
"""For so long a Cluster may be created again before its jobs count as ended."""

HISTORY_AWAY_S: Final = 30.0
"""Seconds between two questions to a slurmdbd that has not answered for `HISTORY_PATIENCE`."""

_NO_NEWS: Final = frozenset(
    {
        Reason.SUBMITTING,
        Reason.SLURM_UNREACHABLE,
        Reason.CLUSTER_NOT_FOUND,
        Reason.CLUSTER_NOT_READY,
        Reason.CLUSTER_GONE,
    }
)
"""Reasons that say nothing new of a submission whose outcome is unknown."""


def plan(snapshot: Snapshot) -> Plan:
    """Decide on the next step."""
    second = late_calls.to_cancel(snapshot)
    if second is not None:
        return Plan(Step.CANCEL_SECOND, second=second)
    planned = _next(snapshot)
    if planned.step is Step.REMOVE_FINALIZER and late_calls.is_kept(snapshot):
        return replace(planned, step=Step.NOTHING, wake=RETRY_S, why=late_calls.why_kept(snapshot, _obstacle(snapshot)))
    return planned


def _next(snapshot: Snapshot) -> Plan:
    job = snapshot.job
    begun = job.status.submission
    if job.deleting:
        return _deleting(snapshot)
    if is_true(job.status.conditions, SlurmJobCondition.FINISHED):
        return _finished(snapshot)
    if begun is None:
        return cancellation.not_submitted(job) if cancellation.is_asked(job) else _before(snapshot)
    if job.status.job_id is None:
        return _unless_unknown(snapshot, _begun(snapshot))
    return _submitted(snapshot)


def _has_finalizer(snapshot: Snapshot) -> bool:
    return labels.FINALIZER_SLURMJOB in snapshot.job.metadata.finalizers


def _obstacle(snapshot: Snapshot) -> tuple[Reason, str] | None:
    """Why Slurm cannot be asked."""
    if snapshot.obstacle is not None:
        return snapshot.obstacle.reason, snapshot.obstacle.message
    if snapshot.cluster is None:
        namespace, name = snapshot.job.cluster_key
        return Reason.CLUSTER_NOT_FOUND, f"there is no Cluster {namespace}/{name}"
    return None


def _before(snapshot: Snapshot) -> Plan:
    """Nothing has been submitted: everything that forbids it is said, the user's own faults first."""
    job = snapshot.job
    if isinstance(snapshot.submission, InvalidJob):
        is_refused = isinstance(snapshot.submission, tenants.NotGranted)
        return Plan(why=(Reason.JOBS_NOT_ALLOWED if is_refused else Reason.INVALID_SPEC, str(snapshot.submission)))
    if snapshot.cluster is not None and isinstance(snapshot.granted, tenants.Refused):
        # Labels of namespaces are read, not watched: what they grant may have changed.
        return Plan(wake=LABELS_S, why=(Reason.JOBS_NOT_ALLOWED, snapshot.granted.message))
    if job.spec.suspend:
        return Plan(why=(Reason.SUSPENDED, "spec.suspend is set: the job is submitted when it is no longer"))
    if isinstance(snapshot.dependency, dependencies.Wait):
        return Plan(why=(snapshot.dependency.reason, snapshot.dependency.message))
    obstacle = _obstacle(snapshot)
    if obstacle is not None:
        return Plan(wake=OBSTACLE_S, why=obstacle)
    return _submit(snapshot, 0)


def _submit(snapshot: Snapshot, attempt: int, *, failed: int | None = None) -> Plan:
    if cancellation.is_asked(snapshot.job):
        return cancellation.not_submitted(snapshot.job)
    forbidden = _forbidden(snapshot)
    if forbidden is not None:
        return forbidden
    if snapshot.job.spec.dry_run:
        return Plan(Step.DRY_RUN)
    if not _has_finalizer(snapshot):
        return Plan(Step.ADD_FINALIZER)
    if needs_preparation(snapshot.job):
        return Plan(Step.PREPARE)
    return Plan(Step.SUBMIT, attempt=attempt, failed=failed)


def _forbidden(snapshot: Snapshot) -> Plan | None:
    """Why nothing is submitted now. Only what could be once is submitted again: all may have changed since."""
    if snapshot.job.spec.suspend:
        return Plan(why=(Reason.SUSPENDED, "spec.suspend is set: the job is submitted again when it is no longer"))
    if snapshot.refused_until is not None and snapshot.now < snapshot.refused_until:
        return Plan(wake=(snapshot.refused_until - snapshot.now).total_seconds())
    if snapshot.submission is None or isinstance(snapshot.submission, InvalidJob):
        words = str(snapshot.submission or "it cannot be submitted again as it is")
        return Plan(why=(Reason.INVALID_SPEC, words))
    if isinstance(snapshot.granted, tenants.Refused):
        return Plan(wake=LABELS_S, why=(Reason.JOBS_NOT_ALLOWED, snapshot.granted.message))
    if isinstance(snapshot.dependency, dependencies.Wait):
        return Plan(why=(snapshot.dependency.reason, snapshot.dependency.message))
    return None


def _begun(snapshot: Snapshot) -> Plan:
    """A submission was begun, and its answer is not known."""
    begun = snapshot.job.status.submission
    assert begun is not None  # noqa: S101 - the caller has looked
    obstacle = _obstacle(snapshot)
    if obstacle is not None:
        return Plan(wake=OBSTACLE_S, why=cancellation.awaiting(snapshot.job, obstacle))
    if snapshot.looked is not None and snapshot.looked.seen is not None:
        return _shown(snapshot, snapshot.looked.seen)
    started = begun.started_at or snapshot.now
    until = started + late_calls.settled(snapshot.cluster)
    if snapshot.looked is None or snapshot.looked.at < until:
        return Plan(wake=RETRY_S, why=late_calls.looking(until))
    return _lost(snapshot, begun.attempt, begun.name, started)


def _lost(snapshot: Snapshot, attempt: int, name: str, started: datetime) -> Plan:
    """slurmctld does not have what was begun: it never had it, or has forgotten it."""
    # What is to be cancelled is over in any case: slurmctld has no such job.
    ends_as = Phase.UNKNOWN.value if cancellation.is_asked(snapshot.job) else ""
    unknown = Plan(why=(Reason.SUBMISSION_UNKNOWN, late_calls.unknown(name, started)), ends_as=ends_as)
    if not snapshot.keeps_history:
        is_sure = snapshot.now - started <= REMEMBERED and not late_calls.forgets_early(snapshot.cluster)
        return _submit(snapshot, attempt) if is_sure else unknown
    if snapshot.history is None:
        return Plan(Step.ASK_HISTORY, wake=RETRY_S)
    if snapshot.history.seen is not None:
        return _shown(snapshot, snapshot.history.seen)
    if snapshot.history.candidates:
        return unknown
    if snapshot.now - (snapshot.missing_since or snapshot.now) < HISTORY_PATIENCE:
        until = (snapshot.missing_since or snapshot.now) + HISTORY_PATIENCE
        return Plan(wake=RETRY_S, why=late_calls.looking(until))
    return _submit(snapshot, attempt)


def _unless_unknown(snapshot: Snapshot, planned: Plan) -> Plan:
    """The plan; that a submission is of unknown outcome stays shown while Slurm cannot be asked, or is asked again."""
    if cancellation.is_asked(snapshot.job):
        return planned
    known = find(snapshot.job.status.conditions, SlurmJobCondition.SUBMITTED)
    is_unknown = known is not None and known.reason == Reason.SUBMISSION_UNKNOWN
    return replace(planned, why=None) if is_unknown and planned.why and planned.why[0] in _NO_NEWS else planned


def _submitted(snapshot: Snapshot) -> Plan:
    """Slurm has taken the job."""
    failure = attempts.noted(snapshot.job.status)
    if failure is not None:
        return Plan(seen=failure) if _is_gone(snapshot) else _followed(snapshot, failure)
    obstacle = _obstacle(snapshot)
    if obstacle is not None:
        why = cancellation.awaiting(snapshot.job, obstacle)
        return _left_behind(snapshot) if _is_gone(snapshot) else Plan(wake=OBSTACLE_S, why=why)
    looked = snapshot.looked
    if looked is None:
        return Plan(wake=RETRY_S)
    if looked.seen is not None:
        return _shown(snapshot, looked.seen)
    if looked.at < _taken(snapshot) + SKEW:
        return Plan(wake=RETRY_S)
    return _forgotten(snapshot)


def _is_gone(snapshot: Snapshot) -> bool:
    """Whether there has been no Cluster for so long that none is waited for."""
    since = snapshot.cluster_gone_since
    return since is not None and snapshot.now - since >= CLUSTER_GONE


def _left_behind(snapshot: Snapshot) -> Plan:
    namespace, name = snapshot.job.cluster_key
    words = f"Cluster {namespace}/{name} is gone: how job {snapshot.job.status.job_id} ends is not known"
    return Plan(why=(Reason.CLUSTER_GONE, words), ends_as=Phase.UNKNOWN.value)


def _taken(snapshot: Snapshot) -> datetime:
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
            return Plan(Step.ASK_HISTORY, wake=RETRY_S)
        seen = snapshot.history.seen
        if seen is not None and seen.is_finished:
            return _shown(snapshot, seen)
        since = snapshot.missing_since or snapshot.now
        if snapshot.now - since < HISTORY_PATIENCE:
            return Plan(wake=RETRY_S)
    message = "Slurm has forgotten the job before its end was seen"
    message += "" if snapshot.keeps_history else ", and keeps no history: the Cluster has no accounting"
    return Plan(why=(Reason.END_NOT_SEEN, message), ends_as=Phase.UNKNOWN.value)


def _shown(snapshot: Snapshot, seen: Seen) -> Plan:
    """Show what Slurm says, and act on it."""
    if seen.unseen:
        return _unseen(snapshot, seen)
    if seen.is_finished:
        # Noted first; what follows is decided by the pass that finds it noted.
        return Plan(seen=seen, is_followed=attempts.is_followed(snapshot.job, seen))
    if snapshot.job.status.job_id is None:
        return Plan(seen=seen)
    if cancellation.is_asked(snapshot.job):
        return orders.due(snapshot, Step.CANCEL, seen)
    return orders.held(snapshot, seen)


def _followed(snapshot: Snapshot, failure: Seen) -> Plan:
    """The job has failed, and another is submitted if that is still wanted and possible."""
    job, begun = snapshot.job, snapshot.job.status.submission
    attempt = begun.attempt if begun is not None else 0
    can_be = isinstance(snapshot.granted, tenants.Grant) and not isinstance(snapshot.submission, InvalidJob)
    if not attempts.is_followed(job, failure) or (snapshot.cluster is not None and not can_be):
        return Plan(seen=failure)
    obstacle = _obstacle(snapshot)
    if obstacle is not None:
        return Plan(wake=OBSTACLE_S, why=obstacle)
    return _submit(snapshot, attempt + 1, failed=failure.job_id)


def _unseen(snapshot: Snapshot, seen: Seen) -> Plan:
    """All tasks of an array that slurmctld lists have ended, but it does not list all: slurmdbd knows of them."""
    if not snapshot.keeps_history:
        return arrays.not_seen(seen)
    if snapshot.history is None:
        return Plan(Step.ASK_HISTORY, wake=RETRY_S)
    told = snapshot.history.seen
    if told is not None and told.is_finished and not told.unseen:
        return _shown(snapshot, told)
    if snapshot.now - (snapshot.missing_since or snapshot.now) < HISTORY_PATIENCE:
        return Plan(seen=arrays.awaited(seen), wake=RETRY_S)
    if told is None or not told.is_finished:
        return arrays.not_seen(seen)
    return Plan(seen=arrays.never_started(told))


def _finished(snapshot: Snapshot) -> Plan:
    """The job has ended: nothing of it is left to cancel. Its results are collected first."""
    if is_collecting(snapshot.job):
        return Plan()
    if _has_finalizer(snapshot):
        return Plan(Step.REMOVE_FINALIZER)
    seconds = snapshot.job.spec.ttl_seconds_after_finished
    if seconds is None:
        return Plan()
    condition = next(one for one in snapshot.job.status.conditions if one.type == SlurmJobCondition.FINISHED)
    ends = condition.last_transition_time or snapshot.now
    left = (ends + timedelta(seconds=seconds) - snapshot.now).total_seconds()
    return Plan(Step.DELETE) if left <= 0 else Plan(wake=left)


def _deleting(snapshot: Snapshot) -> Plan:
    """The object goes: its job is cancelled first, unless the user wants to keep it."""
    job = snapshot.job
    if not _has_finalizer(snapshot):
        return Plan()
    begun = job.status.submission
    finished = is_true(job.status.conditions, SlurmJobCondition.FINISHED)
    since = job.metadata.deletion_timestamp
    if finished and is_collecting(job) and since is not None and snapshot.now - since < COLLECTED:
        return Plan(wake=RETRY_S)
    is_kept = job.spec.cancel_policy == "Keep" and not cancellation.is_asked(job)
    if begun is None or finished or is_kept:
        return Plan(Step.REMOVE_FINALIZER)
    if snapshot.cluster is None and snapshot.obstacle is None:
        return Plan(Step.REMOVE_FINALIZER, left_behind=True)
    obstacle = _obstacle(snapshot)
    if obstacle is not None:
        return Plan(wake=OBSTACLE_S, why=cancellation.awaiting(job, obstacle))
    return _cancelling(snapshot)


def _cancelling(snapshot: Snapshot) -> Plan:
    """The job is ended, and has left its nodes, before the object goes."""
    looked = snapshot.looked
    if looked is None:
        return Plan(wake=RETRY_S)
    if looked.seen is None:
        until = _taken(snapshot) + SKEW
        if looked.at >= until:
            return Plan(Step.REMOVE_FINALIZER)
        # A call that was under way when the object went may still arrive.
        return Plan(wake=RETRY_S, why=late_calls.looking(until) if snapshot.job.status.job_id is None else None)
    if looked.seen.is_finished:
        return Plan(Step.REMOVE_FINALIZER, seen=looked.seen)
    return orders.due(snapshot, Step.CANCEL, looked.seen)


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
            "the answer to the submission is not known, slurmctld does not have the job, and slurmdbd does not answer"
        )
        return _unless_unknown(snapshot, Plan(wake=wake, why=(Reason.SUBMITTING, f"{words}; it is asked again")))
    seen = snapshot.looked.seen if snapshot.looked is not None else None
    what = f"job {number}" if seen is None else f"tasks of job {number}"
    words = f"slurmctld has forgotten {what}, and slurmdbd, which knows how it ended, does not answer"
    shown = arrays.awaited(seen) if seen is not None else None
    return Plan(wake=wake, seen=shown, why=(Reason.ACCOUNTING_DOWN, f"{words}; it is asked again"))
