"""Names of other exporters: what they say of nodes, jobs and schedulers, and that nothing is served twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import pytest

from slurm_client.models import Job, JobState, Node, NodeState, Partition
from slurm_client.models.service import Diag
from slurm_exporter.families.catalogue import GROUPS
from slurm_exporter.other_names.catalogue import SETS, samples
from slurm_exporter.samples.family import PREFIX, Kind
from slurm_exporter.sources.snapshot import Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MIB = 1024 * 1024
BOTH = frozenset(SETS)

NODES = {
    "n-0": Node(
        name="n-0",
        state=NodeState("MIXED"),
        cpus=8,
        effective_cpus=6,
        alloc_cpus=2,
        real_memory_mib=1000,
        specialized_memory_mib=100,
        alloc_memory_mib=300,
        free_memory_mib=50,
        gres="gpu:h100:4",
        gres_used="gpu:h100:1",
        partitions=("all", "fast"),
    ),
    "n-1": Node(
        name="n-1", state=NodeState("IDLE", frozenset({"DRAIN"})), cpus=2, effective_cpus=2, partitions=("all",)
    ),
}
JOBS = {
    "1": Job(
        id=1,
        user="alice",
        user_id=1000,
        account="physics",
        partition="all",
        state=JobState("RUNNING"),
        cpus=2,
        node_count=1,
        nodes=("n-0",),
        tres_allocated="cpu=2,mem=300M,gres/gpu=1",
    ),
    "2": Job(
        id=2,
        user="bob",
        user_id=1001,
        partition="all,fast",
        state=JobState("PENDING"),
        state_reason="Resources",
        array_job_id=2,
        array_tasks="0-9%2",
        node_count=3,
    ),
    "3": Job(id=3, user="bob", user_id=1001, partition="fast", state=JobState("PENDING"), hold=True, node_count=7),
    "4": Job(id=4, user="alice", user_id=1000, partition="all", state=JobState("TIMEOUT")),
}
DIAG = Diag(since=NOW, schedule_cycle_last_us=2_500_000, backfill_exit=(("bf_max_time", 3),), dbd_agent_queue_size=5)
KNOWN = Snapshot(
    NOW, nodes=NODES, jobs=JOBS, diag=DIAG, partitions={name: Partition(name=name) for name in ("all", "fast", "none")}
)


async def served(
    snapshot: Snapshot, names: Collection[str], users: int = 9, accounts: int = 9, nodes: int = 9
) -> dict[str, Mapping[tuple[str, ...], float]]:
    found = list(await samples(snapshot, names, nodes, users, accounts))
    assert len({one.family.name for one in found}) == len(found), "a name is served twice"
    return {one.family.name: one.values for one in found}


async def test_names_of_slurm_exporter_have_the_units_that_they_say() -> None:
    page = await served(KNOWN, ["slurm-exporter"])
    assert page["slurm_nodes_total"] == {(): 2}
    assert page["slurm_nodes_mixed_total"] == page["slurm_nodes_drain_total"] == {(): 1}
    assert page["slurm_node_memory_bytes"] == {("n-0",): 1000 * MIB, ("n-1",): 0}
    assert page["slurm_node_memory_effective_bytes"][("n-0",)] == 900 * MIB
    # n-1 does not say what is free.
    assert page["slurm_node_memory_free_bytes"] == {("n-0",): 50 * MIB}
    assert page["slurm_node_cpus_idle_total"] == {("n-0",): 4, ("n-1",): 2}
    assert page["slurm_jobs_total"] == {(): 13}
    assert page["slurm_jobs_pending_total"] == {(): 11}
    assert page["slurm_jobs_hold_total"] == {(): 1}
    assert page["slurm_jobs_timeout_total"] == {(): 1}
    assert page["slurm_jobs_memory_alloc_bytes"] == {(): 300 * MIB}
    assert page["slurm_partition_jobs_pending_maxnodecount_total"] == {("all",): 3, ("fast",): 3, ("none",): 0}
    assert page["slurm_partition_nodes_cpus_total"] == {("all",): 10, ("fast",): 8, ("none",): 0}
    assert page["slurm_user_jobs_total"] == {("1000", "alice"): 2, ("1001", "bob"): 11}
    assert page["slurm_account_jobs_cpus_alloc_total"] == {("physics",): 2}
    assert page["slurm_scheduler_cycle_last_seconds"] == {(): 2.5}
    assert page["slurm_bfscheduler_maxtime_total"] == {(): 3}
    assert page["slurm_scheduler_dbdagentqueue_total"] == {(): 5}


async def test_names_of_slurmctld() -> None:
    page = await served(KNOWN, ["slurmctld"])
    assert page["slurm_jobs"] == {(): 13}
    assert (page["slurm_jobs_started"], page["slurm_jobs_finished"]) == ({(): 2}, {(): 1})
    assert page["slurm_nodes_drained"] == {(): 1}
    assert page["slurm_node_gpus"] == {("n-0",): 4, ("n-1",): 0}
    assert page["slurm_jobs_gpus_alloc"] == {(): 1}
    assert page["slurm_partition_nodes_mem_tot"] == {("all",): 1000, ("fast",): 1000, ("none",): 0}
    assert page["slurm_partition_jobs_min_job_nodes"] == {("all",): 3, ("fast",): 7, ("none",): 0}
    assert page["slurm_partition_jobs_max_job_nodes_nohold"] == {("all",): 3, ("fast",): 3, ("none",): 0}
    assert page["slurm_schedule_cycle_last"] == {(): 2_500_000}
    assert page["slurm_bf_when_last_cycle"] == {(): 0}


async def test_budgets_hold_and_nothing_is_served_unasked_or_unknown() -> None:
    assert await served(KNOWN, []) == {}
    page = await served(KNOWN, BOTH, users=0, accounts=0, nodes=1)
    assert page["slurm_user_jobs_total"] == page["slurm_user_jobs"] == page["slurm_account_jobs"] == {}
    assert set(page["slurm_node_cpus"]) == {("n-0",)}
    assert set((await served(KNOWN, BOTH, users=1))["slurm_user_jobs_total"]) == {("1000", "alice")}
    blind = await served(Snapshot(NOW, jobs=JOBS), BOTH)
    assert "slurm_jobs" in blind
    assert not [
        name for name in blind if name.startswith(("slurm_node", "slurm_bf", "slurm_sched", "slurm_partitions"))
    ]


@pytest.mark.parametrize("name", sorted(SETS))
def test_declarations_are_gauges_with_names_of_their_own(name: str) -> None:
    families = list(SETS[name].families())
    assert len({one.name for one in families}) == len(families)
    assert {one.kind for one in families} == {Kind.GAUGE}
    assert not [one.name for one in families if one.name.startswith(PREFIX)]
    assert not {one.name for one in families} & {one.name for group in GROUPS.values() for one in group}
