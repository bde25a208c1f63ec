"""
Jobs and their steps as slurmdbd keeps them: also after slurmctld has forgotten them.

A job that was requeued has one record for each run. Jobs as slurmctld shows them are in :mod:`slurm_client.models.job`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from slurm_client.models.database.usage import StepUsage
from slurm_client.models.entry import Entry
from slurm_client.models.job import JobState
from slurm_client.notation.tres import Tres

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from slurm_client.models.job import ExitCode
    from slurm_client.models.values import Infinite


_UNKNOWN = JobState()
_NOTHING = Tres()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """
    A step of a job as slurmdbd keeps it.

    Parameters
    ----------
    id
        As Slurm writes it: ``7.0``, ``7.batch``, ``7.extern``.
    name
        Name of its program, or ``batch``, ``extern``, ``interactive``.
    state, exit_code
        How it is, or how it ended.
    killed_by
        User who ended it; empty if none did.
    start_time, end_time
        ``None`` where it has not started or not ended.
    elapsed, suspended
        How long it ran, and how long it was suspended.
    user_time, system_time, total_time
        CPU time of its processes.
    node_list, node_count, tasks
        Where it ran, and with how many tasks.
    tres_allocated
        What it had.
    read, written
        What its tasks used, and what they wrote, by resource: Slurm's ``tres_usage_in`` and ``tres_usage_out``. The
        memory in use is in ``read``. Each is made when it is looked at, so that millions of steps stay small.
    energy_joules
        Energy its nodes consumed; ``None`` where that is not measured.
    submit_line
        Command line of its srun (v0.0.43 and newer).
    """

    id: str
    name: str = ""
    state: JobState = _UNKNOWN
    exit_code: ExitCode | None = None
    killed_by: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None
    elapsed: timedelta | None = None
    suspended: timedelta | None = None
    user_time: timedelta | None = None
    system_time: timedelta | None = None
    total_time: timedelta | None = None
    node_list: str = ""
    node_count: int = 0
    tasks: int = 0
    task_distribution: str = ""
    tres_allocated: Tres = _NOTHING
    read: Sequence[StepUsage] = ()
    written: Sequence[StepUsage] = ()
    energy_joules: int | None = None
    submit_line: str = ""

    @property
    def max_memory_bytes(self) -> int | None:
        """Most memory that one of its tasks had in use, in bytes, as sampled; ``None`` if it was not (MaxRSS)."""
        return next((each.max for each in self.read if each.type == "mem"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord(Entry):
    """
    One run of a job as slurmdbd keeps it.

    Times are aware and in UTC; ``None`` means not set or not yet, ``INFINITE`` no limit.

    Parameters
    ----------
    id
        Job id; of a task of an array, its own.
    cluster
        On which it ran; ids are unique in one cluster only.
    submit_time
        When it was submitted, or requeued for this run: with ``cluster`` and ``id`` it names a record.
    state, state_reason
        Its state, and why it last waited.
    exit_code, derived_exit_code
        How its script ended, and the worst end of its steps.
    elapsed, suspended
        How long it ran, and how long of that it was suspended.
    planned
        How long it waited (v0.0.42 and newer).
    user_time, system_time, total_time
        CPU time of its steps, with microseconds.
    time_limit
        Wall time it was allowed.
    node_list, node_count
        Where it ran.
    tres_requested, tres_allocated
        What it asked for, and what it got.
    required_cpus, memory_per_cpu_mib, memory_per_node_mib
        What it asked for at least; ``None`` for no such wish.
    array_job_id, array_task_id, array_tasks, array_max_tasks
        Of a task: array and index; of tasks that have not started, their indices as a bitmap, of which ``0x3C`` means
        2 to 5; tasks that may run at once.
    het_job_id, het_job_offset
        Of a component of a heterogeneous job.
    association_id
        Association it is accounted to.
    qos, qos_requested
        QOS it ran with, and the one asked for (v0.0.42 and newer).
    reservation, reservation_id
        Reservation it ran in.
    killed_by
        User who cancelled it; empty if none did.
    failed_node
        Node whose failure ended it.
    restarts
        How often it was requeued before (v0.0.42 and newer).
    standard_input, standard_output, standard_error
        As given, and expanded under ``…_expanded`` (v0.0.42 and newer).
    script
        The batch script, where slurmdbd keeps it and it was asked for.
    sluid
        Slurm's id of the record, unique in all clusters (v0.0.45 and newer).
    steps
        Its steps; empty where they were not asked for.
    """

    KEY: ClassVar[str] = "id"

    id: int
    cluster: str = ""
    name: str = ""
    user: str = ""
    group: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    qos_requested: str = ""
    wckey: str = ""
    association_id: int | None = None
    reservation: str = ""
    reservation_id: int | None = None
    state: JobState = _UNKNOWN
    state_reason: str = ""
    exit_code: ExitCode | None = None
    derived_exit_code: ExitCode | None = None
    submit_time: datetime | None = None
    eligible_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    elapsed: timedelta | None = None
    suspended: timedelta | None = None
    planned: timedelta | None = None
    user_time: timedelta | None = None
    system_time: timedelta | None = None
    total_time: timedelta | None = None
    time_limit: timedelta | Infinite | None = None
    node_list: str = ""
    node_count: int = 0
    tres_requested: Tres = _NOTHING
    tres_allocated: Tres = _NOTHING
    used_gres: str = ""
    required_cpus: int = 0
    memory_per_cpu_mib: int | None = None
    memory_per_node_mib: int | None = None
    array_job_id: int | None = None
    array_task_id: int | None = None
    array_tasks: str = ""
    array_max_tasks: int | None = None
    het_job_id: int | None = None
    het_job_offset: int | None = None
    constraints: str = ""
    licenses: str = ""
    priority: int | Infinite | None = None
    hold: bool = False
    flags: frozenset[str] = frozenset()
    killed_by: str = ""
    failed_node: str = ""
    restarts: int = 0
    block: str = ""
    mcs_label: str = ""
    container: str = ""
    extra: str = ""
    comment: str = ""
    admin_comment: str = ""
    system_comment: str = ""
    submit_line: str = ""
    working_directory: str = ""
    standard_input: str = ""
    standard_output: str = ""
    standard_error: str = ""
    standard_input_expanded: str = ""
    standard_output_expanded: str = ""
    standard_error_expanded: str = ""
    script: str = ""
    sluid: str = ""
    steps: tuple[StepRecord, ...] = ()

    @property
    def is_finished(self) -> bool:
        """Whether this run has ended."""
        return self.end_time is not None
