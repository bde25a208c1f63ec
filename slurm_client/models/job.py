"""
Slurm jobs as slurmctld shows them, and how their states are to be read.

Jobs in the accounting database have another shape and are not meant here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from slurm_client.models.entry import Entry
from slurm_client.models.values import Infinite, State

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from slurm_client.models.job_details import JobDetails
    from slurm_client.notation.jobid import JobId

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


@dataclass(frozen=True, slots=True)
class PartitionPriority:
    """What the priority of a pending job would be in one of the partitions that it names."""

    partition: str
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Entry):
    """
    A job as slurmctld shows it; what lists of many jobs need not have is in :attr:`details`.

    Times are aware and in UTC, memory is in MiB; ``None`` means not set, ``INFINITE`` no limit.

    Parameters
    ----------
    id
        Job id. For a task of an array, its own id; see ``array_job_id`` and ``array_task_id``.
    name, user, user_id, group, group_id, account, partition, qos, reservation
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
    node_count, max_nodes
        How many nodes it has, or at least wants; and at most, ``None`` if it names no more than that.
    max_cpus, minimum_cpus_per_node, minimum_tmp_disk_mib
        CPUs it takes at most, and what each of its nodes must have.
    tres_per_job, tres_per_node, tres_per_socket, tres_per_task
        As asked for, e.g. ``gres/gpu:2``; ``tres_requested`` and ``tres_allocated`` are what Slurm counts.
    features, prefer
        Features that its nodes must have, and those they should.
    contiguous, segment_size
        Whether its nodes must follow one another, and how many of them must be in one block (v0.0.43 and newer).
    switches, switches_wait
        Leaf switches it wants at most, and how long it waits for that.
    time_minimum
        Wall time to which Slurm may shorten ``time_limit`` to start it earlier.
    accrue_time
        Since when its priority grows with age.
    last_sched_evaluation
        When Slurm last looked whether it can start; moves all the time, so two jobs that differ in nothing else are
        equal.
    priority_by_partition
        Of a pending job that names several partitions, with priority/multifactor (v0.0.42 and newer).
    array_max_tasks
        Tasks of the array that may run at the same time; ``None`` for any number.
    standard_input, standard_output, standard_error
        As given, with ``%j`` and its like, from v0.0.43; the path that they stand for before.
    standard_input_expanded, standard_output_expanded, standard_error_expanded
        The path, in all data parsers; empty where Slurm says none: newer releases do not repeat for the error what
        goes where the output goes, and leave out ``/dev/null`` as input.
    submit_line
        The command line of sbatch, salloc or srun (v0.0.44 and newer); empty for what came through slurmrestd.
    container, container_id
        Path of the OCI bundle, and its id.
    licenses, licenses_allocated
        Licenses it asked for, and those it has (v0.0.43 and newer).
    """

    KEY: ClassVar[str] = "id"

    id: int
    name: str = ""
    user: str = ""
    user_id: int | None = None
    group: str = ""
    group_id: int | None = None
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
    max_nodes: int | None = None
    max_cpus: int | None = None
    minimum_cpus_per_node: int | None = None
    minimum_tmp_disk_mib: int | None = None
    tasks_per_node: int | None = None
    tres_per_job: str = ""
    tres_per_node: str = ""
    tres_per_socket: str = ""
    tres_per_task: str = ""
    prefer: str = ""
    contiguous: bool = False
    segment_size: int | None = None
    switches: int | None = None
    switches_wait: timedelta | None = None
    time_minimum: timedelta | Infinite | None = None
    accrue_time: datetime | None = None
    last_sched_evaluation: datetime | None = field(default=None, compare=False)
    priority_by_partition: tuple[PartitionPriority, ...] = ()
    array_max_tasks: int | None = None
    standard_input_expanded: str = ""
    standard_output_expanded: str = ""
    standard_error_expanded: str = ""
    submit_line: str = ""
    container: str = ""
    container_id: str = ""
    licenses_allocated: str = ""
    _details: JobDetails | None = field(default=None, repr=False, compare=False)

    @property
    def details(self) -> JobDetails:
        """
        All other keys of its record: mail, tasks per socket, cores on each node, and what else few ask for.

        A job that was asked for alone has them (``job``, ``job_parts``, ``job_tasks``), and so does one of a list that
        was read with ``details=True`` (``jobs``, ``find_jobs``); for any other there is no such attribute
        (AttributeError). They are neither compared nor printed with the job.
        """
        if self._details is None:
            raise AttributeError(
                f"job {self.id} was listed without details: ask for job({self.id}), or jobs(details=True)"
            )
        return self._details

    @property
    def is_finished(self) -> bool:
        """Whether it has ended and nothing of it is left on any node."""
        return self.state.is_finished

    @property
    def succeeded(self) -> bool:
        """Whether it has ended, and well; see :attr:`JobEnd.succeeded`."""
        return self.is_finished and _went_well(self.state, self.exit_code)

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
    """
    Id and state of a job, from the cheap listing.

    Parameters
    ----------
    id
        As slurmrestd writes it, which is not as Slurm's commands do: the number of the *record*, then the task or the
        component. ``31_2`` is task 2 of the array in which it has the record 31, and ``33+1`` component 1 of the
        heterogeneous job in which it has the record 33. Of tasks that wait together, the record is that of the array.
        v0.0.40 alone writes the number of the array for all tasks.
    state
        Base state and flags.
    array_job_id
        The array of a task where v0.0.40 says it; no other data parser does.
    """

    KEY: ClassVar[str] = "id"

    id: str
    state: JobState
    array_job_id: int | None = None

    @property
    def number(self) -> int:
        """The number that the id begins with; 0 if it cannot be read."""
        found = re.match("[0-9]{1,10}", self.id)
        return int(found[0]) if found else 0

    @property
    def record(self) -> int | None:
        """Number of the record, which is ``Job.id``; ``None`` for a task from v0.0.40, which does not say it."""
        return self.number if self.array_job_id is None else None

    @property
    def task(self) -> int | None:
        """Index of the task in its array."""
        return self._after("_")

    @property
    def component(self) -> int | None:
        """Offset of the component in its heterogeneous job."""
        return self._after("+")

    def _after(self, mark: str) -> int | None:
        found = self.id.partition(mark)[2]
        return int(found) if re.fullmatch("[0-9]{1,10}", found) else None


def _went_well(state: JobState, exit_code: ExitCode | None) -> bool:
    if state.base != "COMPLETED":
        return False
    return exit_code is None or not (exit_code.return_code or exit_code.signal)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd(Entry):
    """
    How a job, a task of an array, or a component of a heterogeneous job has ended.

    Parameters
    ----------
    id
        Its name: ``7``, ``7_3``, ``7+1``.
    state
        ``COMPLETED``, ``FAILED``, ``TIMEOUT``, …
    exit_code
        Of the script; ``None`` where slurmctld forgot the job after its state was seen.
    """

    id: JobId
    state: JobState
    exit_code: ExitCode | None = None

    @property
    def succeeded(self) -> bool:
        """
        Whether it went well: COMPLETED, exit code 0 and no signal.

        An exit code of 0 alone says nothing: a script that Slurm ends at its time limit may exit with 0.
        """
        return _went_well(self.state, self.exit_code)

    @property
    def exit_status(self) -> int:
        """
        The exit status as a shell sees it: 0 if it went well, the exit code of the script, or 128 and the signal.

        1 for what failed without either, such as a script that Slurm ended at its time limit and that exited with 0.
        """
        if self.succeeded:
            return 0
        code = self.exit_code
        return 128 + code.signal if code and code.signal else (code and code.return_code) or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    """
    A job that has ended, with all its parts.

    Parameters
    ----------
    id
        The job that was waited for.
    ends
        The job's own end, or that of each task or component, in their order.
    """

    id: JobId
    ends: tuple[JobEnd, ...]

    @property
    def succeeded(self) -> bool:
        """Whether all of it went well; see :attr:`JobEnd.succeeded`."""
        return all(end.succeeded for end in self.ends)

    @property
    def failed(self) -> tuple[JobEnd, ...]:
        """The parts that did not go well."""
        return tuple(end for end in self.ends if not end.succeeded)

    @property
    def exit_status(self) -> int:
        """The highest of its parts, as ``sbatch --wait`` has it; see :attr:`JobEnd.exit_status`."""
        return max((end.exit_status for end in self.ends), default=0)
