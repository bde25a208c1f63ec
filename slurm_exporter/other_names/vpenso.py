"""Names of vpenso's prometheus-slurm-exporter 0.20, which Grafana's dashboard 4323 shows.

What differs from it on purpose: users and accounts have samples only within their limits, a job that waits for several
partitions counts in each of them, and states have no sign for power or silence at their end. Memory of nodes is in MiB
and times are in microseconds, as there: their names say nothing else, and the dashboard shows them so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from slurm_client.models import Node
from slurm_exporter.families import shares
from slurm_exporter.other_names.notation import Group, Row, number
from slurm_exporter.other_names.slurm_exporter import top
from slurm_exporter.other_names.tally import Jobs, Limits, Nodes, Tally, node_word, takes_jobs
from slurm_exporter.samples.budget import cut, largest
from slurm_exporter.samples.family import Family, Labels, Samples
from slurm_exporter.sources.snapshot import Snapshot


def _nodes(name: str, *words: str) -> Row[Nodes]:
    text = f"Nodes that sinfo shows as {' or '.join(words)}."
    return Row(name, text, lambda nodes: sum(nodes.words[word]["nodes"] for word in words if word in nodes.words))


def _jobs(name: str, word: str) -> Row[Jobs]:
    return Row(name, f"Jobs that squeue shows as {word}.", lambda jobs: _counted(jobs, word, "jobs"))


def _counted(jobs: Jobs, word: str, what: str) -> int:
    return jobs.words[word][what] if word in jobs.words else 0


def _running_cpus(jobs: Jobs) -> int:
    return _counted(jobs, "RUNNING", "cpus_alloc")


def _of_owners(prefix: str, label: str) -> Group[Jobs]:
    return Group(
        prefix,
        (label,),
        (
            _jobs("jobs_pending", "PENDING"),
            _jobs("jobs_running", "RUNNING"),
            Row("cpus_running", "CPUs of running jobs.", _running_cpus),
            _jobs("jobs_suspended", "SUSPENDED"),
        ),
        "jobs/",
    )


def _cpus(names: tuple[str, str, str, str]) -> tuple[Row[Nodes], ...]:
    allocated, idle, other, total = names
    return (
        Row(allocated, "CPUs that jobs have.", lambda nodes: nodes.amounts["cpus_alloc"]),
        Row(idle, "CPUs that no job has, of nodes that take jobs.", lambda nodes: nodes.cpus_free),
        Row(
            other,
            "CPUs that no job has, of nodes that are down or drained.",
            lambda nodes: nodes.amounts["cpus"] - nodes.amounts["cpus_alloc"] - nodes.cpus_free,
        ),
        Row(total, "CPUs.", lambda nodes: nodes.amounts["cpus"]),
    )


def _free(node: Node) -> int:
    return max(0, node.cpus - node.alloc_cpus)


ACCOUNT: Final = _of_owners("slurm_account_", "account")
USER: Final = _of_owners("slurm_user_", "user")
CPUS: Final = Group("slurm_cpus_", (), _cpus(("alloc", "idle", "other", "total")), "nodes/")
PARTITION_CPUS: Final = Group(
    "slurm_partition_cpus_", ("partition",), _cpus(("allocated", "idle", "other", "total")), "nodes/"
)
PARTITION_JOBS: Final = Group("slurm_partition_", ("partition",), (_jobs("jobs_pending", "PENDING"),), "jobs/")
GPUS: Final[Group[Nodes]] = Group(
    "slurm_gpus_",
    (),
    (
        Row("alloc", "GPUs that jobs have.", lambda nodes: nodes.amounts["gpus_alloc"]),
        Row("idle", "GPUs that no job has.", lambda nodes: nodes.amounts["gpus"] - nodes.amounts["gpus_alloc"]),
        Row("total", "GPUs.", lambda nodes: nodes.amounts["gpus"]),
        Row(
            "utilization",
            "Share of the GPUs that jobs have; nothing where there is no GPU.",
            lambda nodes: nodes.amounts["gpus_alloc"] / nodes.amounts["gpus"] if nodes.amounts["gpus"] else None,
        ),
    ),
    "nodes/",
)
NODE: Final[Group[Node]] = Group(
    "slurm_node_",
    ("node", "status"),
    (
        Row("cpu_alloc", "CPUs that jobs have.", lambda node: node.alloc_cpus),
        Row("cpu_idle", "CPUs that no job has, if it takes jobs.", lambda node: _free(node) * takes_jobs(node)),
        Row("cpu_other", "The same, if it is down or drained.", lambda node: _free(node) * (not takes_jobs(node))),
        Row("cpu_total", "CPUs.", lambda node: node.cpus),
        Row("mem_alloc", "Memory that jobs have.", lambda node: node.alloc_memory_mib, "MiB"),
        Row("mem_total", "Memory.", lambda node: node.real_memory_mib, "MiB"),
    ),
    "nodes/",
)
NODES: Final = Group(
    "slurm_nodes_",
    (),
    (
        _nodes("alloc", "allocated"),
        _nodes("comp", "completing"),
        _nodes("down", "down"),
        _nodes("drain", "drained", "draining"),
        _nodes("err", "error"),
        _nodes("fail", "fail", "failing"),
        _nodes("idle", "idle"),
        _nodes("maint", "maint"),
        _nodes("mix", "mixed"),
        _nodes("resv", "reserved"),
    ),
    "nodes/",
)
QUEUE: Final = Group(
    "slurm_queue_",
    (),
    (
        _jobs("pending", "PENDING"),
        Row[Jobs](
            "pending_dependency", "Pending jobs that wait for other jobs.", lambda jobs: jobs.reasons["Dependency"]
        ),
        *(
            _jobs(word.lower(), word)
            for word in (
                "RUNNING", "SUSPENDED", "CANCELLED", "COMPLETING", "COMPLETED", "CONFIGURING", "FAILED", "TIMEOUT",
                "PREEMPTED", "NODE_FAIL",
            )
        ),
    ),
    "jobs/",
)  # fmt: skip
SCHEDULER: Final = Group(
    "slurm_scheduler_",
    (),
    (
        number("threads", "Threads of slurmctld that serve calls.", "server_thread_count"),
        number("queue_size", "Calls to nodes that wait for an agent.", "agent_queue_size"),
        number("dbd_queue_size", "Records that wait for slurmdbd.", "dbd_agent_queue_size"),
        number("last_cycle", "The main scheduler's last cycle.", "schedule_cycle_last_us", "microseconds"),
        number("mean_cycle", "Its mean cycle.", "schedule_cycle_mean_us", "microseconds"),
        number("cycle_per_minute", "Its cycles a minute.", "schedule_cycle_per_minute"),
        number("backfill_last_cycle", "Backfill's last cycle.", "backfill_cycle_last_us", "microseconds"),
        number("backfill_mean_cycle", "Its mean cycle.", "backfill_cycle_mean_us", "microseconds"),
        number("backfill_depth_mean", "Jobs that it looked at in the mean cycle.", "backfill_depth_mean"),
        number("backfilled_jobs_since_start_total", "Jobs that it started.", "backfilled_jobs"),
        number("backfilled_jobs_since_cycle_total", "The same since the last reset.", "last_backfilled_jobs"),
        number("backfilled_heterogeneous_total", "Heterogeneous parts that it started.", "backfilled_het_jobs"),
    ),
    "diag/",
)
FAIRSHARE: Final = Group(
    "slurm_account_",
    ("account",),
    (Row[float]("fairshare", "Fair-share factor of an account; 0 where Slurm gives none.", lambda value: value),),
    "shares/",
)

GROUPS: Final = (
    ACCOUNT, USER, CPUS, PARTITION_CPUS, PARTITION_JOBS, GPUS, NODE, NODES, QUEUE, SCHEDULER, FAIRSHARE,
)  # fmt: skip


def families() -> Iterator[Family]:
    """Yield all declarations."""
    for group in GROUPS:
        yield from group.families()


def samples(tally: Tally, snapshot: Snapshot, limits: Limits) -> Iterator[Samples]:
    """Yield all samples; parameters as in :func:`slurm_exporter.other_names.slurm_exporter.samples`."""
    yield from ACCOUNT.samples({(name,): tally.accounts[name] for name in top(tally.accounts, limits.accounts)})
    yield from USER.samples({(name,): tally.users[name] for name in top(tally.users, limits.users)})
    yield from CPUS.samples({(): tally.nodes})
    yield from PARTITION_CPUS.samples({(name,): nodes for name, nodes in tally.partition_nodes.items()})
    yield from PARTITION_JOBS.samples({(name,): jobs for name, jobs in tally.partition_jobs.items()})
    yield from GPUS.samples({(): tally.nodes})
    nodes = snapshot.nodes or {}
    yield from NODE.samples({(name, node_word(nodes[name].state)): nodes[name] for name in tally.single})
    yield from NODES.samples({(): tally.nodes})
    yield from QUEUE.samples({(): tally.jobs})
    if snapshot.diag is not None:
        yield from SCHEDULER.samples({(): snapshot.diag})
    if snapshot.shares is not None:
        yield from FAIRSHARE.samples(_fairshare(snapshot))


def _fairshare(snapshot: Snapshot) -> dict[Labels, float]:
    """Return the factor of each account, of those with most usage."""
    accounts = {cut(share.name): share for share in snapshot.shares or () if "USER" not in share.kind}
    kept = largest({name: float(share.usage) for name, share in accounts.items()}, shares.ACCOUNTS)
    return {(name,): accounts[name].fairshare_factor or 0.0 for name in sorted(kept)}
