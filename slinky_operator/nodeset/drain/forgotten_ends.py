"""Jobs that slurmctld shows on a drained node although they have ended, as slurmdbd or slurmd shows. Pure.

A slurmctld that is killed starts with the state that it saved some seconds before. It does not know the end of a job
that has ended since then: it shows the job as running until the node registers again, and that may be never. The drain,
and the update or scale-in behind it, waits for that long. slurmdbd knows the end, and is asked about jobs that delay a
drain for minutes. Only an end of this very run counts: a job that was requeued has a record of each run. Where there is
no accounting, and beside it, slurmds are asked for the steps on their nodes (`slurmd_questions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset.spec import ForgottenJobs
from slinky_operator.nodeset.drain import deadline
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.slurm_nodes.recorded_ends import RecordedEnd, RecordedEnds
from slinky_operator.reconcile.text import joined, stamp
from slurm_client.models import Job

ASK_AFTER: Final = timedelta(minutes=2)
"""How long a drain has lasted before slurmdbd is asked about its jobs."""

ASK_EVERY: Final = timedelta(minutes=1)
"""How often it is asked at most; once for each job."""

SETTLED: Final = timedelta(minutes=2)
"""How old a recorded end must be: slurmctld takes a moment to clean up after a job."""

MOST: Final = 20
"""Jobs that slurmdbd is asked about at a time."""


def questions(states: Iterable[pod_state.State], recorded: RecordedEnds, now: datetime) -> tuple[Job, ...]:
    """The jobs that slurmdbd is to be asked about now.

    Parameters
    ----------
    states
        Of the NodeSet's pods.
    recorded
        What it has said before.
    now
        The time; timezone-aware.
    """
    if recorded.asked_at is not None and now - recorded.asked_at < ASK_EVERY:
        return ()
    found = {job.id: job for job in late_jobs(states, now)}
    # Those that have run for longest first: they are the most likely to be over.
    return tuple(sorted(found.values(), key=lambda job: (job.start_time is None, job.start_time, job.id))[:MOST])


def late_jobs(states: Iterable[pod_state.State], now: datetime) -> Iterator[Job]:
    """The jobs that have delayed a drain for minutes and are not ending; one on several nodes comes with each."""
    for state in states:
        if isinstance(state, pod_state.Draining) and state.since is not None and now - state.since >= ASK_AFTER:
            yield from (job for job in state.jobs if not deadline.is_ending(job))


def forgotten(jobs: Iterable[Job], recorded: RecordedEnds, now: datetime) -> dict[int, RecordedEnd]:
    """The jobs that have ended although slurmctld shows them, by id.

    Parameters
    ----------
    jobs
        As slurmctld shows them.
    recorded
        What slurmdbd has said.
    now
        The time; timezone-aware.
    """
    found = {}
    for job in jobs:
        end = recorded.ends.get(job.id)
        if end is None or deadline.is_ending(job):
            continue
        same_run = (end.user, end.started_at) == (job.user, job.start_time)
        if same_run and now - end.ended_at >= SETTLED:
            found[job.id] = end
    return found


def over(jobs: Iterable[Job], recorded: RecordedEnds, gone: Mapping[int, datetime], now: datetime) -> dict[int, str]:
    """The jobs that have ended although slurmctld shows them, by id, and what shows it, for people.

    Parameters
    ----------
    jobs
        As slurmctld shows them.
    recorded
        What slurmdbd has said.
    gone
        Jobs of which no node has a step, and since when.
    now
        The time; timezone-aware.
    """
    shown = tuple(jobs)
    steps = {job.id: f"slurmd has no step of it since {stamp(gone[job.id])}" for job in shown if job.id in gone}
    ends = forgotten(shown, recorded, now)
    return {**steps, **{job: f"{end.state} at {stamp(end.ended_at)} in slurmdbd" for job, end in ends.items()}}


def to_cancel(
    states: Iterable[pod_state.State],
    recorded: RecordedEnds,
    gone: Mapping[int, datetime],
    mode: ForgottenJobs,
    now: datetime,
) -> tuple[Job, ...]:
    """The jobs to cancel in slurmctld; asked for again before that is done."""
    if mode is not ForgottenJobs.CANCEL:
        return ()
    jobs = jobs_of(states)
    return tuple(jobs[number] for number in sorted(over(jobs.values(), recorded, gone, now)))


def jobs_of(states: Iterable[pod_state.State]) -> dict[int, Job]:
    """The jobs that delay drains, by id."""
    return {job.id: job for state in states if isinstance(state, pod_state.Draining) for job in state.jobs}


def told(over: Mapping[int, str]) -> str:
    """Jobs with what shows that they have ended, for people."""
    return joined([f"job {number} ({why})" for number, why in sorted(over.items())])
