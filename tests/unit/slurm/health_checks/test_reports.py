"""Reports: read within bounds, whatever is in the comment of a node."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_api.v1alpha1.nodeset.checks import MAX_CHECKS
from slinky_operator.slurm.health_checks import reports
from slinky_operator.slurm.health_checks.reports import Report

HEAD = f"{reports.PREFIX}abc 1700000000"


def test_a_report() -> None:
    found = reports.read(f"{HEAD}|gpu failed GPU 3 is lost|disk unknown exit code 127|time pending")

    since = datetime.fromtimestamp(1_700_000_000, UTC)
    assert found == Report("abc", since, {"gpu": "GPU 3 is lost"}, {"disk": "exit code 127"}, frozenset({"time"}))


@pytest.mark.parametrize("comment", ["", "maintenance", '{"namespace":"a","podName":"b"}'])
def test_a_comment_of_somebody_else_is_none(comment: str) -> None:
    assert reports.read(comment) is None


@pytest.mark.parametrize("time", ["", "x", "-1", "9" * 40, "٣", "1e9"])
def test_a_time_that_is_none(time: str) -> None:
    found = reports.read(f"{reports.PREFIX}abc {time}|gpu failed")

    assert found == Report("abc", None, {"gpu": ""})


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    found = reports.read(reports.PREFIX + text)

    assert found is not None


def test_what_is_read_is_bounded() -> None:
    many = "|".join(f"c{number} failed {'x' * 100}" for number in range(10_000))
    found = reports.read(f"{HEAD}|{many}")

    assert found is not None
    assert len(found.failed) == MAX_CHECKS
