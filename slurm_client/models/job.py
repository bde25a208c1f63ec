"""
Slurm jobs as slurmctld shows them, and how their states are to be read.

Jobs in the accounting database have another shape and are not meant here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from slurm_client.models.entry import Entry
from slurm_client.models.values import Infinite, State

if TYPE_CHECKING:
    from datetime import datetime, timedelta

FINISHED = frozenset(
    {
        "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
        "TIMEOUT",
    }
)  # fmt: skip
"""Base states a job does not leave, unless it is requeued."""


@dataclass(frozen=True, slots=True)
class JobState(State):
    """State of a job; see :class:`~slurm_client.models.values.State`."""

    BASES: ClassVar[frozenset[str]] = FINISHED | {"PENDING", "RUNNING", "SUSPENDED"}
    FLAGS: ClassVar[frozenset[str]] = frozenset(
        {
            "COMPLETING", "CONFIGURING", "EXPEDITING", "LAUNCH_FAILED", "POWER_UP_NODE", "RECONFIG_FAIL",
            "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "REVOKED", "SIGNALING",
            "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "UPDATE_DB",
        }
    )  # fmt: skip

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended and nothing of it is left on any node."""
        return self.base in FINISHED and self.flags.isdisjoint({"COMPLETING", "STAGE_OUT"})

    @property
    def holds_nodes(self) -> bool:
        """
        Whether the nodes named by the job are still in its hands.

        True for running, suspended and completing jobs, and for base states this library does not know.
        """
        if not self.flags.isdisjoint({"COMPLETING", "STAGE_OUT", "CONFIGURING", "STOPPED", "SIGNALING"}):
            return True
        return self.base != "PENDING" and self.base not in FINISHED


@dataclass(frozen=True, slots=True)
class ExitCode:
    """How a job ended: ``return_code`` of the batch script, or the signal that ended it."""

    status: tuple[str, ...] = ()
    return_code: int | None = None
    signal: int | None = None
    signal_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Entry):
    """
    A job as slurmctld shows it.

    Times are aware and in UTC, memory is in MiB; ``None`` means not set, ``INFINITE`` no limit.

    Parameters
    ----------
    id
        Job id. For a task of an array, its own id; see ``array_job_id`` and ``array_task_id``.
    name, user, user_id, group, account, partition, qos, reservation
        As given at submission or filled in by Slurm. ``partition`` may be a list separated by commas while pending.
    state, state_reason, state_description
        Base state and flags; why it is pending or ended as it did.
    nodes
        Names of the nodes it was given, expanded; ``node_list`` is the same in Slurm's notation.
    submit_time, eligible_time, start_time, end_time
        ``start_time`` and ``end_time`` are expectations until they are past.
    time_limit
        Wall time it may use.
    batch
        Whether it is a batch job, and not an interactive one; only such can be requeued.
    requeue
        Whether it may be requeued when its node fails.
    restarts
        How often it was.
    """

    KEY: ClassVar[str] = "id"

    id: int
    name: str = ""
    user: str = ""
    user_id: int | None = None
    group: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    reservation: str = ""
    state: JobState = JobState()
    state_reason: str = ""
    state_description: str = ""
    node_list: str = ""
    nodes: tuple[str, ...] = ()
    batch_host: str = ""
    scheduled_nodes: str = ""
    required_nodes: str = ""
    excluded_nodes: str = ""
    node_count: int | None = None
    cpus: int | None = None
    tasks: int | None = None
    cpus_per_task: int | None = None
    memory_per_node_mib: int | None = None
    memory_per_cpu_mib: int | None = None
    gres_detail: tuple[str, ...] = ()
    tres_requested: str = ""
    tres_allocated: str = ""
    features: str = ""
    licenses: str = ""
    submit_time: datetime | None = None
    eligible_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    suspend_time: datetime | None = None
    deadline: datetime | None = None
    preempt_time: datetime | None = None
    time_limit: timedelta | Infinite | None = None
    batch: bool = False
    requeue: bool = False
    restarts: int = 0
    hold: bool = False
    priority: int | Infinite | None = None
    nice: int | None = None
    dependency: str = ""
    array_job_id: int | None = None
    array_task_id: int | None = None
    array_tasks: str = ""
    het_job_id: int | None = None
    het_job_offset: int | None = None
    exit_code: ExitCode | None = None
    derived_exit_code: ExitCode | None = None
    flags: frozenset[str] = frozenset()
    shared: tuple[str, ...] = ()
    comment: str = ""
    admin_comment: str = ""
    system_comment: str = ""
    extra: str = ""
    cluster: str = ""
    command: str = ""
    working_directory: str = ""
    standard_input: str = ""
    standard_output: str = ""
    standard_error: str = ""
    wckey: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether it has ended and nothing of it is left on any node."""
        return self.state.is_finished

    @property
    def is_pending(self) -> bool:
        """Whether it waits for resources."""
        return self.state.base == "PENDING"

    @property
    def is_running(self) -> bool:
        """Whether it is running now (a suspended one is not)."""
        return self.state.base == "RUNNING"

    @property
    def holds_nodes(self) -> bool:
        """Whether its ``nodes`` are still in its hands; see :attr:`JobState.holds_nodes`."""
        return self.state.holds_nodes

    @property
    def alone(self) -> str:
        """
        What Slurm takes for this job and no other: its id, or ``<array>_<task>`` for a task of an array.

        The task that an array started last has the id of the array itself, and that id means all of its tasks when
        something is to be cancelled or requeued (measured with 24.11 and 26.05).
        """
        if self.array_job_id is None or self.array_task_id is None:
            return str(self.id)
        return f"{self.array_job_id}_{self.array_task_id}"


@dataclass(frozen=True, slots=True)
class JobStateEntry(Entry):
    """Id and state of a job, from the cheap listing; ``id`` is text because arrays show as ``7_[1-3]``."""

    KEY: ClassVar[str] = "id"

    id: str
    state: JobState
