from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client.notation.arrays import LARGEST, MOST_RANGES, ArrayTasks


@pytest.mark.parametrize(
    ("text", "indices", "at_once"),
    [
        ("0", [0], None),
        ("0-3,7", [0, 1, 2, 3, 7], None),
        ("1-10:2%3", [1, 3, 5, 7, 9], 3),
        ("[5-7]", [5, 6, 7], None),
        ("[5-7%2]", [5, 6, 7], 2),
        ("1,1-2,2", [1, 2], None),
        ("3-3", [3], None),
        ("4%0", [4], None),
    ],
)
def test_tasks_are_read_and_counted(text: str, indices: list[int], at_once: int | None) -> None:
    tasks = ArrayTasks.parse(text)
    assert list(tasks) == indices
    assert len(tasks) == len(indices)
    assert tasks.at_once == at_once
    assert all(index in tasks for index in indices)
    assert 8_000 not in tasks
    assert ArrayTasks.parse(str(tasks)) == tasks or list(ArrayTasks.parse(str(tasks))) == indices


@pytest.mark.parametrize(
    "text",
    ["", "-1", "3-1", "1-5:0", "1-", "a", "1,,2", "5-9,11,...", "1%", "[1", f"{LARGEST + 1}", "0-9,0-4000000", "1_2"],
)
def test_what_names_no_tasks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"task|array"):
        ArrayTasks.parse(text)


@pytest.mark.parametrize(
    ("text", "count", "most"),
    [
        (f"0-{LARGEST}", LARGEST + 1, 65_536),
        (f"1-{LARGEST}:2", LARGEST // 2, 65_536),
        # Ranges with steps that overlap take one byte for each index.
        ("0-2000000:2,1-2000000", 2_000_001, 3 * LARGEST),
    ],
)
def test_the_largest_arrays_are_counted_without_their_indices(text: str, count: int, most: int) -> None:
    tracemalloc.start()
    try:
        tasks = ArrayTasks.parse(text)
        assert (len(tasks), next(iter(tasks))) == (count, tasks.first)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def test_an_expression_has_a_limited_number_of_ranges() -> None:
    assert len(ArrayTasks.parse(",".join("1" for _ in range(MOST_RANGES)))) == 1
    with pytest.raises(ValueError, match=f"more than {MOST_RANGES} ranges"):
        ArrayTasks.parse(",".join("1" for _ in range(MOST_RANGES + 1)))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=8))
def test_ranges_are_counted_as_the_sets_that_they_are(ranges: list[tuple[int, int, int]]) -> None:
    tasks = ArrayTasks.parse(",".join(f"{first}-{first + more}:{step}" for first, more, step in ranges))
    wanted = sorted({index for first, more, step in ranges for index in range(first, first + more + 1, step)})
    assert (list(tasks), len(tasks), tasks.first) == (wanted, len(wanted), wanted[0])


@given(st.text(alphabet="0123456789-,:%[]. ", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tasks = ArrayTasks.parse(text)
    except ValueError:
        return
    if sum(map(len, tasks.spans)) < 10_000:
        assert len(list(tasks)) == len(tasks)


@given(st.sets(st.integers(0, 500), min_size=1, max_size=40))
def test_listed_indices_are_those_indices(indices: set[int]) -> None:
    assert list(ArrayTasks.parse(",".join(map(str, indices)))) == sorted(indices)
