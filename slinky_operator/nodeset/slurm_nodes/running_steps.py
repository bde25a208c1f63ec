"""What slurmds have shown, again and again, of the steps on their nodes. Pure.

slurmctld may have forgotten a node, or the end of a job. slurmd looks at the processes themselves. One answer without a
step proves little: a prolog runs before the first step, and an allocation may have none for a moment. So a node counts
as idle once each answer of one start of its slurmd, for minutes, has shown no step, and slurmctld has not spoken to it
meanwhile; without a recent answer nothing counts.

Of jobs, only a batch job has a step from its start to its end: that of its script. slurmctld itself takes a batch job
for dead that a node has not named in its registration (`BatchStartTimeout`, 10 s); here it is minutes, and each node of
the job must have shown it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from slinky_operator.slurm.connection.slurmd_status import SlurmdStatus
from slurm_client.models import Job

SETTLED: Final = timedelta(minutes=2)
"""For how long there must have been no step."""

FRESH: Final = timedelta(minutes=3)
"""How old the last answer may be."""

RAN: Final = timedelta(minutes=10)
"""How long ago a job must have been started: a prolog may take its time."""


@dataclass(frozen=True, slots=True)
class StepsSeen:
    """What the slurmd of one pod has shown so far."""

    asked_at: datetime
    started_at: datetime | None = None
    """When that slurmd was started; None if it has not answered the last question."""

    jobs: frozenset[int] = frozenset()
    """Jobs with a step, in the last answer."""

    idle_since: datetime | None = None
    """Since when no answer has shown a step; None if the last one has."""

    absent_since: Mapping[int, datetime] = field(default_factory=dict)
    """Jobs that were asked about and have had no step since, by id."""

    why: str = ""
    """Why there was no answer."""


def after(before: StepsSeen | None, answer: SlurmdStatus, asked: Iterable[int], now: datetime) -> StepsSeen:
    """What is known after another answer.

    Parameters
    ----------
    before
        What was known before; None for nothing.
    asked
        Ids of the jobs that the question is about.
    now
        The time; timezone-aware.
    """
    is_same = before is not None and before.started_at == answer.started_at
    idle = before.idle_since if before is not None and is_same else None
    if idle is not None and answer.heard_at is not None and answer.heard_at >= idle:
        # slurmctld has spoken to it: what it was told to start may have no step yet.
        idle = None
    absent = before.absent_since if before is not None and is_same else {}
    return StepsSeen(
        now,
        answer.started_at,
        answer.jobs,
        None if answer.jobs else idle or now,
        {job: absent.get(job, now) for job in asked if job not in answer.jobs},
    )


def unanswered(why: str, now: datetime) -> StepsSeen:
    """What is known after a question without an answer: nothing."""
    return StepsSeen(now, why=why)


def is_idle(seen: StepsSeen | None, now: datetime) -> bool:
    """Whether a slurmd has shown for minutes that no step runs."""
    return seen is not None and _is_fresh(seen, now) and _is_settled(seen.idle_since, now)


def idle(seen: Mapping[str, StepsSeen], now: datetime) -> frozenset[str]:
    """Those of them that are idle, by uid of the pod."""
    return frozenset(uid for uid, one in seen.items() if is_idle(one, now))


def gone(job: Job, slurmds: Collection[StepsSeen | None], now: datetime) -> datetime | None:
    """Since when none of a job's nodes has a step of it; None if one may have.

    Parameters
    ----------
    job
        As slurmctld shows it.
    slurmds
        What is known of each of its nodes; None for one of which nothing is.
    now
        The time; timezone-aware.
    """
    if not may_be_proven(job, now) or not slurmds:
        return None
    found = []
    for slurmd in slurmds:
        since = slurmd.absent_since.get(job.id) if slurmd is not None and _is_fresh(slurmd, now) else None
        if since is None or not _is_settled(since, now) or (job.start_time is not None and since < job.start_time):
            return None
        found.append(since)
    return max(found)


def may_be_proven(job: Job, now: datetime) -> bool:
    """Whether a job would have a step if it had not ended: a batch job that runs, and for long."""
    is_plain = job.batch and not job.het_job_id and bool(job.nodes) and not job.state.flags
    return is_plain and job.is_running and job.start_time is not None and now - job.start_time >= RAN


def _is_fresh(seen: StepsSeen, now: datetime) -> bool:
    return seen.started_at is not None and now - seen.asked_at <= FRESH


def _is_settled(since: datetime | None, now: datetime) -> bool:
    return since is not None and now - since >= SETTLED
