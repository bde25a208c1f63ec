"""Names of slurm-exporter 0.3, which is no longer developed, with values in the units that they name.

What differs from it on purpose: bytes are bytes and seconds are seconds (there MiB and microseconds), a job of several
partitions counts once in the cluster, and users and accounts have samples only within their budgets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from slurm_client.models.service import Diag
from slurm_exporter.other_names.notation import Group, Row, ends, moment, number, of_flags, of_states
from slurm_exporter.other_names.tally import Jobs, Limits, Nodes, Tally
from slurm_exporter.samples.budget import largest
from slurm_exporter.samples.family import Family, Labels, Samples
from slurm_exporter.sources.snapshot import Snapshot

_MICRO: Final = 1e-6

_BASES: Final = ("allocated", "down", "error", "future", "idle", "mixed", "unknown")
_NODE_FLAGS: Final = {
    "completing": "COMPLETING",
    "drain": "DRAIN",
    "fail": "FAIL",
    "maintenance": "MAINTENANCE",
    "notresponding": "NOT_RESPONDING",
    "planned": "PLANNED",
    "rebootrequested": "REBOOT_REQUESTED",
    "reserved": "RESERVED",
}
_ENDS: Final = {
    "bootfail": "BOOT_FAIL",
    "cancelled": "CANCELLED",
    "completed": "COMPLETED",
    "deadline": "DEADLINE",
    "failed": "FAILED",
    "pending": "PENDING",
    "preempted": "PREEMPTED",
    "running": "RUNNING",
    "suspended": "SUSPENDED",
    "timeout": "TIMEOUT",
    "nodefail": "NODE_FAIL",
    "outofmemory": "OUT_OF_MEMORY",
}
_JOB_FLAGS: Final = {
    "completing": "COMPLETING",
    "configuring": "CONFIGURING",
    "powerupnode": "POWER_UP_NODE",
    "stageout": "STAGE_OUT",
}


def _amount(name: str, key: str, text: str) -> Row[Mapping[str, int]]:
    return Row(name, text, lambda amounts: amounts.get(key), "bytes" if "bytes" in name else "1")


_NODE_STATES: Final[tuple[Row[Nodes], ...]] = (
    *of_states("Nodes", {name: name.upper() for name in _BASES}, "{}_total"),
    *of_flags("Nodes", _NODE_FLAGS, "{}_total"),
)
_AMOUNTS: Final = (
    _amount("cpus_total", "cpus", "CPUs."),
    _amount("cpus_effective_total", "cpus_effective", "CPUs that jobs can have."),
    _amount("cpus_alloc_total", "cpus_alloc", "CPUs that jobs have."),
    _amount("cpus_idle_total", "cpus_idle", "CPUs that jobs can have and none has."),
    _amount("memory_bytes", "memory", "Memory."),
    _amount("memory_effective_bytes", "memory_effective", "Memory that jobs can have."),
    _amount("memory_alloc_bytes", "memory_alloc", "Memory that jobs have."),
    _amount("memory_free_bytes", "memory_free", "Memory that the kernel calls free."),
)
_JOBS: Final[tuple[Row[Jobs], ...]] = (
    Row("_total", "Jobs.", lambda jobs: jobs.total),
    *of_states("Jobs", _ENDS, "_{}_total"),
    *of_flags("Jobs", _JOB_FLAGS, "_{}_total"),
    Row("_hold_total", "Pending jobs that are held.", lambda jobs: jobs.held),
    Row("_cpus_alloc_total", "CPUs that jobs have.", lambda jobs: jobs.amounts["cpus_alloc"]),
    Row("_memory_alloc_bytes", "Memory that jobs have.", lambda jobs: jobs.amounts["memory_alloc"], "bytes"),
)

NODES: Final = Group(
    "slurm_nodes_", (), (Row[Nodes]("total", "Nodes.", lambda nodes: nodes.total), *_NODE_STATES), "nodes/"
)
NODE: Final = Group("slurm_node_", ("node",), _AMOUNTS, "nodes/")
JOBS: Final = Group("slurm_jobs", (), _JOBS, "jobs/")
ACCOUNT: Final = Group("slurm_account_jobs", ("account",), _JOBS, "jobs/")
USER: Final = Group("slurm_user_jobs", ("userid", "username"), _JOBS, "jobs/")
PARTITION_JOBS: Final = Group(
    "slurm_partition_jobs",
    ("partition",),
    (
        *_JOBS,
        Row[Jobs](
            "_pending_maxnodecount_total",
            "Nodes that the largest pending job asks for that is not held.",
            lambda jobs: jobs.least_not_held,
        ),
    ),
    "jobs/",
)
PARTITION_NODES: Final = Group(
    "slurm_partition_nodes_",
    ("partition",),
    (Row[Nodes]("total", "Nodes.", lambda nodes: nodes.total), *_NODE_STATES),
    "nodes/",
)
PARTITION_AMOUNTS: Final = Group("slurm_partition_nodes_", ("partition",), _AMOUNTS, "nodes/")


def _us(name: str, text: str, field: str) -> Row[Diag]:
    return number(name, text, field, "seconds", _MICRO)


SCHEDULER: Final = Group(
    "slurm_scheduler_",
    (),
    (
        number("cycle_depth_total", "Jobs that the main scheduler looked at.", "schedule_depth_sum"),
        _us("cycle_last_seconds", "Its last cycle.", "schedule_cycle_last_us"),
        _us("cycle_max_seconds", "Its longest cycle.", "schedule_cycle_max_us"),
        _us("cycle_mean_seconds", "Its mean cycle.", "schedule_cycle_mean_us"),
        number("cycle_depth_mean_total", "Jobs that it looked at in the mean cycle.", "schedule_depth_mean"),
        number("cycle_perminute_total", "Cycles a minute.", "schedule_cycle_per_minute"),
        _us("cycle_sum_seconds_total", "Time in its cycles.", "schedule_cycle_sum_us"),
        number("cycle_total", "Cycles.", "schedule_cycles"),
        number("queue_total", "Jobs that waited in the last cycle.", "schedule_queue_length"),
        ends("defaultqueuedepth_total", "main", "default_queue_depth"),
        ends("endjobqueue_total", "main", "end_job_queue"),
        ends("licenses_total", "main", "licenses"),
        ends("maxjobstart_total", "main", "max_job_start"),
        ends("maxrpc_total", "main", "max_rpc_cnt"),
        ends("maxschedtime_total", "main", "max_sched_time"),
        moment("jobs_stats_timestamp", "When jobs were last counted, since 1970.", "job_states_at"),
        number("jobs_canceled_total", "Jobs cancelled.", "jobs_canceled"),
        number("jobs_completed_total", "Jobs completed.", "jobs_completed"),
        number("jobs_failed_total", "Jobs that slurmctld failed.", "jobs_failed"),
        number("jobs_pending_total", "Jobs that waited when they were counted.", "jobs_pending"),
        number("jobs_running_total", "Jobs that ran when they were counted.", "jobs_running"),
        number("jobs_started_total", "Jobs started.", "jobs_started"),
        number("jobs_submitted_total", "Jobs submitted.", "jobs_submitted"),
        number("agent_total", "Agents that send calls to nodes.", "agent_count"),
        number("agent_queue_total", "Calls to nodes that wait for an agent.", "agent_queue_size"),
        number("agent_thread_total", "Threads of agents.", "agent_thread_count"),
        number("thread_total", "Threads that serve calls.", "server_thread_count"),
        number("dbdagentqueue_total", "Records that wait for slurmdbd.", "dbd_agent_queue_size"),
    ),
    "diag/",
)
BACKFILL: Final = Group(
    "slurm_bfscheduler_",
    (),
    (
        number("active_bool", "Whether the backfill scheduler runs now.", "backfill_active"),
        number("backfilledhetjobs_total", "Components of heterogeneous jobs that it started.", "backfilled_het_jobs"),
        number("backfilledjobs_total", "Jobs that it started.", "backfilled_jobs"),
        number("cycle_total", "Its cycles.", "backfill_cycles"),
        _us("cycle_seconds", "Its last cycle.", "backfill_cycle_last_us"),
        _us("cycle_max_seconds", "Its longest cycle.", "backfill_cycle_max_us"),
        _us("cycle_mean_seconds", "Its mean cycle.", "backfill_cycle_mean_us"),
        _us("cycle_sum_seconds", "Time in its cycles.", "backfill_cycle_sum_us"),
        number("depth_mean_total", "Jobs that it looked at in the mean cycle.", "backfill_depth_mean"),
        number("depth_try_total", "Jobs that it tried to start in the mean cycle.", "backfill_depth_try_mean"),
        number("depth_sum_total", "Jobs that it looked at.", "backfill_depth_sum"),
        number("depth_trysum_total", "Jobs that it tried to start.", "backfill_depth_try_sum"),
        number("lastbackfilledjobs_total", "Jobs that it started since the last cycle.", "last_backfilled_jobs"),
        number("lastdepth_total", "Jobs that it looked at in the last cycle.", "backfill_depth_last"),
        number("lastdepthtry_total", "Jobs that it tried to start in the last cycle.", "backfill_depth_try_last"),
        number("queue_total", "Jobs that waited in the last cycle.", "backfill_queue_length"),
        number("queue_mean_total", "Jobs that waited in the mean cycle.", "backfill_queue_length_mean"),
        number("queue_sum_total", "Jobs that waited, over all cycles.", "backfill_queue_length_sum"),
        number("table_total", "Slots of time in the last cycle.", "backfill_table_size"),
        number("tablemean_total", "Slots of time in the mean cycle.", "backfill_table_size_mean"),
        number("tablesum_total", "Slots of time, over all cycles.", "backfill_table_size_sum"),
        moment("lastcycle_timestamp", "When it last ran, since 1970.", "backfill_last_run"),
        ends("maxjobstart_total", "backfill", "bf_max_job_start"),
        ends("maxjobtest_total", "backfill", "bf_max_job_test"),
        ends("maxtime_total", "backfill", "bf_max_time"),
        ends("nodespace_total", "backfill", "bf_node_space_size"),
        ends("endjobqueue_total", "backfill", "end_job_queue"),
        ends("statechanged_total", "backfill", "state_changed"),
    ),
    "diag/",
)

GROUPS: Final = (
    NODES, NODE, JOBS, ACCOUNT, USER, PARTITION_JOBS, PARTITION_NODES, PARTITION_AMOUNTS, SCHEDULER, BACKFILL,
)  # fmt: skip


def families() -> Iterator[Family]:
    """Yield all declarations."""
    for group in GROUPS:
        yield from group.families()


def samples(tally: Tally, snapshot: Snapshot, limits: Limits) -> Iterator[Samples]:
    """Yield all samples.

    Parameters
    ----------
    tally
        Nodes and jobs; of a list that is not known it has nothing, and the caller leaves its families out.
    snapshot
        What else Slurm answered.
    limits
        Most users and accounts with samples, by the CPUs that their jobs have.
    """
    yield from NODES.samples({(): tally.nodes})
    yield from NODE.samples({(name,): amounts for name, amounts in tally.single.items()})
    yield from JOBS.samples({(): tally.jobs})
    yield from ACCOUNT.samples({(name,): tally.accounts[name] for name in top(tally.accounts, limits.accounts)})
    named: dict[Labels, Jobs] = {
        (_number(tally.user_ids.get(name)), name): tally.users[name] for name in top(tally.users, limits.users)
    }
    yield from USER.samples(named)
    yield from PARTITION_JOBS.samples({(name,): jobs for name, jobs in tally.partition_jobs.items()})
    yield from PARTITION_NODES.samples({(name,): nodes for name, nodes in tally.partition_nodes.items()})
    yield from PARTITION_AMOUNTS.samples({(name,): nodes.amounts for name, nodes in tally.partition_nodes.items()})
    if snapshot.diag is not None:
        yield from SCHEDULER.samples({(): snapshot.diag})
        yield from BACKFILL.samples({(): snapshot.diag})


def top(grouped: Mapping[str, Jobs], budget: int) -> list[str]:
    """Names with most CPUs, at most so many, in their order."""
    weights = {name: float(jobs.amounts["cpus_alloc"]) for name, jobs in grouped.items() if name}
    return sorted(largest(weights, budget))


def _number(user_id: int | None) -> str:
    return "" if user_id is None else str(user_id)
