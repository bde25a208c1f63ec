"""Jobs without a script that slurmctld has lost after they had started: their nodes are asked for again. Pure.

slurmctld writes its state every few seconds. After a crash, what has just started waits once more, may start on other
nodes, or is not there at all; but what runs on its nodes goes on. So such a job is cancelled, if anything of it is
left, and then submitted again for the nodes that it had, with as many tasks on each. That is noted before either is
done. While there is no room, because another job has taken it, or because a node is gone, the job waits, and its
SlurmJob keeps what it was given.
"""

from __future__ import annotations

from dataclasses import replace

from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.jobs import phases
from slinky_operator.jobs.phases import Phase, Shown
from slinky_operator.slurmjob.model import requests
from slinky_operator.slurmjob.model.news import NoNews, Record, note_of
from slinky_operator.slurmjob.model.slurm_records import allocations
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import cancellation, holds_and_cancels, obstacles, submission
from slinky_operator.slurmjob.model.stages.obstacles import OBSTACLE_S, RETRY_S
from slinky_operator.slurmjob.model.steps import OrderKind, Plan


def has_nodes(job: SlurmJob) -> bool:
    """Whether a job has nodes that are asked for again if it is lost."""
    return bool(job.status.allocation) and not cancellation.is_asked(job) and bool(requests.shares(job))


def has_lost_start(snapshot: Snapshot, seen: Seen) -> bool:
    """Whether slurmctld has forgotten that a job had started, or has started it on other nodes since then."""
    job, begun = snapshot.job, snapshot.job.status.submission
    if begun is None or begun.again or job.status.job_id != seen.job_id or not has_nodes(job):
        return False
    if seen.shown.phase is Phase.PENDING:
        return seen.shown.reason is not phases.Reason.STARTING
    found = snapshot.allocation
    return found is not None and not allocations.is_same(job.status.allocation or (), found)


def has_lost_wait(snapshot: Snapshot, seen: Seen) -> bool:
    """Whether a job that waited for the nodes of an earlier one is over without anybody having cancelled it.

    Slurm ends one that names a node which was deleted.
    """
    begun = snapshot.job.status.submission
    is_over = seen.shown.phase is Phase.FAILED and not seen.is_cancelled and not seen.nodes
    return begun is not None and begun.again and is_over and has_nodes(snapshot.job)


def noted(snapshot: Snapshot, seen: Seen | None) -> Plan:
    """Note that the job is lost.

    Parameters
    ----------
    seen
        What slurmctld has of it; None if nothing.
    """
    status = snapshot.job.status
    number = status.job_id or 0
    words = f"slurmctld has lost job {number}, or its start, while what runs on {status.nodes or 'its nodes'} goes on"
    known = seen or Seen(number, Shown(Phase.FAILED, phases.Reason.LOST, ""), user=status.user or "")
    lost = Shown(Phase.FAILED, phases.Reason.LOST, words)
    was = replace(known, shown=lost, nodes=status.nodes or "", start_time=status.start_time, deadline=status.deadline)
    return Plan(news=Record(was, is_followed=True))


def followed(snapshot: Snapshot, failure: Seen) -> Plan:
    """Cancel what is left of the job, then submit it again for its nodes."""
    obstacle = obstacles.of(snapshot)
    if obstacle is not None:
        return Plan(news=obstacle, wake=OBSTACLE_S)
    looked, begun = snapshot.looked, snapshot.job.status.submission
    if looked is None or begun is None:
        return Plan(wake=RETRY_S)
    if looked.seen is not None and not looked.seen.is_finished:
        planned = holds_and_cancels.due(snapshot, OrderKind.CANCEL, looked.seen)
        return replace(planned, news=note_of(planned.news) or NoNews())
    return submission.submit(snapshot, begun.attempt + 1, failed=failure.job_id, again=True)
