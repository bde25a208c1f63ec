"""Questions to Slurm: what is running and in use. Answers are data for the next plan.

A failed query is an answer too, with the reason; nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.question import Answers, Question
from slinky_operator.cluster.rollout.in_use.parameters import tasks_in
from slinky_operator.cluster.rollout.in_use.removals import JobUse, ReservationUse, Use
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slinky_operator.slurm.nodes import node_references
from slurm_client import errors
from slurm_client.models import Job, Partition

Clock = Callable[[], float]

USE_TIMEOUT: Final = 20.0
"""Seconds for the query of what is in use."""


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """States of partitions as slurmctld has shown them."""

    asked_at: float
    """Monotonic seconds."""

    hash: str
    """Of the configuration that was live then."""

    states: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    """Why there is no answer."""


@dataclass(frozen=True, slots=True)
class UseQuestion(Question[Use]):
    """Which jobs and reservations Slurm has, and what they use."""

    hash: str
    """Of the configuration that is live."""

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> Use:
        return await ask_use(context.clients.get(cluster.uid), self.hash, context.clock)


@dataclass(frozen=True, slots=True)
class StatesQuestion(Question[PartitionStates]):
    """The states of partitions."""

    hash: str
    """Of the configuration that is live."""

    @override
    async def ask(self, cluster: Cluster, answers: Answers, context: PassContext) -> PartitionStates:
        return await ask_states(context.clients.get(cluster.uid), self.hash, context.clock)


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
        tuple(used_by(job) for job in jobs if not job.state.is_finished),
        tuple(
            ReservationUse(one.name, one.partition, frozenset(one.nodes), one.licenses)
            for one in reservations
            if not node_references.is_of_maintenance(one)
        ),
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


def used_by(job: Job) -> JobUse:
    """What a job that has not ended uses."""
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
