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

from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.features import Constraints, NotReadable
from slurm_client.models import Job
from slurm_client.notation import hostlist
from slurm_client.notation.arrays import ArrayTasks

FOR_NODES: Final = frozenset(
    {"", "None", "Resources", "Priority", "ReqNodeNotAvail", "PartitionConfig", "PartitionNodeLimit"}
)
"""Reasons of jobs that more nodes may help. Whether a partition's limit would forbid it is checked here too."""

NODES_AWAY: Final = "Nodes required for job are"
"""How a longer text begins that stands for the same: nodes are down, drained, or not there yet."""

FOR_MAINTENANCE: Final = "Reserved for maintenance"
"""How the text ends of a job that could still run in a maintenance window: new nodes are in it, too."""

MOST_EXCLUDED: Final = 1000
"""Excluded nodes of a job that are read."""

COST_OF_A_NAME: Final = 4
"""Steps for each excluded node: names are kept until the count ends."""

CHARACTERS: Final = 16
"""Characters of a job's texts that are read in one step."""

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


class Reader:
    """Reads pending jobs; each text of theirs once, however many have it.

    Parameters
    ----------
    now
        Wall-clock time.
    constraints
        What expressions mean.
    effort
        What reading may cost: it goes on beyond that, and the caller stops.
    started
        For each array with a limit, how many of its tasks have nodes.
    nodes
        Names of the nodes that there are: no others are worth being excluded.
    """

    def __init__(
        self,
        now: datetime,
        constraints: Constraints,
        effort: Effort,
        *,
        started: Mapping[int, int] | None = None,
        nodes: Iterable[str] = (),
    ) -> None:
        self._now = now
        self._constraints = constraints
        self._effort = effort
        self._started = started or {}
        self._nodes = {name: name for name in nodes}
        self._excluded: dict[str, frozenset[str]] = {"": frozenset()}
        self._partitions: dict[str, tuple[str, ...]] = {}

    def excuse(self, job: Job) -> str:
        """Why more nodes would not start a job; empty if they would. This costs next to nothing."""
        return _not_for_nodes(job, self._now)

    def read(self, job: Job) -> Ask | LeftOut:
        """What a pending job needs that has no excuse, or why it cannot be counted."""
        self._effort.spend(1 + sum(map(len, _texts(job))) // CHARACTERS)
        try:
            need = self._need(job)
        except NotReadable as error:
            return LeftOut(job, f"{error} is not understood")
        tasks = _tasks(job, self._started.get(job.array_job_id or 0, 0))
        return Ask(job, need, tasks) if tasks > 0 else LeftOut(job, "JobArrayTaskLimit")

    def partitions(self, job: Job) -> tuple[str, ...]:
        """The partitions of a job."""
        known = self._partitions.get(job.partition)
        if known is None:
            known = self._partitions[job.partition] = tuple(sorted({one for one in job.partition.split(",") if one}))
        return known

    def _need(self, job: Job) -> Need:
        _ = self._constraints.kinds(job.features)
        nodes = max(1, job.node_count or 1)
        step = max(1, job.cpus_per_task or 1)
        on_each = max(1, job.minimum_cpus_per_node or 1, step)
        limit = job.tasks_per_node * step if job.tasks_per_node else None
        return Need(
            partitions=self.partitions(job),
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
            excluded=self._excluded_by(job.excluded_nodes),
        )

    def _excluded_by(self, text: str) -> frozenset[str]:
        known = self._excluded.get(text)
        if known is not None:
            return known
        size = hostlist.size(text)
        if size > MOST_EXCLUDED:
            raise NotReadable("its long list of excluded nodes")
        self._effort.spend(COST_OF_A_NAME * size)
        names = (self._nodes.get(name) for name in hostlist.expand(text))
        found = self._excluded[text] = frozenset(name for name in names if name is not None)
        return found


def _texts(job: Job) -> tuple[str, ...]:
    """What of a job may be long, and is read."""
    gres = job.tres_per_node, job.tres_per_socket, job.tres_per_job, job.tres_per_task
    return (job.partition, job.features, job.excluded_nodes, job.array_tasks, *gres)


def _not_for_nodes(job: Job, now: datetime) -> str:
    """Why more nodes would not start a job; empty if they would."""
    if job.hold or job.priority == 0:
        return job.state_reason if job.state_reason.startswith("JobHeld") else "JobHeld"
    if job.eligible_time is not None and job.eligible_time > now:
        return "BeginTime"
    reason = _reason(job)
    if reason not in FOR_NODES and not reason.replace("_", " ").startswith(NODES_AWAY):
        return reason[:60]
    if job.reservation:
        return "Reservation"
    if job.required_nodes:
        return "names its nodes"
    return ""


def _reason(job: Job) -> str:
    if job.state_description.replace("_", " ").endswith(FOR_MAINTENANCE):
        return FOR_MAINTENANCE
    return job.state_reason.partition(",")[0]


def _tasks(job: Job, started: int) -> int:
    """How many tasks of a pending record may start now."""
    if not job.array_tasks:
        return 1
    try:
        tasks = sum(map(len, ArrayTasks.parse(job.array_tasks).spans))
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
