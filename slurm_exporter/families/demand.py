"""What pending jobs ask for: the signals of autoscaling.

Only jobs count that would start if there were nodes: not those that are held, wait for another job or a time, or are
over a limit. What Slurm gives as their reason decides; a reason that is not known counts as a limit, since nodes that
nobody uses cost more than a job that waits for an administrator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from slurm_client.models import Job
from slurm_exporter.samples.family import Samples, gauge

FOR_NODES: Final = frozenset(
    {"", "None", "Resources", "Priority", "ReqNodeNotAvail", "PartitionConfig", "PartitionNodeLimit"}
)
"""Reasons of jobs that more nodes would help; the last two are those of a partition that has too few, or none."""

WANTED = gauge(
    "partition_nodes_wanted",
    "Nodes that pending jobs of a partition ask for, of those that wait for nothing else.",
    "jobs/: node_count, state_reason, array_task_string",
    ["partition"],
)
WANTED_CPUS = gauge(
    "partition_cpus_wanted",
    "CPUs that such jobs ask for.",
    "jobs/: cpus, state_reason, array_task_string",
    ["partition"],
)
LARGEST_JOB = gauge(
    "partition_pending_job_nodes_max", "Nodes that the largest such job asks for.", "jobs/: node_count", ["partition"]
)
SMALLEST_JOB = gauge(
    "partition_pending_job_nodes_min", "Nodes that the smallest such job asks for.", "jobs/: node_count", ["partition"]
)
ALL: Final = (WANTED, WANTED_CPUS, LARGEST_JOB, SMALLEST_JOB)


def waits_for_nodes(job: Job, now: datetime) -> bool:
    """Whether a pending job would start if there were nodes for it."""
    if job.hold or job.state_reason not in FOR_NODES:
        return False
    return job.eligible_time is None or job.eligible_time <= now


class Demand:
    """Nodes and CPUs that pending jobs ask for, by partition.

    Parameters
    ----------
    now
        Wall-clock time: a job that may begin later counts later.
    """

    def __init__(self, now: datetime) -> None:
        self._now = now
        self.nodes: defaultdict[str, int] = defaultdict(int)
        self.cpus: defaultdict[str, int] = defaultdict(int)
        self.largest: dict[str, int] = {}
        self.smallest: dict[str, int] = {}
        self._started: defaultdict[int, int] = defaultdict(int)
        self._arrays: list[tuple[Job, int, tuple[str, ...]]] = []

    def add_started(self, job: Job) -> None:
        """Take note of a job that has its nodes: it counts against the limit of its array."""
        if job.array_job_id is not None:
            self._started[job.array_job_id] += 1

    def add(self, job: Job, tasks: int, partitions: Iterable[str]) -> None:
        """Count a pending record of as many tasks; of an array no more than may still be started."""
        if not waits_for_nodes(job, self._now):
            return
        if job.array_max_tasks and job.array_job_id is not None:
            # How many of its tasks run is known at the end.
            self._arrays.append((job, tasks, tuple(partitions)))
        else:
            self._count(job, tasks, partitions)

    def _count(self, job: Job, tasks: int, partitions: Iterable[str]) -> None:
        nodes = max(1, job.node_count or 1)
        for name in partitions if tasks > 0 else ():
            self.nodes[name] += nodes * tasks
            self.cpus[name] += (job.cpus or 1) * tasks
            self.largest[name] = max(nodes, self.largest.get(name, 0))
            self.smallest[name] = min(nodes, self.smallest.get(name, nodes))

    def _close(self) -> None:
        for job, tasks, partitions in self._arrays:
            started = self._started.get(job.array_job_id or 0, 0)
            self._count(job, min(tasks, (job.array_max_tasks or tasks) - started), partitions)
        self._arrays.clear()

    def samples(self, partitions: Iterable[str]) -> Iterator[Samples]:
        """The signals, zero for a partition without such jobs; to be called when all jobs are counted."""
        self._close()
        names = sorted({*partitions, *self.nodes})
        yield Samples(WANTED, {(name,): self.nodes.get(name, 0) for name in names})
        yield Samples(WANTED_CPUS, {(name,): self.cpus.get(name, 0) for name in names})
        yield Samples(LARGEST_JOB, {(name,): self.largest.get(name, 0) for name in names})
        yield Samples(SMALLEST_JOB, {(name,): self.smallest.get(name, 0) for name in names})
