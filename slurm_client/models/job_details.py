"""
The rest of a job: what :class:`~slurm_client.models.job.Job` leaves out because lists of many jobs are read without it.

Of each node it has the cores that the job was given; what a job is and does is in :mod:`slurm_client.models.job`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

__all__ = ["JobDetails", "JobNode", "JobResources", "JobSocket"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSocket:
    """Cores of one socket that a job was given, and those of them that its steps use, by their numbers there."""

    index: int
    cores: tuple[int, ...] = ()
    cores_in_use: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNode:
    """What a job was given on one node; memory in MiB. ``cpus`` is ``None`` with v0.0.40, which does not say it."""

    name: str
    cpus: int | None = None
    cpus_in_use: int = 0
    memory_mib: int = 0
    memory_in_use_mib: int = 0
    sockets: tuple[JobSocket, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResources:
    """
    What a job was given.

    Parameters
    ----------
    node_list, node_count, cpus
        All of it; ``node_list`` in Slurm's notation.
    nodes
        Node by node, in the order of ``node_list``. Empty where the job was not asked for with its details.
    whole_nodes
        Whether the nodes are its own, with all that is on them (v0.0.41 and newer).
    threads_per_core
        Threads of each core that it may use; ``None`` where Slurm does not say (v0.0.41 and newer).
    select_type, node_select_type
        Words on how Slurm chose: what it counts, and how it shares the nodes (v0.0.41 and newer).
    """

    node_list: str = ""
    node_count: int = 0
    cpus: int = 0
    nodes: tuple[JobNode, ...] = ()
    whole_nodes: bool = False
    threads_per_core: int | None = None
    select_type: frozenset[str] = frozenset()
    node_select_type: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """
    What slurmctld says of a job beside the fields of :class:`~slurm_client.models.Job`.

    ``None``, and an empty text, is "nothing asked for", or a data parser that has no such key. Keys that not all data
    parsers have name the first.

    Parameters
    ----------
    sluid
        Id of the job that no other has, also of another cluster (v0.0.44 and newer).
    association_id
        Of its user and account in slurmdbd; ``None`` without accounting.
    allocating_node
        Host that it was submitted on.
    resources
        What it was given, also after its end; ``None`` while it waits.
    billable_tres
        What it costs by ``TRESBillingWeights``.
    job_size
        Numbers of nodes that it may have, as ``--nodes`` has them, e.g. ``("1", "3-5")``.
    cores_per_socket, sockets_per_node, sockets_per_board, threads_per_core
        What its nodes must have.
    tasks_per_board, tasks_per_core, tasks_per_socket, tasks_per_tres
        Tasks that it has on each at most; ``None`` for any number.
    core_spec, thread_spec
        Cores, or threads, of each node that are left to the system.
    cpus_per_tres, memory_per_tres, tres_bind, tres_freq
        As asked for, e.g. ``gres/gpu:4``.
    cpu_frequency_minimum, cpu_frequency_maximum
        In kHz; or a word: ``low``, ``medium``, ``high``, ``highm1``.
    cpu_frequency_governor
        ``conservative``, ``ondemand``, ``performance``, ``powersave``, ``schedutil``, ``userspace``; several are joined
        by commas.
    memory_update_margin, memory_update_delay
        Slurm takes memory away that the job does not use: how many percent it leaves above what is used, and after how
        long (v0.0.45 and newer).
    batch_features, cluster_features
        Features of the node of its script; of the cluster of a federation.
    mail_types, mail_user
        At which events Slurm writes whom a mail.
    profile
        What is sampled of its tasks; ``NOT_SET`` is the default of the cluster.
    delay_boot
        How long it waits for nodes with its features before others are booted for it.
    reboot
        Whether its nodes are to be booted before it.
    ran_before_suspension
        How long it had run when it was suspended last.
    resize_time, preemptable_time
        When its size changed last; since when it may be preempted.
    failed_node
        Node that failed under it.
    network, burst_buffer, burst_buffer_state, mcs_label, selinux_context
        As asked for, and as Slurm set them.
    container_type
        Runtime of its container (v0.0.45 and newer).
    cron
        Times at which scrontab runs it.
    het_job_ids
        Numbers of all components of its heterogeneous job, e.g. ``7-9``.
    federation_origin, federation_siblings_active, federation_siblings_viable
        Cluster that it was submitted to; clusters that have it, and that might run it.
    """

    sluid: str = ""
    association_id: int | None = None
    allocating_node: str = ""
    resources: JobResources | None = None
    billable_tres: float | None = None
    job_size: tuple[str, ...] = ()
    cores_per_socket: int | None = None
    sockets_per_node: int | None = None
    sockets_per_board: int | None = None
    threads_per_core: int | None = None
    tasks_per_board: int | None = None
    tasks_per_core: int | None = None
    tasks_per_socket: int | None = None
    tasks_per_tres: int | None = None
    core_spec: int | None = None
    thread_spec: int | None = None
    cpus_per_tres: str = ""
    memory_per_tres: str = ""
    tres_bind: str = ""
    tres_freq: str = ""
    cpu_frequency_minimum: int | str | None = None
    cpu_frequency_maximum: int | str | None = None
    cpu_frequency_governor: str = ""
    memory_update_margin: int | None = None
    memory_update_delay: timedelta | None = None
    batch_features: str = ""
    cluster_features: str = ""
    mail_types: frozenset[str] = frozenset()
    mail_user: str = ""
    profile: frozenset[str] = frozenset()
    delay_boot: timedelta | None = None
    reboot: bool = False
    ran_before_suspension: timedelta | None = None
    resize_time: datetime | None = None
    preemptable_time: datetime | None = None
    failed_node: str = ""
    network: str = ""
    burst_buffer: str = ""
    burst_buffer_state: str = ""
    mcs_label: str = ""
    selinux_context: str = ""
    container_type: str = ""
    cron: str = ""
    het_job_ids: str = ""
    federation_origin: str = ""
    federation_siblings_active: tuple[str, ...] = ()
    federation_siblings_viable: tuple[str, ...] = ()
