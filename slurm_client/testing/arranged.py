"""
What is true in the pretended cluster: nodes, jobs, partitions, as a test arranges them.

The states of nodes follow from the jobs on them. slurmctld's rules are none of this: anything can be arranged.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from slurm_client.models import (
    INFINITE,
    Job,
    JobState,
    License,
    Node,
    NodeState,
    Partition,
    PartitionState,
    Reservation,
)
from slurm_client.testing.slurmctld import allocation, gres
from slurm_client.testing.slurmctld.clock import Clock
from slurm_client.testing.slurmctld.counts import Counts
from slurm_client.testing.slurmctld.shares import ShareTree
from slurm_client.testing.slurmctld.table import JobTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Arranged:
    """
    Nodes, jobs and partitions.

    Parameters
    ----------
    clock
        Seconds since 1970; one of its own that can be moved is made of it.
    release
        Slurm release whose manners are followed, e.g. ``26.05.5``.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time, release: str = "26.05.5") -> None:
        self.clock = Clock(clock)
        self.clock.follow = self.follow
        self._clock: Callable[[], float] = self.clock
        self.release = release
        self.nodes: dict[str, Node] = {}
        self.jobs = JobTable()
        self.partitions: dict[str, Partition] = {}
        self.reservations: dict[str, Reservation] = {}
        self.licenses: dict[str, License] = {}
        self.share_tree = ShareTree()
        self.nodes_changed = self.jobs_changed = self.partitions_changed = clock()
        self.reservations_changed = clock()
        self.reconfigured = 0
        self.counts = Counts()
        self._highest_job_id = 0
        self._postponed: set[str] | None = None
        """Nodes whose states follow later."""
        self._reservation_numbers = itertools.count(1)

    def follow(self, until: float) -> None:
        """Move the clock; nothing else happens to what is only arranged."""
        self.clock.move_to(until)

    def next_job_id(self) -> int:
        """Return a number that no job has had."""
        self._highest_job_id += 1
        return self._highest_job_id

    @property
    def now(self) -> datetime:
        """Time in whole seconds, as Slurm counts it."""
        return datetime.fromtimestamp(int(self._clock()), UTC)

    @property
    def clears_reasons(self) -> bool:
        """Whether an undrain takes the reason away, as newer releases do."""
        return self.release >= "25"

    def add_node(
        self, name: str, *, state: str | Sequence[str] = "IDLE", cpus: int = 1, memory: int = 1024, **values: Any
    ) -> Node:
        """
        Add a node, or replace one; it is dynamic unless ``dynamic=False``.

        Parameters
        ----------
        state
            A word, words joined by ``+``, or a list of words.
        memory
            In MiB.
        values
            Fields of :class:`~slurm_client.models.Node`.
        """
        words = state.split("+") if isinstance(state, str) else list(state)
        if values.pop("dynamic", True):
            words.append("DYNAMIC_NORM")
        values.setdefault("partitions", tuple(self.partitions))
        defaults: dict[str, Any] = {
            "address": "127.0.0.1",
            "hostname": name,
            "port": 6818,
            "architecture": "x86_64",
            "operating_system": "Linux",
            "boards": 1,
            "sockets": cpus,
            "cores": 1,
            "threads": 1,
            "weight": 1,
            "features": ("all",),
            "active_features": ("all",),
            "version": self.release,
            "boot_time": self.now,
            "slurmd_start_time": self.now,
            "last_busy": self.now,
            "next_state_after_reboot": ("INVALID",),
            "gres_drained": "N/A",
            "cpu_load": 0.0,
            "free_memory_mib": memory,
            "current_watts": 0,
            "tres": ",".join(
                [
                    f"cpu={cpus},mem={memory}M,billing={cpus}",
                    *(f"{key}={count}" for key, count in gres.as_tres([values.get("gres", "")]).items()),
                ]
            ),
            "effective_cpus": cpus,
        }
        for key in ("features", "active_features", "partitions"):
            if key in values:
                values[key] = tuple(values[key])
        node = Node(
            name=name, state=NodeState.from_words(words), cpus=cpus, real_memory_mib=memory, **(defaults | values)
        )
        self.nodes[name] = node
        self._touch_nodes()
        self.partitions_changed = self._clock()
        return node

    def update_node(self, name: str, **values: Any) -> Node:
        """Change fields of a node, without any of slurmctld's rules."""
        state = values.get("state")
        if isinstance(state, str):
            values["state"] = NodeState.from_words(state.split("+"))
        self.nodes[name] = replace(self.nodes[name], **values)
        self._touch_nodes()
        return self.nodes[name]

    def set_flags(self, name: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Node:
        """Change flags of a node's state."""
        state = self.nodes[name].state
        flags = (state.flags | frozenset(add)) - frozenset(remove)
        return self.update_node(name, state=NodeState(state.base, flags))

    def remove_node(self, name: str) -> None:
        """Take a node away as if it had never been."""
        del self.nodes[name]
        self._touch_nodes()

    def add_partition(self, name: str, **values: Any) -> Partition:
        """Add a partition that holds all nodes added afterwards; fields as in the canonical model."""
        values.setdefault("state", PartitionState("UP"))
        values.setdefault("node_sets", "ALL")
        values.setdefault("max_time", INFINITE)
        values.setdefault("max_nodes", INFINITE)
        values.setdefault("max_cpus_per_node", INFINITE)
        values.setdefault("priority_job_factor", 1)
        values.setdefault("priority_tier", 1)
        self.partitions[name] = Partition(name=name, **values)
        self.partitions_changed = self._clock()
        return self.partitions[name]

    def add_job(
        self,
        *,
        nodes: Iterable[str] = (),
        state: str | Sequence[str] | None = None,
        cpus: int | None = None,
        **values: Any,
    ) -> Job:
        """
        Add a job; RUNNING if it has nodes, else PENDING.

        A number is given out once, also when the job that had it is forgotten; ValueError for one that a job has.

        Parameters
        ----------
        nodes
            Names of the nodes it holds; all their CPUs unless ``cpus`` (per node) says less.
        values
            Fields of :class:`~slurm_client.models.Job`, and its ``details``.
        """
        names = tuple(nodes)
        if state is None:
            state = "RUNNING" if names else "PENDING"
        words = state.split("+") if isinstance(state, str) else list(state)
        job_id = values.pop("id", None) or self.next_job_id()
        values = _with_details(values)
        if job_id in self.jobs:
            raise ValueError(f"there is a job {job_id} already: change it by set_job_state, or forget it first")
        self._highest_job_id = max(self._highest_job_id, job_id)
        per_node = {name: cpus or self.nodes[name].cpus for name in names if name in self.nodes}
        values.setdefault("cpus", sum(per_node.values()) or cpus or 1)
        values.setdefault("node_count", len(names) or 1)
        values.setdefault("start_time", self.now if names else None)
        defaults: dict[str, Any] = {
            "name": "job",
            "user": "root",
            "user_id": 0,
            "group": "root",
            "partition": next(iter(self.partitions), "all"),
            "submit_time": self.now,
            "eligible_time": self.now,
            "time_limit": INFINITE,
            "batch": True,
            "requeue": True,
            "priority": 1,
            "tasks": 1,
            "cpus_per_task": 1,
            "batch_host": names[0] if names else "",
            "state_reason": "None" if names else "Resources",
        }
        job = Job(
            id=job_id,
            state=JobState.from_words(words),
            nodes=names,
            node_list=",".join(names),
            **(defaults | values),
        )
        self.jobs[job_id] = job
        self.counts.changed(None, job)
        self._jobs_changed(names)
        return job

    def set_job_state(self, job_id: int, state: str, **values: Any) -> Job:
        """Change a job's state (words joined by ``+``), other fields and ``details``; its nodes follow."""
        old, values = self.jobs[job_id], _with_details(values)
        job = self.jobs[job_id] = replace(old, state=JobState.from_words(state.split("+")), **values)
        self.counts.changed(old, job)
        self._jobs_changed(job.nodes)
        return job

    def finish_job(self, job_id: int, state: str = "COMPLETED", **values: Any) -> Job:
        """End a job now."""
        return self.set_job_state(job_id, state, end_time=self.now, **values)

    def forget_job(self, job_id: int) -> None:
        """Purge a finished job, as slurmctld does after ``MinJobAge``."""
        self.share_tree.remember(self.jobs.pop(job_id), self.now)
        self.jobs_changed = self._clock()

    def add_license(self, name: str, total: int, used: int = 0) -> License:
        """Add licenses of one name."""
        self.licenses[name] = License(name=name, total=total, used=used, free=total - used)
        return self.licenses[name]

    # how things follow from each other

    def _touch_nodes(self) -> None:
        self.nodes_changed = self._clock()

    def _jobs_changed(self, names: Iterable[str]) -> None:
        """Let the states of nodes follow from the jobs on them."""
        self.jobs_changed = self._clock()
        self._touch_nodes()
        if self._postponed is not None:
            self._postponed.update(names)
            return
        for name in names:
            if name in self.nodes:
                self.nodes[name] = allocation.shown(self.nodes[name], self.jobs.naming(name))

    @contextlib.contextmanager
    def many_jobs(self) -> Iterator[None]:
        """Let the states of nodes follow at the end, once: much faster where thousands of jobs are added."""
        self._postponed = set()
        try:
            yield
        finally:
            names, self._postponed = self._postponed, None
            self._jobs_changed(names)

    def _holding(self, name: str) -> list[Job]:
        """Return the jobs that run on a node."""
        return [job for job in self.jobs.naming(name) if allocation.has_nodes(job)]


def _with_details(values: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a job by the names that its class takes."""
    return {"_details" if key == "details" else key: value for key, value in values.items()}
