"""Names of other exporters: what they say of nodes, jobs and schedulers, and that nothing is served twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from itertools import combinations

import pytest
from pydantic import ValidationError

from slinky_api.v1alpha1.cluster.metrics import INCOMPATIBLE_NAMES, Exporter
from slurm_client.models import Job, JobState, License, Node, NodeState, Partition
from slurm_client.models.resources import Share
from slurm_client.models.service import Diag, RpcStats
from slurm_exporter.families.catalogue import GROUPS
from slurm_exporter.other_names.catalogue import INCOMPATIBLE, SETS, samples
from slurm_exporter.other_names.rivosinc import FEATURES
from slurm_exporter.other_names.tally import Limits, job_word, node_word
from slurm_exporter.samples.budget import OTHERS
from slurm_exporter.samples.family import PREFIX, Kind
from slurm_exporter.settings import SettingsError, load
from slurm_exporter.sources.health import Health
from slurm_exporter.sources.snapshot import Snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MIB = 1024 * 1024
BOTH = frozenset({"slurm-exporter", "slurmctld"})

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
        cpu_load=1.5,
        weight=7,
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
        features="big&fast",
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
DIAG = Diag(
    since=NOW,
    schedule_cycle_last_us=2_500_000,
    backfill_exit=(("bf_max_time", 3),),
    dbd_agent_queue_size=5,
    rpcs_by_message=(RpcStats("REQUEST_PING", 1008, count=4, total_time_us=80, average_time_us=20),),
    rpcs_by_user=(RpcStats("alice", 1000, count=2, total_time_us=9),),
)
KNOWN = Snapshot(
    NOW,
    nodes=NODES,
    jobs=JOBS,
    diag=DIAG,
    partitions={name: Partition(name=name) for name in ("all", "fast", "none")},
    licenses={"matlab": License(name="matlab", total=5, used=2, free=3)},
    shares=(Share(name="physics", kind=("ASSOCIATION",), fairshare_factor=0.25), Share(name="alice", kind=("USER",))),
    health=(Health("jobs", is_up=True, confirmed_at=1.0, polls=3, failures=1, duration=0.25),),
)


async def served(
    snapshot: Snapshot, names: Collection[str], users: int = 9, accounts: int = 9, nodes: int = 9
) -> dict[str, Mapping[tuple[str, ...], float]]:
    found = list(await samples(snapshot, names, nodes, Limits(users, accounts, users)))
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


async def test_names_of_the_first_slurm_exporter() -> None:
    page = await served(KNOWN, ["slurm-exporter-0.1"])
    # What the KEDA example of Slinky scales by.
    assert page["slurm_partition_pending_jobs"] == {("all",): 10, ("fast",): 10, ("none",): 0}
    assert page["slurm_partition_hold_jobs"] == {("all",): 0, ("fast",): 1, ("none",): 0}
    assert page["slurm_partition_jobs"] == {("all",): 11, ("fast",): 11, ("none",): 0}
    assert page["slurm_partition_running_jobs"][("all",)] == 1
    assert page["slurm_partition_max_pending_nodes"] == {("all",): 3, ("fast",): 3, ("none",): 0}
    assert page["slurm_partition_nodes"] == {("all",): 2, ("fast",): 1, ("none",): 0}
    assert page["slurm_partition_idle_cpus"][("fast",)] == 4
    assert (page["slurm_node_total"], page["slurm_mixed_nodes"], page["slurm_drain_nodes"]) == (
        {(): 2},
        {(): 1},
        {(): 1},
    )
    assert page["slurm_job_total"] == {("alice",): 1, ("bob",): 11}
    assert page["slurm_user_pending_jobs"] == {("alice",): 0, ("bob",): 10}


async def test_names_of_vpenso() -> None:
    page = await served(KNOWN, ["vpenso"])
    cpus = {name: page[f"slurm_cpus_{name}"][()] for name in ("alloc", "idle", "other", "total")}
    # The drained node's CPUs are neither idle nor allocated.
    assert cpus == {"alloc": 2, "idle": 6, "other": 2, "total": 10}
    assert page["slurm_partition_cpus_other"] == {("all",): 2, ("fast",): 0, ("none",): 0}
    assert page["slurm_nodes_mix"] == page["slurm_nodes_drain"] == {(): 1}
    assert page["slurm_nodes_idle"] == {(): 0}
    assert page["slurm_node_cpu_alloc"] == {("n-0", "mixed"): 2, ("n-1", "drained"): 0}
    assert page["slurm_node_cpu_other"] == {("n-0", "mixed"): 0, ("n-1", "drained"): 2}
    assert page["slurm_node_mem_total"][("n-0", "mixed")] == 1000
    assert page["slurm_queue_pending"] == {(): 11}
    assert page["slurm_queue_timeout"] == page["slurm_queue_running"] == {(): 1}
    assert page["slurm_user_jobs_pending"] == {("alice",): 0, ("bob",): 11}
    assert page["slurm_account_cpus_running"] == {("physics",): 2}
    assert page["slurm_account_fairshare"] == {("physics",): 0.25}
    assert page["slurm_gpus_utilization"] == {(): 0.25}
    assert page["slurm_scheduler_last_cycle"] == {(): 2_500_000}


async def test_names_of_rivosinc() -> None:
    page = await served(KNOWN, ["rivosinc"])
    assert page["slurm_partition_job_state_total"][("fast", "PENDING")] == 11
    assert page["slurm_user_state_total"] == {("alice", "RUNNING"): 1, ("alice", "TIMEOUT"): 1, ("bob", "PENDING"): 11}
    assert page["slurm_user_cpu_alloc"][("alice", "RUNNING")] == 2
    assert page["slurm_account_job_state_mem_alloc"] == {("physics", "RUNNING"): 300 * MIB}
    assert page["slurm_partition_alloc_cpus"][("all", "mixed")] == 2
    assert page["slurm_partition_node_count"][("all", "drained")] == 1
    assert page["slurm_partition_total_cpus"] == {("all",): 10, ("fast",): 8, ("none",): 0}
    assert (page["slurm_cpu_load"], page["slurm_partition_weight"][("fast",)]) == ({(): 1.5}, 7)
    assert page["slurm_mem_real"] == {(): 1000 * MIB}
    assert page["slurm_cpus_per_state"] == {("mixed",): 8, ("drained",): 2}
    assert page["slurm_feature_total"] == {("big",): 10, ("fast",): 10}
    assert page["slurm_pending_reason_total"][("Resources",)] == 10
    assert page["slurm_rpc_msg_type_avg_time"] == {("REQUEST_PING",): 20}
    assert page["slurm_rpc_user_count"] == {("alice",): 2}
    assert (page["slurm_lic_total"], page["slurm_lic_used"]) == ({("matlab",): 5}, {("matlab",): 2})
    assert (page["slurm_job_scrape_duration"], page["slurm_job_scrape_error"]) == ({(): 250}, {(): 1})


async def test_what_users_name_has_a_bound() -> None:
    jobs = {
        str(number): Job(
            id=number,
            user=f"u{number}",
            partition="all",
            state=JobState("PENDING"),
            state_reason=f"reason {number}",
            features="&".join(f"f{number}-{place}" for place in range(40)),
        )
        for number in range(500)
    }
    page = await served(Snapshot(NOW, jobs=jobs), ["rivosinc", "vpenso"], users=3, accounts=3)
    assert len(page["slurm_feature_total"]) == FEATURES
    assert page["slurm_feature_total"][(OTHERS,)] > 0
    assert len(page["slurm_pending_reason_total"]) == 65
    assert sum(page["slurm_pending_reason_total"].values()) == 500
    assert len(page["slurm_user_state_total"]) == len(page["slurm_user_jobs_pending"]) == 3


@pytest.mark.parametrize(
    ("base", "flags", "word"),
    [
        ("IDLE", (), "idle"),
        ("IDLE", ("DRAIN",), "drained"),
        ("DOWN", ("DRAIN",), "drained"),
        ("MIXED", ("DRAIN",), "draining"),
        ("IDLE", ("COMPLETING", "DRAIN"), "draining"),
        ("IDLE", ("COMPLETING",), "completing"),
        ("ALLOCATED", ("COMPLETING",), "allocated"),
        ("IDLE", ("MAINTENANCE",), "maint"),
        ("DOWN", ("MAINTENANCE",), "down"),
        ("ALLOCATED", ("FAIL",), "failing"),
        ("IDLE", ("REBOOT_REQUESTED",), "reboot"),
        ("IDLE", ("RESERVED", "PLANNED"), "reserved"),
        ("IDLE", ("PLANNED",), "planned"),
        ("DOWN", ("NOT_RESPONDING",), "down"),
        ("DOWN", ("INVALID_REG",), "inval"),
    ],
)
def test_words_of_sinfo(base: str, flags: tuple[str, ...], word: str) -> None:
    assert node_word(NodeState(base, frozenset(flags))) == word


def test_words_of_squeue() -> None:
    assert job_word(JobState("RUNNING", frozenset({"CONFIGURING"}))) == "CONFIGURING"
    assert job_word(JobState("FAILED", frozenset({"COMPLETING"}))) == "COMPLETING"
    assert job_word(JobState("PENDING", frozenset({"UNKNOWN_FLAG"}))) == "PENDING"


def test_sets_that_give_a_name_other_labels_are_not_served_together() -> None:
    labels = {name: {one.name: one.labels for one in one_set.families()} for name, one_set in SETS.items()}
    other = {
        frozenset({one, two})
        for one, two in combinations(SETS, 2)
        if any(labels[one][name] != labels[two][name] for name in labels[one].keys() & labels[two].keys())
    }
    assert other <= set(INCOMPATIBLE)
    # The API knows the same.
    assert {frozenset(pair) for pair in INCOMPATIBLE_NAMES} == set(INCOMPATIBLE)
    for pair in INCOMPATIBLE_NAMES:
        with pytest.raises(ValidationError, match="cannot be enabled together"):
            Exporter.model_validate({"names": [*pair]})
        with pytest.raises(SettingsError, match=f"{pair[0]} and {pair[1]}"):
            load([f"--names={name}" for name in pair], {"SLURMRESTD_URL": "http://slurm"})
    assert Exporter.model_validate({"names": ["vpenso", "rivosinc"]}).names == ("vpenso", "rivosinc")


@pytest.mark.parametrize("label", ["status", "username", "flag", "node"])
def test_a_label_that_a_family_has_cannot_be_given_to_all(label: str) -> None:
    with pytest.raises(SettingsError, match="no family uses"):
        load([f"--label={label}=x"], {"SLURMRESTD_URL": "http://slurm"})


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
