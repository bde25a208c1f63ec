"""Names of the endpoint that slurmctld 26.05 has itself (`MetricsType=metrics/openmetrics`), for older releases too.

What differs from it on purpose: what is called bytes is in bytes (there MiB), and jobs of partitions, users and
accounts are counted by tasks of arrays everywhere, as in `slurm_jobs` (there `slurm_partition_jobs` and its like count
records that have not ended). Times without a unit in their name are in microseconds, and `mem_*` of partitions in MiB,
as there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from slurm_exporter.families.jobs import MIB
from slurm_exporter.other_names.notation import Group, Row, ends, moment, number, of_flags, of_states
from slurm_exporter.other_names.slurm_exporter import top
from slurm_exporter.other_names.tally import Jobs, Limits, Nodes, Tally
from slurm_exporter.samples.family import Family, Samples
from slurm_exporter.sources.snapshot import Snapshot

_STATES: Final = {
    "bootfail": "BOOT_FAIL",
    "cancelled": "CANCELLED",
    "completed": "COMPLETED",
    "deadline": "DEADLINE",
    "failed": "FAILED",
    "node_failed": "NODE_FAIL",
    "outofmemory": "OUT_OF_MEMORY",
    "pending": "PENDING",
    "preempted": "PREEMPTED",
    "running": "RUNNING",
    "suspended": "SUSPENDED",
    "timeout": "TIMEOUT",
}
_FLAGS: Final = {
    "completing": "COMPLETING",
    "configuring": "CONFIGURING",
    "expediting": "EXPEDITING",
    "fed_requeued": "REQUEUE_FED",
    "powerup_node": "POWER_UP_NODE",
    "requeued": "REQUEUED",
    "resizing": "RESIZING",
    "revoked": "REVOKED",
    "signaling": "SIGNALING",
    "stageout": "STAGE_OUT",
}
_NODE_BASES: Final = {
    "alloc": "ALLOCATED",
    "down": "DOWN",
    "future": "FUTURE",
    "idle": "IDLE",
    "mixed": "MIXED",
    "unknown": "UNKNOWN",
}
_NODE_FLAGS: Final = {
    "blocked": "BLOCKED",
    "cloud": "CLOUD",
    "drain": "DRAIN",
    "dyn_future": "DYNAMIC_FUTURE",
    "dyn_normal": "DYNAMIC_NORM",
    "external": "EXTERNAL",
    "fail": "FAIL",
    "invalid_reg": "INVALID_REG",
    "maint": "MAINTENANCE",
    "planned": "PLANNED",
    "power_down": "POWER_DOWN",
    "power_up": "POWER_UP",
    "powered_down": "POWERED_DOWN",
    "powering_up": "POWERING_UP",
    "reboot_issued": "REBOOT_ISSUED",
    "resv": "RESERVED",
}


def _has(name: str, text: str, key: str, unit: str = "1") -> Row[Jobs]:
    return Row(name, text, lambda jobs: jobs.amounts[key], unit)


def _amount(name: str, text: str, key: str, unit: str = "1", of: int = 1) -> Row[Mapping[str, int]]:
    def value(amounts: Mapping[str, int]) -> float | None:
        found = amounts.get(key)
        return None if found is None else found / of

    return Row(name, text, value, unit)


_JOBS: Final[tuple[Row[Jobs], ...]] = (
    Row("", "Jobs.", lambda jobs: jobs.total),
    *of_states("Jobs", _STATES, "_{}"),
    *of_flags("Jobs", _FLAGS, "_{}"),
    Row("_hold", "Pending jobs that are held.", lambda jobs: jobs.held),
    Row("_finished", "Jobs that have ended.", lambda jobs: jobs.finished),
    Row("_started", "Jobs that have been started.", lambda jobs: jobs.started),
    _has("_cpus_alloc", "CPUs that jobs have.", "cpus_alloc"),
    _has("_gpus_alloc", "GPUs that jobs have.", "gpus_alloc"),
    _has("_memory_alloc", "Memory that jobs have.", "memory_alloc", "bytes"),
)
_NODES_ALLOC: Final = _has("_nodes_alloc", "Nodes that jobs have.", "nodes_alloc")
_SIZES: Final[tuple[Row[Jobs], ...]] = (
    Row("_max_job_nodes", "Most nodes that a pending job can use.", lambda jobs: jobs.most),
    Row("_max_job_nodes_nohold", "The same of those that are not held.", lambda jobs: jobs.most_not_held),
    Row("_min_job_nodes", "Most nodes that a pending job asks for at least.", lambda jobs: jobs.least),
    Row("_min_job_nodes_nohold", "The same of those that are not held.", lambda jobs: jobs.least_not_held),
    Row(
        "_wait_part_node_limit",
        "Jobs that wait because of the partition's limit of nodes.",
        lambda jobs: jobs.reasons["PartitionNodeLimit"],
    ),
)
_NODE_STATES: Final[tuple[Row[Nodes], ...]] = (
    *of_states("Nodes", _NODE_BASES, "_{}"),
    *of_flags("Nodes", _NODE_FLAGS, "_{}"),
    Row("_drained", "Nodes that are drained and have no work.", lambda nodes: nodes.drained),
    Row("_draining", "Nodes that are drained and have work.", lambda nodes: nodes.draining),
)

JOBS: Final = Group("slurm_jobs", (), (*_JOBS, _NODES_ALLOC), "jobs/")
USER: Final = Group("slurm_user_jobs", ("username",), (*_JOBS, _NODES_ALLOC), "jobs/")
ACCOUNT: Final = Group("slurm_account_jobs", ("account",), (*_JOBS, _NODES_ALLOC), "jobs/")
PARTITION_JOBS: Final = Group("slurm_partition_jobs", ("partition",), (*_JOBS, *_SIZES), "jobs/")
NODE: Final = Group(
    "slurm_node_",
    ("node",),
    (
        _amount("cpus", "CPUs of a node.", "cpus"),
        _amount("cpus_alloc", "CPUs that jobs have.", "cpus_alloc"),
        _amount("cpus_effective", "CPUs that jobs can have.", "cpus_effective"),
        _amount("cpus_idle", "CPUs that jobs can have and none has.", "cpus_idle"),
        _amount("gpus", "GPUs of a node.", "gpus"),
        _amount("gpus_alloc", "GPUs that jobs have.", "gpus_alloc"),
        _amount("memory_alloc_bytes", "Memory that jobs have.", "memory_alloc", "bytes"),
        _amount("memory_effective_bytes", "Memory that jobs can have.", "memory_effective", "bytes"),
        _amount("memory_free_bytes", "Memory that the kernel calls free.", "memory_free", "bytes"),
        _amount("memory_bytes", "Memory of a node.", "memory", "bytes"),
    ),
    "nodes/",
)
NODES: Final = Group(
    "slurm_nodes",
    (),
    (
        Row[Nodes]("", "Nodes.", lambda nodes: nodes.total),
        *_NODE_STATES,
        *of_flags("Nodes", {"completing": "COMPLETING", "noresp": "NOT_RESPONDING"}, "_{}"),
        *of_flags("Nodes", {"reboot_req": "REBOOT_REQUESTED"}, "_{}"),
    ),
    "nodes/",
)
PARTITION_NODES: Final = Group(
    "slurm_partition_nodes",
    ("partition",),
    (
        Row[Nodes]("", "Nodes of a partition.", lambda nodes: nodes.total),
        *_NODE_STATES,
        *of_flags("Nodes", {"cg": "COMPLETING", "no_resp": "NOT_RESPONDING", "powering_down": "POWERING_DOWN"}, "_{}"),
        *of_flags("Nodes", {"reboot_requested": "REBOOT_REQUESTED"}, "_{}"),
    ),
    "nodes/",
)
PARTITION_AMOUNTS: Final = Group(
    "slurm_partition_",
    ("partition",),
    (
        _amount("cpus", "CPUs of a partition.", "cpus"),
        _amount("gpus", "GPUs of a partition.", "gpus"),
        _amount("nodes_cpus_efctv", "CPUs that jobs can have.", "cpus_effective"),
        _amount("nodes_cpus_idle", "CPUs that jobs can have and none has.", "cpus_idle"),
        _amount("nodes_cpus_alloc", "CPUs that jobs have.", "cpus_alloc"),
        _amount("nodes_mem_alloc", "Memory that jobs have.", "memory_alloc", "MiB", MIB),
        _amount("nodes_mem_avail", "Memory that jobs can have.", "memory_effective", "MiB", MIB),
        _amount("nodes_mem_free", "Memory that the kernels call free.", "memory_free", "MiB", MIB),
        _amount("nodes_mem_tot", "Memory.", "memory", "MiB", MIB),
    ),
    "nodes/",
)
PARTITIONS: Final = Group(
    "slurm_partitions", (), (Row[Tally]("", "Partitions.", lambda tally: len(tally.partition_nodes)),), "partitions/"
)


SCHEDULERS: Final = Group(
    "slurm_",
    (),
    (
        number("agent_cnt", "Agents that send calls to nodes.", "agent_count"),
        number("agent_queue_size", "Calls to nodes that wait for an agent.", "agent_queue_size"),
        number("agent_thread_cnt", "Threads of agents.", "agent_thread_count"),
        number("bf_depth_mean", "Jobs that the backfill scheduler looked at in the mean cycle.", "backfill_depth_mean"),
        number("bf_mean_cycle", "Its mean cycle.", "backfill_cycle_mean_us", "microseconds"),
        number("bf_mean_table_sz", "Slots of time in the mean cycle.", "backfill_table_size_mean"),
        number("bf_queue_len_mean", "Jobs that waited in the mean cycle.", "backfill_queue_length_mean"),
        number("bf_try_depth_mean", "Jobs that it tried to start in the mean cycle.", "backfill_depth_try_mean"),
        number("backfilled_het_jobs", "Components of heterogeneous jobs that it started.", "backfilled_het_jobs"),
        number("backfilled_jobs", "Jobs that it started.", "backfilled_jobs"),
        number("bf_active", "Whether it runs now.", "backfill_active"),
        number("bf_cycle_cnt", "Its cycles.", "backfill_cycles"),
        number("bf_cycle_last", "Its last cycle.", "backfill_cycle_last_us", "microseconds"),
        number("bf_cycle_max", "Its longest cycle.", "backfill_cycle_max_us", "microseconds"),
        number("bf_cycle_tot", "Time in its cycles.", "backfill_cycle_sum_us", "microseconds"),
        number("bf_depth_tot", "Jobs that it looked at.", "backfill_depth_sum"),
        number("bf_depth_try_tot", "Jobs that it tried to start.", "backfill_depth_try_sum"),
        number("bf_last_depth", "Jobs that it looked at in the last cycle.", "backfill_depth_last"),
        number("bf_last_depth_try", "Jobs that it tried to start in the last cycle.", "backfill_depth_try_last"),
        number("bf_queue_len", "Jobs that waited in the last cycle.", "backfill_queue_length"),
        number("bf_queue_len_tot", "Jobs that waited, over all cycles.", "backfill_queue_length_sum"),
        number("bf_table_size", "Slots of time in the last cycle.", "backfill_table_size"),
        number("bf_table_size_tot", "Slots of time, over all cycles.", "backfill_table_size_sum"),
        moment("bf_when_last_cycle", "When it last ran, since 1970.", "backfill_last_run"),
        number("sdiag_jobs_canceled", "Jobs cancelled.", "jobs_canceled"),
        number("sdiag_jobs_completed", "Jobs completed.", "jobs_completed"),
        number("sdiag_jobs_failed", "Jobs that slurmctld failed.", "jobs_failed"),
        number("sdiag_jobs_pending", "Jobs that waited when they were counted.", "jobs_pending"),
        number("sdiag_jobs_running", "Jobs that ran when they were counted.", "jobs_running"),
        number("sdiag_jobs_started", "Jobs started.", "jobs_started"),
        number("sdiag_jobs_submitted", "Jobs submitted.", "jobs_submitted"),
        moment("sdiag_job_states_ts", "When jobs were last counted, since 1970.", "job_states_at"),
        number("last_backfilled_jobs", "Jobs that backfill started since its last cycle.", "last_backfilled_jobs"),
        number(
            "sdiag_latency", "How long slurmctld takes to ask for the time.", "gettimeofday_latency_us", "microseconds"
        ),
        number("schedule_cycle_cnt", "Cycles of the main scheduler.", "schedule_cycles"),
        number("schedule_cycle_depth", "Jobs that it looked at.", "schedule_depth_sum"),
        number("schedule_cycle_last", "Its last cycle.", "schedule_cycle_last_us", "microseconds"),
        number("schedule_cycle_max", "Its longest cycle.", "schedule_cycle_max_us", "microseconds"),
        number("schedule_cycle_tot", "Time in its cycles.", "schedule_cycle_sum_us", "microseconds"),
        number("schedule_queue_len", "Jobs that waited in the last cycle.", "schedule_queue_length"),
        ends("sched_exit_end", "main", "end_job_queue"),
        ends("sched_exit_max_depth", "main", "default_queue_depth"),
        ends("sched_exit_max_job_start", "main", "max_job_start"),
        ends("sched_exit_lic", "main", "licenses"),
        ends("sched_exit_rpc_cnt", "main", "max_rpc_cnt"),
        ends("sched_exit_timeout", "main", "max_sched_time"),
        ends("bf_exit_end", "backfill", "end_job_queue"),
        ends("bf_exit_max_job_start", "backfill", "bf_max_job_start"),
        ends("bf_exit_max_job_test", "backfill", "bf_max_job_test"),
        ends("bf_exit_state_changed", "backfill", "state_changed"),
        ends("bf_exit_table_limit", "backfill", "bf_node_space_size"),
        ends("bf_exit_timeout", "backfill", "bf_max_time"),
        number("sched_mean_cycle", "Mean cycle of the main scheduler.", "schedule_cycle_mean_us", "microseconds"),
        number("sched_mean_depth_cycle", "Jobs that it looked at in the mean cycle.", "schedule_depth_mean"),
        number("server_thread_cnt", "Threads that serve calls.", "server_thread_count"),
        number("slurmdbd_queue_size", "Records that wait for slurmdbd.", "dbd_agent_queue_size"),
        moment("last_proc_req_start", "When slurmctld last set its counters to zero, since 1970.", "since"),
        moment("sched_stats_timestamp", "When slurmctld answered, since 1970.", "now"),
    ),
    "diag/",
)

GROUPS: Final = (
    JOBS, USER, ACCOUNT, PARTITION_JOBS, NODE, NODES, PARTITION_NODES, PARTITION_AMOUNTS, PARTITIONS, SCHEDULERS,
)  # fmt: skip


def families() -> Iterable[Family]:
    """Yield all declarations."""
    for group in GROUPS:
        yield from group.families()


def samples(tally: Tally, snapshot: Snapshot, limits: Limits) -> Iterator[Samples]:
    """Yield all samples; parameters as in :func:`slurm_exporter.other_names.slurm_exporter.samples`."""
    yield from JOBS.samples({(): tally.jobs})
    yield from USER.samples({(name,): tally.users[name] for name in top(tally.users, limits.users)})
    yield from ACCOUNT.samples({(name,): tally.accounts[name] for name in top(tally.accounts, limits.accounts)})
    yield from PARTITION_JOBS.samples({(name,): jobs for name, jobs in tally.partition_jobs.items()})
    yield from NODE.samples({(name,): amounts for name, amounts in tally.single.items()})
    yield from NODES.samples({(): tally.nodes})
    yield from PARTITION_NODES.samples({(name,): nodes for name, nodes in tally.partition_nodes.items()})
    yield from PARTITION_AMOUNTS.samples({(name,): nodes.amounts for name, nodes in tally.partition_nodes.items()})
    yield from PARTITIONS.samples({(): tally})
    if snapshot.diag is not None:
        yield from SCHEDULERS.samples({(): snapshot.diag})
