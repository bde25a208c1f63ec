"""The condition of a pod quotes Slurm, and no more of it than a reader needs."""

from __future__ import annotations

from datetime import UTC, datetime

from slinky_operator.nodeset.drain import pod_condition
from slinky_operator.nodeset.model import pod_state
from tests.unit.nodeset.builders import a_pod, joined, node

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def told(reason: str, words: str = "IDLE+DRAIN+DYNAMIC_NORM") -> str:
    record = node(words, name="a-0", reason=reason, reason_set_by="root", reason_changed_at=NOW)
    found = pod_condition.change(joined(a_pod(), record), pod_state.Drained(frozenset()))
    assert found is not None
    assert found.told is not None
    return found.told.message


def test_a_reason_is_quoted() -> None:
    assert told("disk broken").endswith("with the reason: disk broken")


def test_a_reason_of_a_megabyte_is_cut() -> None:
    assert len(told("x" * 1_000_000)) < pod_condition.LONGEST_REASON + 200
