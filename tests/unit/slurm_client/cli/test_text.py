"""Texts for people: units, times, columns, and characters that a terminal would obey."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client.cli import reasons, text
from slurm_client.models import INFINITE, ExitCode, Infinite, Job, JobState


@pytest.mark.parametrize(
    ("mib", "shown"),
    [
        (None, ""),
        (0, "0 MiB"),
        (512, "512 MiB"),
        (1024, "1 GiB"),
        (1536, "1.5 GiB"),
        (2**20, "1 TiB"),
        (2**31, "2 PiB"),
    ],
)
def test_memory_has_a_unit(mib: int | None, shown: str) -> None:
    assert text.memory(mib) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (INFINITE, "unlimited"),
        (timedelta(seconds=7), "0:07"),
        (timedelta(hours=2, seconds=1), "2:00:01"),
        (timedelta(days=3, minutes=4), "3-00:04:00"),
        (timedelta(seconds=-4), "0:00"),
    ],
)
def test_a_length_is_written_as_slurm_does(value: timedelta | Infinite | None, shown: str) -> None:
    assert text.length(value) == shown


def test_microseconds_have_a_unit() -> None:
    assert [text.microseconds(number) for number in (850, 12_000, 3_400_000)] == ["850 us", "12 ms", "3.4 s"]


def test_a_moment_says_the_day_where_it_is_another() -> None:
    now = datetime(2026, 6, 15, 12, tzinfo=UTC)
    assert len(text.moment(now, now)) == len("14:03")
    assert text.moment(now - timedelta(days=40), now).startswith("May ")
    assert text.moment(now - timedelta(days=400), now).startswith("2025-05-1")
    assert text.moment(None) == ""


@given(st.text())
def test_what_is_shown_is_printable(anything: str) -> None:
    shown = text.safe(anything)
    assert shown.isprintable()
    assert text.safe(shown) == shown


@given(st.lists(st.tuples(st.text(max_size=90), st.text(max_size=90), st.integers()), max_size=5))
def test_a_table_has_one_printable_line_for_each_row(rows: list[tuple[str, str, int]]) -> None:
    lines = text.table(("A", "B", "C"), rows, right=("C",))
    assert len(lines) == len(rows) + 1
    assert all(line.isprintable() for line in lines)


def test_columns_are_aligned_and_long_cells_cut() -> None:
    lines = text.table(("A", "N", "Z"), [("x" * 80, 7, "z" * 80), ("节点", 12, "")], right=("N",))
    assert lines[1] == f"{'x' * 59}…   7  {'z' * 80}"
    assert lines[2] == f"节点{' ' * 56}  12  -"


def test_names_are_sorted_by_their_numbers() -> None:
    assert sorted(["n10", "n9", "login", "n9a", "1"], key=text.by_number) == ["1", "login", "n9", "n9a", "n10"]


@pytest.mark.parametrize(
    ("job", "shown"),
    [
        (Job(id=1, state=JobState("PENDING"), state_reason="Priority"), "Priority: behind jobs of higher priority"),
        (Job(id=1, state=JobState("PENDING"), state_reason="NewWord"), "NewWord"),
        (Job(id=1, state=JobState("PENDING")), "None: not looked at yet"),
        (Job(id=1, state=JobState("RUNNING"), node_list="w-[0-1]"), "w-[0-1]"),
        (Job(id=1, state=JobState("FAILED"), exit_code=ExitCode(return_code=3)), "exit code 3"),
        (
            Job(id=1, state=JobState("FAILED"), node_list="w-0", exit_code=ExitCode(signal=9, signal_name="KILL")),
            "w-0, signal KILL",
        ),
    ],
)
def test_a_job_says_where_it_is_or_why_not(job: Job, shown: str) -> None:
    assert reasons.where_or_why(job) == shown
