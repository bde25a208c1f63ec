"""Queries to Slurm: what is running and in use. Answers are data for the next plan.

A failed query is an answer too, with the reason; nothing here raises for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from slinky_api.v1alpha1.cluster.status import JobCounts
from slinky_operator.cluster.in_use.parameters import tasks_in
from slinky_operator.cluster.in_use.removals import JobUse, ReservationUse, Use
from slinky_operator.cluster.memory import Jobs, PartitionStates
from slinky_operator.cluster.report import unopened_files
from slinky_operator.cluster.report.job_counts import count_jobs
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import errors
from slurm_client.models import Job, Partition

logger = logging.getLogger(__name__)

Clock = Callable[[], float]

LIST_EVERY: Final = 60.0
"""Seconds between two lists of all jobs that are read for the reasons why jobs wait."""

MOST_LISTED: Final = 1_000
"""Jobs up to which they are."""

USE_TIMEOUT: Final = 20.0
"""Seconds for the query of what is in use."""


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
    number = record.partition("_")[0].partition("+")[0]
    if not number.isdecimal():
        return ()
    try:
        return (await client.client.job(int(number)),)
    except errors.NotFound:
        return ()


async def ask_use(client: ClusterClient | None, digest: str, clock: Clock) -> Use:
    """Query which jobs and reservations there are, and what they use."""
    if client is None:
        return Use(clock(), digest, why="there is no connection with Slurm")
    began = clock()
    try:
        # States first: a partition that is closed by then gets no job that the list would not show.
        partitions = await client.client.partitions(timeout=USE_TIMEOUT)
        jobs = await client.fresh_jobs()
        reservations = await client.client.reservations(timeout=USE_TIMEOUT)
    except errors.SlurmError as error:
        now = clock()
        return Use(now, digest, why=str(error) or type(error).__name__, cost=now - began)
    tasks = [tasks_in(job.array_tasks) if job.is_pending and job.array_tasks else 1 for job in jobs]
    now = clock()
    return Use(
        # The first answers are as old as the query.
        began,
        digest,
        tuple(_used_by(job) for job in jobs if not job.state.is_finished),
        tuple(ReservationUse(one.name, one.partition, frozenset(one.nodes), one.licenses) for one in reservations),
        states=_states(partitions),
        records=sum(1 if one is None else one for one in tasks),
        shortened=tasks.count(None),
        cost=now - began,
    )


async def ask_states(client: ClusterClient | None, digest: str, clock: Clock) -> PartitionStates:
    """Query the states of all partitions."""
    if client is None:
        return PartitionStates(clock(), digest, why="there is no connection with Slurm")
    try:
        partitions = await client.client.partitions(timeout=USE_TIMEOUT)
    except errors.SlurmError as error:
        return PartitionStates(clock(), digest, why=str(error) or type(error).__name__)
    return PartitionStates(clock(), digest, _states(partitions))


def _states(partitions: Iterable[Partition]) -> dict[str, str]:
    return {one.name: one.state.base for one in partitions}


def _used_by(job: Job) -> JobUse:
    # What slurmdbd does not count is in none of the totals: a pending job has it only as it was asked for.
    asked = (job.tres_per_job, job.tres_per_node, job.tres_per_socket, job.tres_per_task)
    tres = ",".join((job.tres_requested, job.tres_allocated, *asked, *job.gres_detail))
    kinds = frozenset(_gres(tres.split(",")))
    waits = not job.holds_nodes
    return JobUse(
        job.id,
        frozenset(job.partition.split(",")),
        frozenset(job.nodes),
        kinds,
        job.holds_nodes,
        named=",".join(filter(None, (job.required_nodes, job.excluded_nodes))),
        features=job.features if waits else "",
        licenses=job.licenses if waits else "",
    )


def _gres(items: Iterable[str]) -> Iterable[str]:
    """Kinds in `gres/gpu:a100=2` (as TRES), `gres:gpu:2` (as asked for) or `gpu:a100:2(IDX:0-1)` (as detail)."""
    for item in items:
        if item.startswith(("gres/", "gres:")):
            yield item[len("gres/") :].split("=")[0].split(":")[0]
        elif ":" in item and "=" not in item:
            yield item.split(":")[0]
