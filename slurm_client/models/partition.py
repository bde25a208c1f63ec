"""Partitions: groups of nodes with their own limits, as slurmctld shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from slurm_client.models.entry import Entry
from slurm_client.models.values import Infinite, State

if TYPE_CHECKING:
    from datetime import timedelta

    from slurm_client.errors import Report


@dataclass(frozen=True, slots=True)
class PartitionState(State):
    """State of a partition: UP, DOWN, DRAIN or INACTIVE."""

    BASES: ClassVar[frozenset[str]] = frozenset({"UP", "DOWN", "DRAIN", "INACTIVE", "UNKNOWN"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(Entry):
    """
    A partition as slurmctld shows it.

    Parameters
    ----------
    name
        PartitionName.
    state
        UP, DOWN (queues jobs, starts none), DRAIN (takes no new ones) or INACTIVE (neither).
    nodes
        Names of its nodes, expanded; ``node_list`` is the same in Slurm's notation.
    node_sets
        NodeSets that ``Nodes=`` names in slurm.conf, in order of their names; nodes that it names are not among them.
    max_time, default_time
        Limits of wall time; ``INFINITE`` for none, ``None`` for not set.
    max_nodes, min_nodes
        Nodes one job may have.
    preempt_modes
        What becomes of its jobs that are preempted, where it has a mode of its own: CANCEL, REQUEUE, SUSPEND. Slurm
        26.05 or newer.
    """

    name: str
    state: PartitionState = PartitionState()
    node_list: str = ""
    nodes: tuple[str, ...] = ()
    node_sets: str = ""
    total_nodes: int = 0
    total_cpus: int = 0
    tres: str = ""
    max_time: timedelta | Infinite | None = None
    default_time: timedelta | Infinite | None = None
    max_nodes: int | Infinite | None = None
    min_nodes: int = 0
    max_cpus_per_node: int | Infinite | None = None
    default_memory_per_cpu_mib: int | None = None
    default_memory_per_node_mib: int | None = None
    priority_job_factor: int = 0
    priority_tier: int = 0
    grace_time: timedelta | None = None
    preempt_modes: tuple[str, ...] = ()
    qos: str = ""
    allowed_qos: str = ""
    allowed_accounts: str = ""
    denied_accounts: str = ""
    allowed_groups: str = ""
    alternate: str = ""
    flags: frozenset[str] = frozenset()

    @property
    def is_up(self) -> bool:
        """Whether jobs are taken and started."""
        return self.state.base == "UP"


@dataclass(frozen=True, slots=True)
class PartitionResult(Entry):
    """What became of one partition in a call about many: ``error`` is ``None`` if it went well."""

    name: str
    error: Report | None = None
