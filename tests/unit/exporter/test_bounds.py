"""A hostile slurmrestd has the exporter make a bounded number of samples, with short labels, and keep nothing long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from slurm_client.models import JobState, License, NodeState, Partition, Reservation
from slurm_client.models.partition import PartitionState
from slurm_client.models.resources import Share
from slurm_client.models.service import Diag, PendingRpcs, Ping, RpcStats
from slurm_exporter.counting import Budgets, Counted, Counting
from slurm_exporter.families import calls, jobs, nodes, partitions, scheduler
from slurm_exporter.other_names.tally import job_word, node_word
from slurm_exporter.samples.budget import KINDS, LONGEST, OTHERS, PARTITIONS
from slurm_exporter.samples.family import Family, Labels
from slurm_exporter.sources.snapshot import Snapshot
from tests.unit.exporter.builders import NOW, by_family, job, node

LONG: Final = 2**20
NODES: Final = 20
JOBS: Final = 600
NAMES_OF_ONE: Final = 300
"""Partitions, kinds and flags that one object has."""
SERIES: Final = 400_000
"""More than the families of partitions have with all labels that they may have."""


def unique(what: str, number: int) -> list[str]:
    """Names that no other object has."""
    return [f"{what}{number}-{place}" for place in range(NAMES_OF_ONE)]


def hostile() -> Snapshot:
    """A Slurm where every name is another, and some are long."""
    long = [f"{'x' * LONG}{number}" for number in range(3)]
    found = [
        node(
            f"n{number}",
            "+".join([f"STATE{number}", *unique("FLAG", number)]),
            partitions=(*unique("p", number), *long),
            gres=",".join(f"{name}:t{number}:2" for name in unique("g", number)),
            gres_used=",".join(f"{name}:t{number}:1" for name in unique("g", number)),
            version=long[0],
            architecture=long[1],
        )
        for number in range(NODES)
    ]
    queue = [
        job(
            number,
            "+".join([f"STATE{number}", *unique("FLAG", number)]) if number % 2 else "PENDING",
            partition=",".join([*unique("q", number), long[0]]),
            qos=f"qos{number}" if number else long[0],
            user=f"user{number}" if number else long[0],
            account=f"account{number}" if number else long[0],
            state_reason=f"reason{number}" if number else long[0],
            features="&".join([long[0], *unique("f", number)]),
            tres_requested=",".join(f"gres/{name}:t=1" for name in unique("h", number)),
        )
        for number in range(JOBS)
    ]
    stats = [RpcStats(each, 1, count=1, total_time_us=1) for each in long]
    lists: dict[str, Any] = {
        "nodes": {each.name: each for each in [*found, node(long[0])]},
        "jobs": {str(each.id): each for each in queue},
        "partitions": {
            name: Partition(name=name, state=PartitionState(f"STATE{name[:9]}"))
            for name in (*(f"r{number:04}" for number in range(PARTITIONS + 5)), *long)
        },
        "licenses": {name: License(name=name, total=1) for name in long},
        "reservations": {name: Reservation(name=name, start_time=NOW, end_time=NOW) for name in long},
    }
    diag = Diag(
        rpcs_by_message=tuple(stats),
        rpcs_by_user=tuple(stats),
        pending_rpcs=tuple(PendingRpcs(each, 1, 2) for each in long),
        schedule_exit=tuple((each, 3) for each in long),
        backfill_exit=tuple((each, 3) for each in long),
    )
    shares = tuple(Share(name=each, parent=each, kind=kind) for each in long for kind in (("USER",), ()))
    pings = tuple(Ping(hostname=each, responding=True) for each in long)
    return Snapshot(NOW, long[0], long[1], **lists, diag=diag, shares=shares, pings=pings)


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return hostile()


async def counted(snapshot: Snapshot, *names: str) -> Counted:
    return await Counting(Budgets(users=5, accounts=5, call_users=5, names=frozenset(names))).count(snapshot)


def labels_of(values: Mapping[Family, Mapping[Labels, float]], label: str) -> set[str]:
    return {
        each[family.labels.index(label)] for family, found in values.items() if label in family.labels for each in found
    }


@pytest.mark.parametrize(
    "names",
    [(), ("slurm-exporter", "slurmctld", "rivosinc"), ("slurm-exporter-0.1", "vpenso")],
    ids=lambda names: "+".join(names) or "own",
)
async def test_samples_and_labels_are_bounded(snapshot: Snapshot, names: tuple[str, ...]) -> None:
    values = by_family((await counted(snapshot, *names)).samples)
    assert sum(map(len, values.values())) < (2 if names else 1) * SERIES
    assert max(len(label) for found in values.values() for each in found for label in each) == LONGEST
    assert len(labels_of(values, "partition")) == PARTITIONS + 1
    assert len(labels_of(values, "qos")) == jobs.QOS + 1
    assert len(values[jobs.JOBS_PENDING]) == jobs.REASONS + 1
    for family in (nodes.GRES, jobs.JOBS_GRES):
        assert 1 < len({each[:2] if family is nodes.GRES else each[1:] for each in values[family]}) <= KINDS + 1
    words = {word.lower() for kind in (JobState, NodeState, PartitionState) for word in kind.BASES | kind.FLAGS}
    amounts = {"allocated", "idle", "unavailable"}
    assert labels_of(values, "flag") == {OTHERS}
    shown = {word.lower() for word in labels_of(values, "state")}
    assert shown <= words | amounts | {OTHERS}


async def test_what_is_beyond_the_bounds_is_counted_under_the_others(snapshot: Snapshot) -> None:
    found = await counted(snapshot)
    values = by_family(found.samples)
    assert sum(values[nodes.NODES].values()) == NODES + 1
    assert values[nodes.NODES][(OTHERS,)] == values[nodes.NODES_FLAGGED][(OTHERS,)] == NODES
    assert sum(values[nodes.GRES].values()) == 2 * NODES * NAMES_OF_ONE
    assert values[nodes.PARTITION_NODES][OTHERS, OTHERS] == NODES
    assert sum(values[jobs.JOBS].values()) == sum(values[jobs.QOS_JOBS].values()) == JOBS
    assert sum(values[jobs.USER_JOBS].values()) == sum(values[jobs.ACCOUNT_JOBS].values()) == JOBS
    assert sum(values[jobs.JOBS_GRES].values()) == JOBS * NAMES_OF_ONE
    assert sum(values[jobs.JOBS_PENDING].values()) == JOBS / 2
    assert sum(count for (name, _), count in values[jobs.PARTITION_JOBS].items() if name == OTHERS) == JOBS
    assert values[calls.PENDING] == {("x" * LONGEST,): 6} or values[calls.PENDING] == {(OTHERS,): 6}
    # What does not add up has no sample, and is counted as left out.
    assert len(values[partitions.UP]) == PARTITIONS
    assert found.left_out == {"nodes": 1, "partitions": 5 + 3}


def test_a_node_and_a_partition_have_a_bounded_number_of_kinds() -> None:
    tally = nodes.NodeTally(100)
    for number in range(9):
        kinds = [f"gpu:t{number}-{place}:2" for place in range(nodes.KINDS_OF_NODE + 4)]
        tally.add(node(f"n{number}", gres=",".join(kinds)))
    values = by_family(tally.samples())
    assert len(values[nodes.NODE_GRES]) == 9 * (nodes.KINDS_OF_NODE + 1)
    assert values[nodes.NODE_GRES]["n0", OTHERS, ""] == 8
    assert len(values[nodes.PARTITION_GRES]) == 3 * (nodes.KINDS_OF_PARTITION + 1)
    assert sum(values[nodes.PARTITION_GRES].values()) == 9 * (nodes.KINDS_OF_NODE + 4) * 2


def test_a_list_that_goes_on_and_on_is_not_read_to_its_end() -> None:
    tally = jobs.JobTally(NOW)
    tally.add(job(1, partition=",".join(["a"] * PARTITIONS + ["b", "c"])))
    names = {name for name, _ in by_family(tally.samples())[jobs.PARTITION_JOBS]}
    assert names == {"a", OTHERS}


@pytest.mark.parametrize(
    "reader", [jobs.amounts, jobs.task_count, nodes.gres_counts], ids=["amounts", "task_count", "gres_counts"]
)
def test_what_is_made_of_a_long_text_is_not_kept(reader: Callable[[str], Any]) -> None:
    text = "".join(["1"] * LONG)
    before = sys.getrefcount(text)
    reader(text)
    assert sys.getrefcount(text) == before


def test_what_is_made_of_a_state_in_other_words_is_not_kept() -> None:
    word = "".join(["A"] * LONG)
    before = sys.getrefcount(word)
    assert node_word(NodeState(word)) == job_word(JobState(word)) == OTHERS
    assert node_word(NodeState("IDLE", frozenset({word}))) == "idle"
    assert job_word(JobState("RUNNING", frozenset({word}))) == "RUNNING"
    assert sys.getrefcount(word) == before


def test_what_is_made_of_a_short_text_is_kept() -> None:
    assert nodes.gres_counts("gpu:h100:4") is nodes.gres_counts("gpu:h100:4")


def test_counters_keep_nothing_long_for_the_life_of_the_exporter() -> None:
    word = "".join(["B"] * LONG)
    before = sys.getrefcount(word)
    kept = calls.Calls(users=5)
    ends = scheduler.Counters()
    diag = Diag(rpcs_by_message=(RpcStats(word, 1, 1, 1),), rpcs_by_user=(RpcStats(word, 1, 1, 1),))
    kept.update(diag)
    ends.update(Diag(schedule_exit=((word, 1),), backfill_exit=((word, 1),)))
    del diag
    assert sys.getrefcount(word) == before
    assert {len(label) for each in (*kept.samples(), *ends.samples()) for key in each.values for label in key} == {
        LONGEST
    }
