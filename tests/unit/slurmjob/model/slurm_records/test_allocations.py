"""What a job without a script was given, whatever Slurm calls it, and how much of it a status holds."""

from __future__ import annotations

import time

import pytest

from slinky_api.v1alpha1.slurmjob.kind import MAX_ALLOCATION, SlurmJobStatus
from slinky_operator.slurmjob.model.slurm_records import allocations
from slurm_client.models import JobNode, JobResources


def given(*names: str) -> JobResources:
    return JobResources(nodes=tuple(JobNode(name=name, cpus=2, memory_mib=100) for name in names))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("", ()),
        ("gpu:2(IDX:0-1)", ("gpu:2(IDX:0-1)",)),
        ("gpu:a100:2(IDX:0,2),gpu:h100:0(IDX:)", ("gpu:a100:2(IDX:0,2)",)),
        ("gpu:a100:1(IDX:1),shard:10(30/100,0/100)", ("gpu:a100:1(IDX:1)", "shard:10(30/100,0/100)")),
        ("gpu(CNT:2)", ("gpu(CNT:2)",)),
        (f"gpu:999(IDX:{'0,2,' * 90})", ("gpu:999",)),
        (",".join(f"a{number}:1" for number in range(40)), tuple(f"a{number}:1" for number in range(32))),
    ],
)
def test_devices_are_told_apart(words: str, shown: tuple[str, ...]) -> None:
    found = allocations.of(given("k-0"), (words,))
    assert found is not None
    assert found[0].gres == shown


def test_devices_that_belong_to_no_node_are_left_out() -> None:
    found = allocations.of(given("k-0", "k-1"), ("gpu:1",))
    assert found is not None
    assert [(one.node, one.cpus, one.memory, one.gres) for one in found] == [("k-0", 2, 100, ()), ("k-1", 2, 100, ())]


def test_what_no_status_holds_is_not_known() -> None:
    assert allocations.of(None, ()) is None
    assert allocations.of(JobResources(), ()) is None
    assert allocations.of(given("k" * 256), ("",)) is None
    assert allocations.of(given(*(f"k-{number}" for number in range(MAX_ALLOCATION + 1))), ()) is None


def test_the_largest_one_leaves_room_in_an_object() -> None:
    names = [f"k-{number}" for number in range(MAX_ALLOCATION)]
    words = f"gpu:a100:99(IDX:{'0,2,' * 40})"
    found = allocations.of(given(*names), [",".join([words] * 8)] * MAX_ALLOCATION)
    assert found is not None
    assert {word for one in found for word in one.gres} == {"gpu:a100:99"}
    assert len(SlurmJobStatus(allocation=found).model_dump_json()) < 500_000


@pytest.mark.parametrize("text", ["," * 60_000, "(" * 60_000, "a(" * 30_000, "a()" * 20_000, "a:0," * 15_000])
def test_hostile_words_cost_no_time(text: str) -> None:
    began = time.process_time()
    allocations.of(given("k-0"), (text,))
    assert time.process_time() - began < 1
