"""Sets of tasks, as slurmctld and slurmdbd write them, against sets of Python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.jobs.task_sets import MOST, Reader, TaskSet, union

TASKS = st.sets(st.integers(0, 60))


def members(tasks: TaskSet) -> set[int]:
    return {task for first, last in tasks.spans for task in range(first, last + 1)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", set()),
        ("7", {7}),
        ("0-3,7", {0, 1, 2, 3, 7}),
        ("[1-9:4%2]", {1, 5, 9}),
        ("2-3,7-9%2", {2, 3, 7, 8, 9}),
        ("5,1-6,3", {1, 2, 3, 4, 5, 6}),
        ("0x32", {1, 4, 5}),
    ],
)
def test_what_slurm_writes_is_read(text: str, wanted: set[int]) -> None:
    tasks = TaskSet.read(text)
    assert (members(tasks), len(tasks), tasks.is_cut) == (wanted, len(wanted), False)


@pytest.mark.parametrize("text", ["0-3,...", "3-1,0-3", "0-3,99999999999", "0-3,x"])
def test_what_cannot_be_read_is_left_out_and_said(text: str) -> None:
    tasks = TaskSet.read(text)
    assert (members(tasks), tasks.is_cut) == ({0, 1, 2, 3}, True)


def test_a_text_makes_a_limited_number_of_ranges() -> None:
    tasks = TaskSet.read("0-4000000:2")
    assert (tasks.spans, tasks.is_cut, len(tasks)) == ((), True, 2_000_001)
    assert len(TaskSet.read(",".join(f"{task}" for task in range(0, 4 * MOST, 2))).spans) <= MOST
    mask = TaskSet.read("0x" + "5" * 1_000_000)
    assert (len(mask.spans), mask.is_cut, len(mask)) == (MOST, True, 2_000_000)
    assert TaskSet.read("0x" + "5" * 1_000_002) == TaskSet(is_cut=True)


def test_texts_of_one_job_have_room_together() -> None:
    texts = Reader(ranges=3, characters=20)
    assert members(texts.read("1-5:2")) == {1, 3, 5}
    assert (texts.read("7-9:2"), len(texts.read("7-9:2"))) == (TaskSet(is_cut=True, unlisted=2), 2)
    assert texts.read("1,2,3,4,5,6,7") == TaskSet(is_cut=True, unlisted=3)
    assert texts.read("8") == TaskSet(is_cut=True)


@given(TASKS, TASKS)
def test_sets_are_joined_and_taken_away(left: set[int], right: set[int]) -> None:
    one, other = TaskSet.of(left), TaskSet.of(right)
    assert members(one | other) == members(union([one, other])) == left | right
    assert members(one - other) == left - right
    assert len(one - other) == len(left - right)
    assert TaskSet.read((one | other).written(4096)) == one | other


@given(TASKS, st.integers(0, 40))
def test_a_short_text_is_the_beginning_of_the_set(tasks: set[int], longest: int) -> None:
    text = TaskSet.of(tasks).written(longest)
    assert len(text) <= longest
    kept = members(TaskSet.read(text))
    assert kept <= tasks
    assert all(task > max(kept) for task in tasks - kept if kept)
