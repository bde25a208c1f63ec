"""What a pending job needs of nodes, or why no node is made for it.

Only a job that would start if there were nodes is counted: not one that is held, waits for a time, another job, a
license or a reservation, or is over a limit. Slurm's own reason decides; a reason that is not known counts as a limit,
since nodes that nobody uses cost more than a job that waits for a person.

Amounts are those that slurmctld shows for the job; how Slurm would lay it out on sockets is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_operator.autoscaling.rules.features import NotReadable, alternatives
from slurm_client.models import Job
from slurm_client.notation import hostlist
from slurm_client.notation.arrays import ArrayTasks

FOR_NODES: Final = frozenset(
    {"", "None", "Resources", "Priority", "ReqNodeNotAvail", "PartitionConfig", "PartitionNodeLimit"}
)
"""Reasons of jobs that more nodes may help. Whether a partition's limit would forbid it is checked here too."""

NODES_AWAY: Final = "Nodes required for job are"
"""How a longer text begins that stands for the same: nodes are down, drained, or not there yet."""

MOST_EXCLUDED: Final = 1000
"""Excluded nodes of a job that are read."""

_GRES: Final = re.compile(
    r"(?:gres[/:])?(?P<name>[A-Za-z_][\w.-]{0,62})(?::(?P<type>[A-Za-z_][\w.-]{0,62}))?(?:[:=](?P<count>[0-9]{1,9}))?"
)

Amounts = tuple[tuple[str, int], ...]
"""Generic resources and how many, as ``gpu`` or ``gpu:a100``; sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one job, or each task of an array, needs. Two equal ones fit in the same places."""

    partitions: tuple[str, ...]
    """Any of them; all nodes of a job are in one."""
    nodes: int = 1
    """At least."""
    most_nodes: int | None = None
    """At most; None for any number."""
    cpus: int = 1
    """In all."""
    step: int = 1
    """CPUs of one task, which are on one node."""
    cpus_on_each: int = 1
    """At least, on each node."""
    most_on_each: int | None = None
    """CPUs at most on each node."""
    memory_on_each: int = 0
    """MiB, on each node."""
    memory_for_cpu: int = 0
    """MiB, for each CPU."""
    gres_on_each: Amounts = ()
    gres_in_all: Amounts = ()
    gres_for_task: Amounts = ()
    features: str = ""
    exclusive: bool = False
    """Whether no other job may be on its nodes."""
    excluded: frozenset[str] = frozenset()
    """Nodes that it must not have."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A pending record: as many jobs with the same need."""

    job: Job
    need: Need
    tasks: int = 1
    """Tasks of an array that may start now; 1 for a job."""

    @property
    def name(self) -> str:
        """The job as people name it."""
        return str(self.job.array_job_id or self.job.id) if self.job.array_tasks else self.job.alone


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A pending job that is not counted, and why."""

    job: Job
    why: str


def read(job: Job, now: datetime, started: Mapping[int, int] | None = None) -> Ask | LeftOut:
    """What a pending job needs, or why it is not counted.

    Parameters
    ----------
    job
        A pending one.
    now
        Wall-clock time.
    started
        For each array with a limit, how many of its tasks have nodes.
    """
    why = _not_for_nodes(job, now)
    if why:
        return LeftOut(job, why)
    try:
        need = _need(job)
    except NotReadable as error:
        return LeftOut(job, f"{error} is not understood")
    tasks = _tasks(job, (started or {}).get(job.array_job_id or 0, 0))
    return Ask(job, need, tasks) if tasks > 0 else LeftOut(job, "JobArrayTaskLimit")


def _not_for_nodes(job: Job, now: datetime) -> str:
    """Why more nodes would not start a job; empty if they would."""
    if job.hold or job.priority == 0:
        return job.state_reason if job.state_reason.startswith("JobHeld") else "JobHeld"
    if job.eligible_time is not None and job.eligible_time > now:
        return "BeginTime"
    reason = job.state_reason.partition(",")[0]
    if reason not in FOR_NODES and not reason.replace("_", " ").startswith(NODES_AWAY):
        return reason[:60]
    if job.reservation:
        return "Reservation"
    if job.required_nodes:
        return "names its nodes"
    return ""


def _need(job: Job) -> Need:
    _ = alternatives(job.features)
    nodes = max(1, job.node_count or 1)
    step = max(1, job.cpus_per_task or 1)
    on_each = max(1, job.minimum_cpus_per_node or 1, step)
    limit = job.tasks_per_node * step if job.tasks_per_node else None
    return Need(
        partitions=tuple(sorted({one for one in job.partition.split(",") if one})),
        nodes=nodes,
        most_nodes=max(nodes, job.max_nodes) if job.max_nodes else None,
        cpus=max(job.cpus or 1, nodes * on_each),
        step=step,
        cpus_on_each=on_each,
        most_on_each=max(limit, on_each) if limit else None,
        memory_on_each=max(0, job.memory_per_node_mib or 0),
        memory_for_cpu=max(0, job.memory_per_cpu_mib or 0),
        gres_on_each=amounts(f"{job.tres_per_node},{job.tres_per_socket}"),
        gres_in_all=amounts(job.tres_per_job),
        gres_for_task=amounts(job.tres_per_task),
        features=job.features,
        exclusive="none" in {one.lower() for one in job.shared},
        excluded=_excluded(job.excluded_nodes),
    )


def _excluded(text: str) -> frozenset[str]:
    if not text:
        return frozenset()
    try:
        if hostlist.size(text) > MOST_EXCLUDED:
            raise NotReadable("its long list of excluded nodes")
        return frozenset(hostlist.expand(text))
    except ValueError as error:
        raise NotReadable("its list of excluded nodes") from error


def _tasks(job: Job, started: int) -> int:
    """How many tasks of a pending record may start now."""
    if not job.array_tasks:
        return 1
    try:
        tasks = len(ArrayTasks.parse(job.array_tasks))
    except ValueError:
        # slurmctld cuts long lists: at least as many as it names.
        tasks = max(1, job.array_tasks.count(",") + job.array_tasks.count("-"))
    return min(tasks, job.array_max_tasks - started) if job.array_max_tasks else tasks


def amounts(text: str) -> Amounts:
    """Generic resources in a list such as ``gres/gpu:a100:2,cpu=4``; other resources are not meant.

    Raises
    ------
    NotReadable
        One of them has another form.
    """
    found: dict[str, int] = {}
    for word in filter(None, (one.strip() for one in text.split(","))):
        if not word.startswith(("gres/", "gres:")):
            continue
        match = _GRES.fullmatch(word)
        if match is None:
            raise NotReadable(f"the resource {word[:60]!r}")
        key = match["name"] + (f":{match['type']}" if match["type"] else "")
        found[key] = found.get(key, 0) + int(match["count"] or 1)
    return tuple(sorted(found.items()))


def arrays_started(jobs: Iterable[Job]) -> dict[int, int]:
    """How many tasks of each array have nodes."""
    found: dict[int, int] = {}
    for job in jobs:
        if job.array_job_id and job.holds_nodes:
            found[job.array_job_id] = found.get(job.array_job_id, 0) + 1
    return found
