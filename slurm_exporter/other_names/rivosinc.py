"""Names of rivosinc's prometheus-slurm-exporter 1.8, which Grafana's dashboard 19835 shows.

What differs from it on purpose: memory is in bytes (there in millions of them), tasks of arrays count singly, a job
that waits for several partitions counts in each of them, zeros are served, and users, accounts, users of calls,
features and reasons have samples only within their limits. Not served are the numbers that jobs post themselves there
(`slurm_proc_*`, `slurm_job_*_alloc`), and limits of accounts, for which slurmdbd would have to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

from slurm_client.models import License
from slurm_client.models.service import Diag, RpcStats
from slurm_exporter.families.calls import TYPES
from slurm_exporter.families.holdings import NAMES
from slurm_exporter.families.jobs import REASONS
from slurm_exporter.other_names.notation import Group, Row, number
from slurm_exporter.other_names.slurm_exporter import top
from slurm_exporter.other_names.tally import Jobs, Limits, Nodes, Tally
from slurm_exporter.samples.budget import cut, folded, largest, own
from slurm_exporter.samples.family import Family, Labels, Samples
from slurm_exporter.sources.health import Health
from slurm_exporter.sources.snapshot import Snapshot

FEATURES: Final = 64
"""Most features with samples of their own; the rest share one."""

Amounts = Mapping[str, int]

T = TypeVar("T")


class _Worded(Protocol):
    """Things that were counted by the one word that `sinfo` or `squeue` shows for a state."""

    @property
    def words(self) -> Mapping[str, Amounts]: ...


def _amount(name: str, key: str, text: str, unit: str = "1") -> Row[Amounts]:
    return Row(name, text, lambda amounts: amounts.get(key, 0), unit)


def _memory(name: str, key: str, text: str) -> Row[Nodes]:
    return Row(name, text, lambda nodes: nodes.amounts[key], "bytes")


_STATE: Final = "by the state that {} shows"
_JOBS_BY_STATE: Final = _STATE.format("squeue")
_NODES_BY_STATE: Final = _STATE.format("sinfo")

USER: Final = Group(
    "slurm_user_",
    ("username", "state"),
    (
        _amount("state_total", "jobs", f"Jobs {_JOBS_BY_STATE}."),
        _amount("cpu_alloc", "cpus_alloc", "CPUs that they have."),
        _amount("mem_alloc", "memory_alloc", "Memory that they have.", "bytes"),
    ),
    "jobs/",
)
ACCOUNT: Final = Group(
    "slurm_account_job_state_",
    ("account", "state"),
    (
        _amount("total", "jobs", f"Jobs {_JOBS_BY_STATE}."),
        _amount("cpu_alloc", "cpus_alloc", "CPUs that they have."),
        _amount("mem_alloc", "memory_alloc", "Memory that they have.", "bytes"),
    ),
    "jobs/",
)
PARTITION_JOBS: Final = Group(
    "slurm_partition_",
    ("partition", "state"),
    (_amount("job_state_total", "jobs", f"Jobs {_JOBS_BY_STATE}."),),
    "jobs/",
)
FEATURE: Final[Group[Jobs]] = Group(
    "slurm_feature_",
    ("feature",),
    (
        Row("total", "Jobs that ask for a feature.", lambda jobs: jobs.total),
        Row("cpu_alloc", "CPUs that they have.", lambda jobs: jobs.amounts["cpus_alloc"]),
        Row("mem_alloc", "Memory that they have.", lambda jobs: jobs.amounts["memory_alloc"], "bytes"),
    ),
    "jobs/",
)
REASON: Final = Group(
    "slurm_pending_reason_",
    ("reason",),
    (Row[float]("total", "Pending jobs by Slurm's reason.", lambda count: count),),
    "jobs/",
)
PARTITION: Final[Group[Nodes]] = Group(
    "slurm_partition_",
    ("partition",),
    (
        Row("total_cpus", "CPUs.", lambda nodes: nodes.amounts["cpus"]),
        Row("idle_cpus", "CPUs that no job has, of nodes that take jobs.", lambda nodes: nodes.cpus_free),
        Row("cpu_load", "Load averages of the nodes, added up.", lambda nodes: nodes.load),
        Row("weight", "Weights of the nodes, added up.", lambda nodes: nodes.weight),
        _memory("real_mem", "memory", "Memory."),
        _memory("free_mem", "memory_free", "Memory that the kernels call free."),
    ),
    "nodes/",
)
PARTITION_STATES: Final = Group(
    "slurm_partition_",
    ("partition", "state"),
    (
        _amount("node_count", "nodes", f"Nodes {_NODES_BY_STATE}."),
        _amount("alloc_cpus", "cpus_alloc", "CPUs of them that jobs have."),
        _amount("alloc_mem", "memory_alloc", "Memory of them that jobs have.", "bytes"),
    ),
    "nodes/",
)
CLUSTER: Final[Group[Nodes]] = Group(
    "slurm_",
    (),
    (
        Row("cpus_total", "CPUs.", lambda nodes: nodes.amounts["cpus"]),
        Row("cpus_idle", "CPUs that no job has, of nodes that take jobs.", lambda nodes: nodes.cpus_free),
        Row("cpu_load", "Load averages of the nodes, added up.", lambda nodes: nodes.load),
        _memory("mem_real", "memory", "Memory."),
        _memory("mem_free", "memory_free", "Memory that the kernels call free."),
        _memory("mem_alloc", "memory_alloc", "Memory that jobs have."),
    ),
    "nodes/",
)
STATES: Final = Group(
    "slurm_",
    ("state",),
    (
        _amount("cpus_per_state", "cpus", f"CPUs of nodes {_NODES_BY_STATE}."),
        _amount("node_count_per_state", "nodes", f"Nodes {_NODES_BY_STATE}."),
    ),
    "nodes/",
)
DAEMON: Final = Group(
    "slurm_",
    (),
    (
        number("daemon_thread_count", "Threads of slurmctld that serve calls.", "server_thread_count"),
        number("dbd_agent_queue_size", "Records that wait for slurmdbd.", "dbd_agent_queue_size"),
        number("backfill_job_count", "Jobs that the backfill scheduler started.", "backfilled_jobs"),
        number("backfill_cycle_count", "Time in its cycles.", "backfill_cycle_sum_us", "microseconds"),
        number("backfill_cycle_counter", "Its cycles.", "backfill_cycles"),
        number("backfill_last_depth", "Jobs that it looked at in the last cycle.", "backfill_depth_last"),
        number("backfill_last_depth_try_sched", "Those that it tried to start.", "backfill_depth_try_last"),
    ),
    "diag/",
)


def _calls(prefix: str, label: str, *rows: Row[RpcStats]) -> Group[RpcStats]:
    return Group(
        prefix,
        (label,),
        (
            Row("count", "Calls served.", lambda stats: stats.count),
            Row("total_time", "Time to serve them.", lambda stats: stats.total_time_us, "microseconds"),
            *rows,
        ),
        "diag/",
    )


CALL_TYPES: Final = _calls(
    "slurm_rpc_msg_type_",
    "type",
    Row("avg_time", "Mean time to serve one.", lambda stats: stats.average_time_us, "microseconds"),
)
CALL_USERS: Final = _calls("slurm_rpc_user_", "user")
LICENSES: Final[Group[License]] = Group(
    "slurm_lic_",
    ("name",),
    (
        Row("total", "Licenses that there are.", lambda one: one.total),
        Row("used", "Licenses that jobs have.", lambda one: one.used),
        Row("free", "Licenses that are left.", lambda one: one.free),
        Row("reserved", "Licenses in reservations.", lambda one: one.reserved),
        Row("last_consumed", "Remote licenses in use, as was said last.", lambda one: one.last_consumed),
        Row("last_deficit", "Remote licenses that are missing.", lambda one: one.last_deficit),
    ),
    "licenses/",
)


def _source(name: str) -> Group[Health]:
    return Group(
        f"slurm_{name}_scrape_",
        (),
        (
            Row("duration", "How long the last answer took.", _milliseconds, "milliseconds"),
            Row("error", "Questions without an answer that could be used.", lambda health: health.failures),
        ),
        "the exporter",
    )


def _milliseconds(health: Health) -> float | None:
    return None if health.duration is None else health.duration * 1000


SOURCES: Final = {
    "jobs": _source("job"),
    "nodes": _source("node"),
    "diag": _source("diag"),
    "licenses": _source("lic"),
}

GROUPS: Final[tuple[Group[Any], ...]] = (
    USER, ACCOUNT, PARTITION_JOBS, FEATURE, REASON, PARTITION, PARTITION_STATES, CLUSTER, STATES, DAEMON, CALL_TYPES,
    CALL_USERS, LICENSES, *SOURCES.values(),
)  # fmt: skip


def families() -> Iterator[Family]:
    """Yield all declarations."""
    for group in GROUPS:
        yield from group.families()


def samples(tally: Tally, snapshot: Snapshot, limits: Limits) -> Iterator[Samples]:
    """Yield all samples; parameters as in :func:`slurm_exporter.other_names.slurm_exporter.samples`."""
    yield from USER.samples(_by_word({name: tally.users[name] for name in top(tally.users, limits.users)}))
    yield from ACCOUNT.samples(_by_word({name: tally.accounts[name] for name in top(tally.accounts, limits.accounts)}))
    yield from PARTITION_JOBS.samples(_by_word(tally.partition_jobs))
    features = largest({name: float(jobs.total) for name, jobs in tally.features.items()}, FEATURES)
    yield from FEATURE.samples({(name,): tally.features[name] for name in sorted(features)})
    reasons: dict[Labels, float] = {(name,): float(count) for name, count in tally.jobs.reasons.items()}
    yield from REASON.samples(folded(reasons, largest(own(tally.jobs.reasons), REASONS)))
    yield from PARTITION.samples({(name,): nodes for name, nodes in tally.partition_nodes.items()})
    yield from PARTITION_STATES.samples(_by_word(tally.partition_nodes))
    yield from CLUSTER.samples({(): tally.nodes})
    yield from STATES.samples({(word,): amounts for word, amounts in tally.nodes.words.items()})
    if snapshot.diag is not None:
        yield from _of_diag(snapshot.diag, limits)
    yield from LICENSES.samples({(name,): one for name, one in _most(_licenses(snapshot), _total, NAMES).items()})
    health = {each.name: each for each in snapshot.health}
    for name, group in SOURCES.items():
        yield from group.samples({(): health[name]} if name in health else {})


def _of_diag(diag: Diag, limits: Limits) -> Iterator[Samples]:
    yield from DAEMON.samples({(): diag})
    for group, found, limit in (
        (CALL_TYPES, diag.rpcs_by_message, TYPES),
        (CALL_USERS, diag.rpcs_by_user, limits.call_users),
    ):
        yield from group.samples(
            {(name,): one for name, one in _most({cut(each.name): each for each in found}, _time, limit).items()}
        )


def _time(stats: RpcStats) -> float:
    return stats.total_time_us


def _licenses(snapshot: Snapshot) -> dict[str, License]:
    return {cut(name): one for name, one in (snapshot.licenses or {}).items()}


def _total(one: License) -> float:
    return one.total


def _most(found: Mapping[str, T], weight: Callable[[T], float], limit: int) -> dict[str, T]:
    kept = largest({name: weight(one) for name, one in found.items()}, limit)
    return {name: found[name] for name in sorted(kept)}


def _by_word(counted: Mapping[str, _Worded]) -> dict[Labels, Amounts]:
    return {(name, word): amounts for name, one in counted.items() for word, amounts in one.words.items()}
