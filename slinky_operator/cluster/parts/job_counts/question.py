"""Counts jobs, and asks for those that have failed since; the old counts stay if Slurm does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.status import JobCounts
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.parts.job_counts import unopened_files
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import errors
from slurm_client.models import Job, JobStateEntry


def count_jobs(jobs: Iterable[JobStateEntry]) -> JobCounts:
    """Count jobs that have not ended, each in one state: the numbers add up. One that is ending is completing."""
    counts = dict.fromkeys(("total", "running", "pending", "suspended", "completing", "other"), 0)
    for job in jobs:
        if job.state.is_finished:
            # Slurm keeps the records of ended jobs for a while (MinJobAge).
            continue
        counts["total"] += 1
        base = "completing" if "COMPLETING" in job.state.flags else job.state.base.lower()
        counts[base if base in counts and base != "total" else "other"] += 1
    return JobCounts.model_validate(counts)


logger = logging.getLogger(__name__)

Clock = Callable[[], float]

LIST_EVERY: Final = 60.0
"""Seconds between two lists of all jobs that are read for the reasons why jobs wait."""

MOST_LISTED: Final = 1_000
"""Jobs up to which they are."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """Counts of jobs, and the cost of the query."""

    at: float
    cost: float
    """Seconds the answer took."""

    counts: JobCounts | None

    failed: frozenset[str] | None = None
    """Jobs that have failed, as far as they were seen; None before the first answer."""

    unopened: str = ""
    """Which files of jobs that have failed since the count before could not be opened."""

    listed_at: float | None = None
    """When all jobs were last read for the reasons why they wait."""


@dataclass(frozen=True, slots=True)
class JobsQuestion(Question[Jobs]):
    """The states of all jobs."""

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Jobs | None:
        before = answers.of(JobsQuestion)
        return await count(context.clients.get(cluster.uid), before, context.clock) or before

    @override
    def is_news(self, before: Jobs | None, answer: Jobs | None) -> bool:
        return False


async def count(client: ClusterClient | None, before: Jobs | None, clock: Clock) -> Jobs | None:
    """Count jobs; the old counts stay if Slurm does not answer."""
    if client is None:
        return None
    began = clock()
    counts = before.counts if before is not None else None
    known = before.failed if before is not None else None
    listed_at = before.listed_at if before is not None else None
    unopened = ""
    try:
        states = tuple(await client.client.job_states())
        counts = count_jobs(states)
        failed = unopened_files.failed(states, known)
        if _is_listed(counts, listed_at, began):
            listed_at = began
            _ = await client.fresh_jobs()
        counts = counts.model_copy(update={"waiting": client.waiting if counts.pending else ()})
        unopened = unopened_files.words([one for record in failed.ask for one in await _record(client, record)])
        known = failed.known
    except errors.SlurmError as error:
        # The poll of nodes shows whether Slurm answers; a count can wait.
        logger.info("jobs of %s/%s cannot be counted: %s", client.namespace, client.name, error)
    now = clock()
    return Jobs(now, now - began, counts, known, unopened, listed_at)


def _is_listed(counts: JobCounts, listed_at: float | None, now: float) -> bool:
    """Whether all jobs are read for the reasons why they wait: few jobs, and seldom; else others have to read them."""
    is_due = listed_at is None or now - listed_at >= LIST_EVERY
    return is_due and counts.pending > 0 and counts.total <= MOST_LISTED


async def _record(client: ClusterClient, record: str) -> tuple[Job, ...]:
    """The record of a job that has failed, if Slurm still has it; one that cannot be read is left out."""
    number = unopened_files.number(record)
    if not number:
        return ()
    try:
        return (await client.client.job(number),)
    except errors.NotFound:
        return ()
