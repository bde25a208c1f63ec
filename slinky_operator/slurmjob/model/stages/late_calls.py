"""Submissions whose answer is not known: how long they may still reach slurmctld, and second jobs they lead to. Pure.

The client gives up after 20 s, slurmrestd does not: it asks slurmctld again and again while that limits the calls of
the user, is a standby, or is away. So no wait makes it certain that a call will not arrive. What follows here is a wait
that covers what slurm.conf allows, and for all else the rule that of several jobs with the mark of one SlurmJob only
the one whose number is in its status goes on; the others are cancelled.

A second job can only come of a call without an answer: where every call was answered, a job with the mark was given it
by its user, and is left alone. So is the job of another SlurmJob that was given this mark.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import Reason, SlurmJobCondition, is_true
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import JobSubmission, SlurmJob
from slinky_operator.jobs.task_sets import Reader
from slinky_operator.reconcile.text import named
from slinky_operator.slurm.conf.syntax.directives import logical_lines
from slinky_operator.slurmjob.model.news import Note
from slinky_operator.slurmjob.model.slurm_records import marks, records
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slurm_client.models import Job

SETTLED: Final = timedelta(seconds=45)
"""After the beginning of a submission: longer than a call to Slurm takes with Slurm's defaults."""

MESSAGE_TIMEOUT_S: Final = 10
"""Slurm's default of MessageTimeout, for which `SETTLED` is long enough."""

LONG: Final = timedelta(minutes=10)
"""The same as `SETTLED` where slurmrestd may ask for minutes: calls are limited, or slurm.conf is not known."""

MARGIN: Final = timedelta(seconds=45)
"""For so long after that a SlurmJob is kept from going all the same."""

MOST_SECOND: Final = 1000
"""Second jobs of one SlurmJob that are looked at together; more are looked at when these have ended."""

_MIN_JOB_AGE: Final = re.compile(r"\bMinJobAge\s*=", re.IGNORECASE)
_LIMITED: Final = re.compile(r"\brl_enable\b", re.IGNORECASE)
_MESSAGE_TIMEOUT: Final = re.compile(r"\bMessageTimeout\s*=\s*\"?([0-9]{1,6})", re.IGNORECASE)


def settled(cluster: Cluster | None) -> timedelta:
    """How long after its beginning a submission may still reach slurmctld.

    Parameters
    ----------
    cluster
        Whose Slurm it is; None if that is not known.
    """
    if cluster is None or cluster.spec.external or _mentions(cluster, _LIMITED):
        return LONG
    given = (_MESSAGE_TIMEOUT.search(line) for _, line in logical_lines(cluster.spec.extra_conf or ""))
    longest = max((int(one[1]) for one in given if one is not None), default=0)
    # slurmrestd connects, sends and waits for the answer, each for so long.
    return SETTLED + 3 * timedelta(seconds=max(0, longest - MESSAGE_TIMEOUT_S))


def forgets_early(cluster: Cluster | None) -> bool:
    """Whether slurmctld may forget jobs earlier than by default."""
    return cluster is None or cluster.spec.external or _mentions(cluster, _MIN_JOB_AGE)


def _mentions(cluster: Cluster, key: re.Pattern[str]) -> bool:
    return any(key.search(line) for _, line in logical_lines(cluster.spec.extra_conf or ""))


def unanswered_at(before: JobSubmission | None, *, is_lost: bool) -> datetime | None:
    """What a submission notes of those before it: when the last was begun whose answer is not known.

    Parameters
    ----------
    before
        The submission that was noted until now.
    is_lost
        Whether this one repeats it, since its answer is not known.
    """
    if before is None:
        return None
    return before.started_at if is_lost and before.answered_at is None else before.unanswered_at


def may_come(status: Mapping[str, Any]) -> bool:
    """Whether a job may come late to a SlurmJob that has ended, by its status as the API server has it."""
    begun = status.get("submission") or {}
    is_open = bool(begun.get("startedAt")) and not (begun.get("answeredAt") or status.get("jobId"))
    return is_open or bool(begun.get("unansweredAt"))


def is_looked_for(job: SlurmJob) -> bool:
    """Whether second jobs of a SlurmJob are to be looked for."""
    begun = job.status.submission
    if begun is None:
        return False
    if is_true(job.status.conditions, SlurmJobCondition.FINISHED):
        return _last(job) is not None and labels.FINALIZER_SLURMJOB in job.metadata.finalizers
    return begun.unanswered_at is not None or begun.answered_at is None


def _last(job: SlurmJob) -> datetime | None:
    """When the last call was begun whose answer is not known, and of which no job has been found."""
    begun = job.status.submission
    if begun is None:
        return None
    is_open = begun.answered_at is None and job.status.job_id is None
    return begun.started_at if is_open else begun.unanswered_at


