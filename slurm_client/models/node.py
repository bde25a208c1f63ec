"""
Slurm nodes: what slurmctld knows of a compute node, and how its state is to be read.

Whether a node may be removed is a decision of the caller; this module only says what Slurm shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from slurm_client.models.entry import Entry
from slurm_client.models.values import State

if TYPE_CHECKING:
    from datetime import datetime, timedelta


_TAKES_NO_JOB = frozenset(
    {
        "BLOCKED", "DRAIN", "FAIL", "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "POWERING_DOWN", "POWER_DOWN",
        "POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "POWER_DRAIN", "REBOOT_ISSUED", "RESERVED",
    }
)  # fmt: skip
"""Flags beside which slurmctld starts no job that names no reservation."""


@dataclass(frozen=True, slots=True)
class NodeState(State):
    """State of a node; see :class:`~slurm_client.models.values.State`."""

    BASES: ClassVar[frozenset[str]] = frozenset(
        {"ALLOCATED", "DOWN", "ERROR", "FUTURE", "IDLE", "INVALID", "MIXED", "UNKNOWN"}
    )
    FLAGS: ClassVar[frozenset[str]] = frozenset(
        {
            "BLOCKED", "CLOUD", "COMPLETING", "DRAIN", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL", "FAIL",
            "INVALID_REG", "MAINTENANCE", "NOT_RESPONDING", "PERFCTRS", "PLANNED", "POWERED_DOWN", "POWERING_DOWN",
            "POWERING_UP", "POWER_DOWN", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE",
            "POWER_DRAIN", "POWER_UP", "REBOOT_CANCELED", "REBOOT_ISSUED",
            "REBOOT_REQUESTED", "RESERVED", "RESUME", "UNDRAIN",
        }
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Entry):
    """
    A compute node as slurmctld shows it.

    Memory and disk are in MiB, times are aware and in UTC. ``None`` means that Slurm does not say. Values that move
    all the time without anything having happened (``cpu_load``, ``free_memory_mib``, ``last_busy``,
    ``current_watts``) take no part in comparisons, so that two views of an unchanged node are equal.

    Parameters
    ----------
    name
        NodeName.
    state
        Base state and flags.
    reason, reason_set_by, reason_changed_at
        Why it is down or drained, who said so and when; empty and ``None`` when nobody did.
    comment, extra, instance_id, instance_type
        Free texts of the record.
    address, hostname, port
        Where its slurmd is reached.
    cpus, effective_cpus, alloc_cpus, alloc_idle_cpus
        CPUs configured, usable by jobs, given to jobs, and idle within allocations.
    real_memory_mib, alloc_memory_mib, free_memory_mib
        Memory configured, given to jobs, and free by the node's own word.
    features, active_features
        Feature words.
    gres, gres_used
        Generic resources in Slurm's notation.
    tres, tres_used
        Trackable resources in Slurm's notation.
    partitions
        Names of the partitions it is in.
    version
        Release of its slurmd.
    burst_buffer_address
        Of the node in the burst buffer's network.
    certificate_flags, certificate_renewed_at
        Of its TLS certificate.
    cpu_binding
        Default binding of tasks, as Slurm's number.
    specialized_cores, specialized_cpus, gpu_cores, reserved_cores_per_gpu
        Cores and CPUs that jobs do not get, cores kept for jobs with GPUs, and how many of them for each.
    suspend_after
        How long it is idle before it is powered down; ``None`` for ever.
    boot_time, slurmd_start_time, last_busy
        When the machine booted, when slurmd started, when it last ran a job.
    """

    name: str
    state: NodeState = NodeState()
    reason: str = ""
    reason_set_by: str = ""
    reason_changed_at: datetime | None = None
    resume_after: datetime | None = None
    comment: str = ""
    extra: str = ""
    instance_id: str = ""
    instance_type: str = ""
    address: str = ""
    hostname: str = ""
    port: int | None = None
    architecture: str = ""
    operating_system: str = ""
    cluster: str = ""
    cpus: int = 0
    effective_cpus: int = 0
    alloc_cpus: int = 0
    alloc_idle_cpus: int = 0
    boards: int = 0
    sockets: int = 0
    cores: int = 0
    threads: int = 0
    real_memory_mib: int = 0
    alloc_memory_mib: int = 0
    specialized_memory_mib: int = 0
    temporary_disk_mib: int = 0
    weight: int = 0
    features: tuple[str, ...] = ()
    active_features: tuple[str, ...] = ()
    gres: str = ""
    gres_used: str = ""
    gres_drained: str = ""
    tres: str = ""
    tres_used: str = ""
    partitions: tuple[str, ...] = ()
    reservation: str = ""
    topology: str = ""
    owner: str = ""
    mcs_label: str = ""
    version: str = ""
    boot_time: datetime | None = None
    slurmd_start_time: datetime | None = None
    burst_buffer_address: str = ""
    certificate_flags: tuple[str, ...] = ()
    certificate_renewed_at: datetime | None = None
    cpu_binding: int = 0
    gpu_cores: str = ""
    reserved_cores_per_gpu: int = 0
    specialized_cores: int = 0
    specialized_cpus: str = ""
    suspend_after: timedelta | None = None
    next_state_after_reboot: tuple[str, ...] = ()
    cpu_load: float | None = field(default=None, compare=False)
    free_memory_mib: int | None = field(default=None, compare=False)
    last_busy: datetime | None = field(default=None, compare=False)
    current_watts: int | None = field(default=None, compare=False)

    @property
    def is_drain(self) -> bool:
        """Whether no new job will be started on it because of a drain."""
        return "DRAIN" in self.state.flags

    @property
    def is_drained(self) -> bool:
        """
        Whether it is draining and shows no work left.

        A suspended job leaves its node IDLE: who is about to remove the node must ask for its jobs as well.
        """
        return self.is_drain and not self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether it is allocated, wholly or in part, or still cleaning up after a job."""
        return self.state.base in {"ALLOCATED", "MIXED"} or not self.state.flags.isdisjoint(
            {"ALLOCATED", "MIXED", "COMPLETING"}
        )

    @property
    def is_idle(self) -> bool:
        """Whether the base state is IDLE and nothing is completing; a drained node may be idle."""
        return self.state.base == "IDLE" and "COMPLETING" not in self.state.flags

    @property
    def is_down(self) -> bool:
        """Whether Slurm holds it to be down."""
        return self.state.base == "DOWN"

    @property
    def is_not_responding(self) -> bool:
        """Whether its slurmd does not answer."""
        return "NOT_RESPONDING" in self.state.flags

    @property
    def is_dynamic(self) -> bool:
        """Whether the record was made by a registration and may be deleted."""
        return not self.state.flags.isdisjoint({"DYNAMIC_NORM", "DYNAMIC_FUTURE"})

    @property
    def is_external(self) -> bool:
        """Whether it has no slurmd: something other than Slurm runs what is placed there, and batch jobs never are."""
        return "EXTERNAL" in self.state.flags

    @property
    def is_usable(self) -> bool:
        """
        Whether slurmctld may start a job on it that names no reservation, room permitting.

        Measured with 24.11 and 26.05. A node that is powered down may be given to a job, which then waits until it is
        up; one that is about to power down, and one in a reservation (``RESERVED``, ``MAINTENANCE``), may not.
        """
        return self.state.base in {"IDLE", "MIXED", "ALLOCATED"} and self.state.flags.isdisjoint(_TAKES_NO_JOB)
