"""Jobs without a script: what they were given, how their work has ended, and what accounting gets. Pure.

The program that uses the nodes of such a job (the bridge) may rely on this:

- `status.allocation` is there when the state is first Running, from a record with the mark of the SlurmJob. It stays
  as it is while the job runs, and after its end.
- A job that slurmctld has forgotten after its start (a crash), altogether or to have started, is submitted again for
  the nodes that it had, with another number (`lost`). Its allocation stays shown, with the same order, and is never
  that of other nodes. Until it runs, its state is Waiting or Pending.
- A job that slurmctld has forgotten before that ends as Unknown with the reason EndNotSeen, unless its end was said;
  its number may be that of another job by then, and is used for nothing without the mark.
- `spec.external.ended` ends the job in Slurm. Whatever came first is shown: a job that had reached its time limit stays
  one that did. Slurm cannot say that such a job has succeeded, so a cancellation beside `ended` counts as its end.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason, SlurmJobCondition, find
from slinky_api.v1alpha1.slurmjob.kind import MAX_ALLOCATION, JobEnd, SlurmJob
from slinky_operator.jobs import phases
from slinky_operator.jobs.phases import Phase, Shown
from slinky_operator.slurmjob.model.news import Conclusion, Note, Record
from slinky_operator.slurmjob.model.slurm_records import allocations
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages.obstacles import RETRY_S
from slinky_operator.slurmjob.model.steps import AskAllocation, Plan, RecordEnd

RECORDED: Final = timedelta(hours=1)
"""For so long the operator tries to write the end of the work into Slurm's accounting."""

RECORDED_DELETING: Final = timedelta(minutes=2)
"""The same of an object that is being deleted, from its deletion on: slurmctld tells slurmdbd of an end in seconds."""

_WITH_NODES: Final = frozenset({Phase.RUNNING, Phase.SUSPENDED})
_SHOWN_WITH_NODES: Final = frozenset(phase.value for phase in _WITH_NODES)


def end_of(job: SlurmJob) -> JobEnd | None:
    """How the work of the job has ended; None if that was not said, or the job has a script."""
    return job.spec.external.ended if job.spec.external is not None else None


def concluded(end: JobEnd, why: str) -> Plan:
    """The end of a job that Slurm does not have.

    Parameters
    ----------
    end
        How its work has ended.
    why
        Why Slurm does not have it.
    """
    shown = _shown(end)
    reason = Reason.NON_ZERO_EXIT_CODE if end.exit_code else Reason.COMPLETED
    return Plan(news=Conclusion(shown.phase.value, Note(reason, f"{shown.message}; {why}"), exit_code=end.exit_code))


def ended(snapshot: Snapshot, seen: Seen) -> Seen:
    """What is shown of a job that has ended in Slurm."""
    if snapshot.job.spec.external is None or seen.shown.reason is not phases.Reason.CANCELLED:
        return seen
    end = end_of(snapshot.job)
    if end is not None:
        return replace(seen, shown=_shown(end))
    words = _too_large(snapshot)
    return replace(seen, shown=replace(seen.shown, message=f"the job was cancelled: {words}")) if words else seen


def _shown(end: JobEnd) -> Shown:
    if end.exit_code:
        words = f"the work of the job ended with exit code {end.exit_code}"
        return Shown(Phase.FAILED, phases.Reason.EXIT_CODE, words, end.exit_code)
    return Shown(Phase.SUCCEEDED, phases.Reason.COMPLETED, "the work of the job ended with exit code 0", 0)


def _too_large(snapshot: Snapshot) -> str:
    """Why the job cannot go on: it has more nodes than its status holds; empty if it has not."""
    count = allocations.too_many(snapshot.looked.records) if snapshot.looked is not None else 0
    most = f"a job without a script may have {MAX_ALLOCATION}; ask for fewer nodes, or for more CPUs on each"
    return f"Slurm gave it {count} nodes, and {most}" if count else ""


def unusable(snapshot: Snapshot, seen: Seen) -> Note | None:
    """Why the job is cancelled although nobody has asked for that; None if it is not."""
    if snapshot.job.spec.external is None:
        return None
    if seen.broken is not None:
        words = f"a component of it has ended, and the others are of no use alone: {seen.broken.message}"
        return Note(Reason.COMPONENT_ENDED, f"the job is cancelled: {words}")
    words = _too_large(snapshot)
    return Note(Reason.ALLOCATION_TOO_LARGE, f"the job is cancelled: {words}") if words else None


def needs_allocation(snapshot: Snapshot, seen: Seen) -> bool:
    """Whether it must be read what the job was given: it has started, or started once more."""
    job, stored = snapshot.job, snapshot.job.status
    if job.spec.external is None or seen.shown.phase not in _WITH_NODES:
        return False
    is_known = stored.allocation is not None and stored.job_id == seen.job_id
    return not is_known or stored.state not in _SHOWN_WITH_NODES or stored.start_time != seen.start_time


def awaiting(seen: Seen) -> Seen:
    """What is shown of a job that has started, while it is not known what it was given."""
    words = "Slurm has started the job, and the operator reads what it was given"
    return replace(seen, shown=Shown(Phase.PENDING, phases.Reason.STARTING, words))


def read(snapshot: Snapshot, seen: Seen, known: Plan) -> Plan:
    """Read what the job was given, and show that it runs once it is known.

    Parameters
    ----------
    seen
        The job in Slurm.
    known
        What is done with a job that runs.
    """
    if snapshot.allocation is not None:
        stored = snapshot.job.status.allocation
        # Where it is the same as before its order stays, too: it says which task is where.
        is_same = stored is not None and allocations.is_same(stored, snapshot.allocation)
        found = allocations.kept(stored, snapshot.allocation) if stored and is_same else snapshot.allocation
        news = replace(known.news, allocation=found) if isinstance(known.news, Record) else known.news
        return replace(known, news=news)
    again = snapshot.allocation_again
    if again is not None and snapshot.now < again:
        return Plan(news=Record(awaiting(seen)), wake=(again - snapshot.now).total_seconds())
    return Plan(AskAllocation(seen), Record(awaiting(seen)), RETRY_S)


def recording(snapshot: Snapshot) -> Plan | None:
    """Tell Slurm's accounting how the work of a job has ended that is over; None if there is nothing to tell."""
    job, end = snapshot.job, end_of(snapshot.job)
    if end is None or job.status.job_id is None or job.status.recorded is not None or not snapshot.keeps_history:
        return None
    if not _may_be_untold(snapshot):
        return None
    until = (snapshot.record_since or snapshot.now) + RECORDED
    if job.metadata.deletion_timestamp is not None:
        until = min(until, job.metadata.deletion_timestamp + RECORDED_DELETING)
    again = min(snapshot.record_again, until) if snapshot.record_again is not None else None
    if again is not None and snapshot.now < again:
        return Plan(wake=(again - snapshot.now).total_seconds())
    return Plan(RecordEnd(job.status.job_id, end, until))


def _may_be_untold(snapshot: Snapshot) -> bool:
    """Whether it was not decided long ago that there is nothing to tell: before the Cluster had accounting, say."""
    job = snapshot.job
    finished = find(job.status.conditions, SlurmJobCondition.FINISHED)
    since = finished.last_transition_time if finished is not None else None
    is_kept = labels.FINALIZER_SLURMJOB in job.metadata.finalizers
    return is_kept or since is None or snapshot.now - since < RECORDED