def second_jobs(marked: Iterable[Job], job: SlurmJob, chosen: int | None, longest: timedelta) -> tuple[Seen, ...]:
    """Jobs that a submission has led to besides the one that counts, and that have not ended.

    Parameters
    ----------
    marked
        Records of the user with the mark of the SlurmJob, of any attempt up to the last.
    job
        The SlurmJob.
    chosen
        Number of the job that counts, while that is not in the status yet.
    longest
        For how long a call may reach slurmctld (`settled`).
    """
    since = _earliest(job, longest)
    known = {job.status.job_id, chosen, *(job.status.failed_attempts or ())}
    parts: dict[int, list[Job]] = defaultdict(list)
    for record in marked:
        number = marks.number_of(record)
        if number not in known and not marks.is_early(record, since):
            parts[number].append(record)
    # Whether it has ended is all that counts: the tasks that its records name are not read.
    found = ((number, records.of_queue(parts[number], texts=Reader(0, 0))) for number in sorted(parts))
    live = (replace(seen, job_id=number) for number, seen in found if seen is not None and not seen.is_finished)
    return tuple(islice(live, MOST_SECOND))


def _earliest(job: SlurmJob, longest: timedelta) -> datetime | None:
    """The time of slurmctld before which no call of the SlurmJob can have reached it; None if that is not known.

    That it was created then is said by the clock of the API server, and that a call was begun by the operator's: the
    earliest counts, and that of slurmctld itself, of the job that counts.
    """
    begun, submitted = job.status.submission, job.status.submit_time
    times = [
        job.metadata.creation_timestamp,
        *((begun.started_at, begun.unanswered_at) if begun is not None else ()),
        submitted - longest if submitted is not None else None,
    ]
    return min((time for time in times if time is not None), default=None)


def to_cancel(snapshot: Snapshot) -> Seen | None:
    """The second job that is to be cancelled now."""
    job = snapshot.job
    is_over = job.deleting or is_true(job.status.conditions, SlurmJobCondition.FINISHED)
    if job.status.job_id is None and not is_over:
        return None  # The one that counts is noted first.
    for seen in snapshot.second_jobs:
        order = snapshot.second_orders.get(seen.job_id)
        if order is None or snapshot.now >= order.again:
            return seen
    return None


def is_kept(snapshot: Snapshot) -> bool:
    """Whether an object must stay, since a late job of it is there, or may come."""
    job = snapshot.job
    if snapshot.cluster is None and snapshot.obstacle is None:
        return False  # There is nothing left to ask.
    if snapshot.second_jobs:
        return True
    if job.deleting and job.spec.cancel_policy == "Keep" and not _is_repeated(job):
        return False  # The job is to stay in Slurm, whenever it comes there.
    until = _until(snapshot)
    return until is not None and (snapshot.listed_at is None or snapshot.listed_at < until)


def why_kept(snapshot: Snapshot, obstacle: Note | None) -> Note | None:
    """What is shown of an object that is deleted, and stays for its late jobs."""
    until = _until(snapshot)
    if not snapshot.job.deleting or snapshot.job.status.job_id is None or until is None:
        return None
    if obstacle is not None:
        words = f"the operator looks for a second job of the SlurmJob once Slurm answers: {obstacle.message}"
        return Note(obstacle.reason, words)
    words = "an earlier submission whose answer was lost may still reach Slurm"
    return Note(Reason.SUBMITTING, f"{words}: the SlurmJob stays until {until:%H:%M:%S} UTC")


def _is_repeated(job: SlurmJob) -> bool:
    return job.status.submission is not None and job.status.submission.unanswered_at is not None


def _until(snapshot: Snapshot) -> datetime | None:
    """When the last list must have been asked for before an object may go."""
    last = _last(snapshot.job)
    return last + settled(snapshot.cluster) + MARGIN if last is not None else None


def looking(until: datetime) -> Note:
    """What is shown while a job is looked for whose number is not known."""
    words = "Slurm's answer to the submission was lost: the operator looks for the job in Slurm's list"
    return Note(Reason.SUBMITTING, f"{words} until {until:%H:%M:%S} UTC, since the call may still arrive")


def claimed(number: int) -> Note:
    """What is shown while a job with the mark of the SlurmJob is noted as another one's."""
    words = f"Slurm's answer to the submission was lost, and job {number} has the mark of this SlurmJob"
    return Note(Reason.SUBMITTING, f"{words}, but is that of another one: nothing is submitted before that has ended")


def unknown(name: str, started: datetime, candidates: Sequence[int] = ()) -> str:
    """What is shown of a submission that is not repeated although no job of it is found.

    Parameters
    ----------
    name
        Of the job in Slurm.
    started
        When the submission was begun.
    candidates
        Numbers of jobs in slurmdbd that may be it.
    """
    words = (
        f"it is not known whether the submission of {started:%Y-%m-%dT%H:%M:%SZ} reached Slurm, which may have "
        "forgotten the job; the operator does not repeat it. "
    )
    if candidates:
        numbers = named([str(candidate) for candidate in candidates])
        words += (
            f"slurmdbd has jobs that may be it, without the mark of this SlurmJob (AccountingStoreFlags has no "
            f"job_extra, or their end has not been recorded yet): {numbers}. Look with sacct whether one of them is it"
        )
    else:
        words += f"Look for job {name!r} with sacct"
    return f"{words}; if it did not run, delete this SlurmJob and create it again"


def words(seen: Seen, job: SlurmJob) -> str:
    """What an Event says of a late job that was cancelled."""
    number = job.status.job_id
    counts = f"; the SlurmJob has job {number}" if number is not None else ""
    return f"job {seen.job_id} was cancelled: it comes from a submission whose answer was lost{counts}"
