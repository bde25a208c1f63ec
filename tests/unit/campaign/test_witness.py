"""What jobs write and what sacct prints is read as it is; half a line is nobody's word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.witness import Line, Record, lines_of, nodes_of, read, records_of, unended


def test_lines_are_read_and_half_a_line_is_left_out() -> None:
    text = "start 7 - 0 a-0 1000.5\nend 7 - 0 a-0 1030.25\nstart 7 -"
    assert [*lines_of(text)] == [Line("start", "7", "-", 0, "a-0", 1000.5), Line("end", "7", "-", 0, "a-0", 1030.25)]


def test_files_of_other_rounds_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "r1-3").write_text("start 7 2 1 a-0 1000\n")
    (tmp_path / "r2-3").write_text("start 8 - 0 a-0 1000\n")
    assert read(tmp_path, "r1-") == {"r1-3": (Line("start", "7", "2", 1, "a-0", 1000.0),)}


def test_records_are_read_with_their_times_in_utc() -> None:
    text = (
        "7|r1-3|COMPLETED|0:0|1970-01-01T00:16:40|1970-01-01T00:17:10|a-0\n"
        "8|r1-4|CANCELLED by 0|0:15|Unknown|1970-01-01T00:17:10|None assigned\n"
        "9|other|COMPLETED|0:0|Unknown|Unknown|a-0\n"
        "\n"
    )
    assert [*records_of(text, "r1-")] == [
        Record("7", "r1-3", "COMPLETED", "0:0", 1000.0, 1030.0, "a-0"),
        Record("8", "r1-4", "CANCELLED", "0:15", 0.0, 1030.0, "None assigned"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-0", {"a-0"}),
        ("a-[0-2],b-1", {"a-0", "a-1", "a-2", "b-1"}),
        ("a-[0,2],node-2", {"a-0", "a-2", "node-2"}),
        ("", set()),
    ],
)
def test_lists_of_nodes_are_read(text: str, expected: set[str]) -> None:
    assert nodes_of(text) == expected


def test_a_job_of_another_name_is_known_by_the_name_that_it_was_given() -> None:
    text = (
        "7|bridge-u1|COMPLETED|0:0|1970-01-01T00:16:40|1970-01-01T00:17:10|node-2\n"
        "8|bridge-u2|FAILED|1:0|Unknown|Unknown|x"
    )
    assert [*records_of(text, "r1-", {"bridge-u1": "r1-3"})] == [
        Record("7", "r1-3", "COMPLETED", "0:0", 1000.0, 1030.0, "node-2")
    ]


def test_a_record_whose_number_was_given_again_never_gets_an_end() -> None:
    first, again, other = (
        Record(job, "m", state, "0:0", 1000.0, 0.0, "a-0")
        for job, state in (("7", "RUNNING"), ("7", "COMPLETED"), ("8", "PENDING"))
    )
    assert unended([first, again, other]) == ["8"]
    assert unended([first]) == ["7"]
