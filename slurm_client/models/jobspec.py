"""What a job is to be: for submission, and for changes of one that exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slurm_client.models.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from slurm_client.errors import Report
    from slurm_client.models.values import Delay, Infinite


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """
    Wishes about a job; ``None`` leaves a thing to Slurm, or as it is.

    Memory and disk are in MiB. slurmrestd does not read the ``#SBATCH`` lines of a script: what they say belongs here,
    and :func:`slurm_client.notation.sbatch.parse` puts it here. What a data parser lacks is refused when it is sent.

    Parameters
    ----------
    script
        The batch script, with its ``#!`` line.
    environment
        Of the job. slurmrestd passes on none of its own, and Slurm refuses a job without any; so ``PATH`` is
        :data:`~slurm_client.encode.jobs.PATH` if it is not in here, where Linux has the commands for everybody. With
        ``SLURM_GET_USER_ENV=1`` slurmd takes the user's login environment, and no ``PATH`` is added.
    working_directory
        Where it starts, and where its output goes by default. When absent at submission it is
        :data:`~slurm_client.encode.jobs.DIRECTORY`: a client knows no home of the user, and a user who may not write
        there has a job that ends at once.
    nodes
        How many: ``"2"``, ``"2-4"``, ``"1,2,4"``.
    minimum_nodes
        How many at least, where no ``nodes`` say it.
    tasks, tasks_per_node, tasks_per_core, tasks_per_socket, tasks_per_gpu, cpus_per_task
        Processes, and CPUs for each.
    minimum_cpus, minimum_cpus_per_node, sockets_per_node, cores_per_socket, threads_per_core
        What there must be, altogether and on each node.
    cpus_per_tres, memory_per_tres
        For each resource: ``gres/gpu:4``; memory in MiB.
    tres_per_job, tres_per_node, tres_per_socket, tres_per_task
        Resources such as ``gres/gpu:1``.
    tres_bind, tres_freq
        How tasks are bound to them, and their clock: ``gres/gpu:single``, ``gpu:high``.
    constraints, prefer, batch_features, cluster_constraint
        Features of nodes that must be, or had better be there; of the node of the script; of a cluster.
    core_specification, thread_specification
        Cores or threads on each node that are left to the system.
    time_limit, time_minimum
        Wall time, and the least that will do, rounded up to minutes.
    deadline
        When it must have ended; else it is removed.
    delay_boot
        How long it waits for nodes with its features before others are rebooted, in whole seconds.
    warning_signal, warning_time, warning_flags
        Signal before the time limit (``USR1``), how long before, and ``BATCH_JOB`` for the script alone.
    switches, switch_wait
        Most leaf switches, and how long to wait for so few, in whole seconds.
    shared
        ``none`` (nodes of its own), ``oversubscribe``, ``user``, ``mcs`` or ``topo``.
    flags, mail_type, memory_binding_type, profile
        Words of the data parser: ``GRES_BINDING_ENFORCED``; ``END``; ``LOCAL``; ``TASK``.
    kill_on_node_fail
        Whether it ends when one of its nodes fails.
    open_mode
        ``APPEND`` or ``TRUNCATE``: what becomes of output that is there already.
    memory_update_margin, memory_update_delay
        Percents above what is used, and minutes, after which its memory is cut to that.
    array
        Indices of an array: ``"0-9%2"``.
    hold
        Submit held, or hold; ``False`` releases.
    other
        Keys of the data parser's own ``job_desc_msg``, passed on as they are.
    """

    script: str | None = None
    name: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    nodes: str | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    memory_per_node_mib: int | None = None
    memory_per_cpu_mib: int | None = None
    tres_per_node: str | None = None
    constraints: str | None = None
    required_nodes: Sequence[str] | None = None
    excluded_nodes: Sequence[str] | None = None
    licenses: str | None = None
    time_limit: timedelta | Infinite | None = None
    begin_time: datetime | None = None
    dependency: str | None = None
    array: str | None = None
    priority: int | None = None
    nice: int | None = None
    hold: bool | None = None
    requeue: bool | None = None
    environment: Mapping[str, str] | None = None
    working_directory: str | None = None
    arguments: Sequence[str] | None = None
    standard_input: str | None = None
    standard_output: str | None = None
    standard_error: str | None = None
    comment: str | None = None
    admin_comment: str | None = None
    extra: str | None = None
    wckey: str | None = None
    account_gather_frequency: str | None = None
    batch_features: str | None = None
    burst_buffer: str | None = None
    cluster_constraint: str | None = None
    container: str | None = None
    container_id: str | None = None
    container_type: str | None = None
    contiguous: bool | None = None
    core_specification: int | None = None
    thread_specification: int | None = None
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    cpu_frequency: str | None = None
    cpus_per_tres: str | None = None
    deadline: datetime | None = None
    delay_boot: Delay | None = None
    distribution: str | None = None
    flags: Sequence[str] | None = None
    kill_on_node_fail: bool | None = None
    warning_signal: str | None = None
    warning_time: Delay | None = None
    warning_flags: Sequence[str] | None = None
    mail_type: Sequence[str] | None = None
    mail_user: str | None = None
    mcs_label: str | None = None
    memory_binding: str | None = None
    memory_binding_type: Sequence[str] | None = None
    memory_per_tres: str | None = None
    memory_update_margin: int | None = None
    memory_update_delay: int | None = None
    minimum_cpus: int | None = None
    minimum_cpus_per_node: int | None = None
    minimum_nodes: int | None = None
    network: str | None = None
    oom_kill_step: int | None = None
    open_mode: str | None = None
    overcommit: bool | None = None
    prefer: str | None = None
    profile: Sequence[str] | None = None
    reboot: bool | None = None
    segment_size: int | None = None
    selinux_context: str | None = None
    shared: str | None = None
    switches: int | None = None
    switch_wait: Delay | None = None
    tasks_per_core: int | None = None
    tasks_per_gpu: int | None = None
    tasks_per_socket: int | None = None
    temporary_disk_mib: int | None = None
    time_minimum: timedelta | Infinite | None = None
    tres_bind: str | None = None
    tres_freq: str | None = None
    tres_per_job: str | None = None
    tres_per_socket: str | None = None
    tres_per_task: str | None = None
    wait_all_nodes: bool | None = None
    other: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """
    A request that would submit a job.

    Parameters
    ----------
    method, path
        Where it would go: the path names the data parser.
    body
        JSON, byte for byte as it would be sent.
    """

    method: str
    path: str
    body: str


@dataclass(frozen=True, slots=True)
class SubmittedJob(Entry):
    """
    A job Slurm has taken.

    Parameters
    ----------
    id
        Job id.
    message
        What the submit plugins wish to tell the user.
    warnings
        Of slurmrestd.
    """

    id: int
    message: str = ""
    warnings: tuple[Report, ...] = ()


@dataclass(frozen=True, slots=True)
class JobResult(Entry):
    """What became of one job in a call about many: ``error`` is ``None`` if it went well."""

    id: str
    error: Report | None = None
