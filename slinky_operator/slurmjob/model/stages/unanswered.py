"""Submissions whose answer is not known: the job is looked for before another is submitted. Pure.

It is looked for by its mark: in lists that were asked for long enough after the beginning (`late_calls`), then in
slurmdbd, which may have the record of a job before it has the mark. Only what is in neither, and cannot have been
forgotten, is submitted again; of a job without a script what slurmctld does not have.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.slurmjob.kind import JobSubmission
from slinky_operator.jobs.phases import Phase
from slinky_operator.slurmjob.model.news import Conclusion, NoNews, Note, Record, note_of
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import cancellation, late_calls, obstacles
from slinky_operator.slurmjob.model.stages.obstacles import OBSTACLE_S, RETRY_S
from slinky_operator.slurmjob.model.stages.submission import submit
from slinky_operator.slurmjob.model.stages.submitted import HISTORY_PATIENCE, shown
from slinky_operator.slurmjob.model.steps import AskHistory, Plan

REMEMBERED: Final = timedelta(seconds=120)
"""For so long after its submission slurmctld surely remembers a job, unless MinJobAge is set; its default is 300."""

AGAIN_S: Final = 300.0
"""Seconds between two questions whether slurmdbd knows by now which job it is."""

ASKED_FOR: Final = timedelta(hours=2)
"""For so long it is asked: slurmctld may have much to deliver to a slurmdbd that was away."""

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


def looked_for(snapshot: Snapshot) -> Plan:
    """A submission was begun, and its answer is not known."""
    begun = snapshot.job.status.submission
    assert begun is not None  # noqa: S101 - the caller has looked
    obstacle = obstacles.of(snapshot)
    if obstacle is not None:
        return Plan(news=cancellation.awaiting(snapshot.job, obstacle), wake=OBSTACLE_S)
    if snapshot.looked is not None and snapshot.looked.seen is not None:
        return shown(snapshot, snapshot.looked.seen)
    started = begun.started_at or snapshot.now
    until = started + late_calls.settled(snapshot.cluster)
    if snapshot.looked is None or snapshot.looked.at < until:
        return Plan(news=late_calls.looking(until), wake=RETRY_S)
    if snapshot.looked.claimed is not None:
        return Plan(news=late_calls.claimed(snapshot.looked.claimed), wake=RETRY_S)
    return _lost(snapshot, begun, started)


def _lost(snapshot: Snapshot, begun: JobSubmission, started: datetime) -> Plan:
    """slurmctld does not have what was begun: it never had it, or has forgotten it."""
    # What is to be cancelled is over in any case: slurmctld has no such job.
    is_over = cancellation.is_asked(snapshot.job)
    name = begun.name
    again = submit(snapshot, begun.attempt, again=begun.again)
    unknown = Note(Reason.SUBMISSION_UNKNOWN, late_calls.unknown(name, started))
    # A job without a script does nothing by itself: one that slurmctld has forgotten holds nothing, and was no work.
    may_repeat = snapshot.job.spec.external is not None and not is_over
    if not snapshot.keeps_history:
        # The clock of the operator that began it may have been ahead: for how long it is missed counts as well.
        since = min(started, snapshot.missing_since or snapshot.now)
        is_sure = snapshot.now - since <= REMEMBERED and not late_calls.forgets_early(snapshot.cluster)
        return again if is_sure or may_repeat else Plan(news=_unknown(unknown, is_over=is_over))
    if snapshot.history is None:
        return Plan(AskHistory(), wake=RETRY_S)
    if snapshot.history.seen is not None:
        return shown(snapshot, snapshot.history.seen)
    since = snapshot.missing_since or snapshot.now
    if snapshot.now - since < HISTORY_PATIENCE:
        return Plan(news=late_calls.looking(since + HISTORY_PATIENCE), wake=RETRY_S)
    if snapshot.history.candidates and not may_repeat:
        known = unknown._replace(message=late_calls.unknown(name, started, snapshot.history.candidates))
        wake = AGAIN_S if snapshot.now - since < ASKED_FOR and not is_over else None
        return Plan(news=_unknown(known, is_over=is_over), wake=wake)
    return again


def _unknown(note: Note, *, is_over: bool) -> Note | Conclusion:
    return Conclusion(Phase.UNKNOWN.value, note) if is_over else note


def unless_unknown(snapshot: Snapshot, planned: Plan) -> Plan:
    """The plan; that a submission is of unknown outcome stays shown while Slurm cannot be asked, or is asked again."""
    if cancellation.is_asked(snapshot.job):
        return planned
    known = find(snapshot.job.status.conditions, SlurmJobCondition.SUBMITTED)
    is_unknown = known is not None and known.reason == Reason.SUBMISSION_UNKNOWN
    note = note_of(planned.news)
    if not is_unknown or note is None or note.reason not in _NO_NEWS:
        return planned
    return replace(planned, news=Record(planned.news.seen) if isinstance(planned.news, Record) else NoNews())
