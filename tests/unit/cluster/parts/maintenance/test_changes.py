"""What is made, changed and deleted in Slurm."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from slinky_operator.cluster.parts.maintenance.changes import find_changes, spec_of
from slinky_operator.cluster.parts.maintenance.windows import WantedReservation
from slurm_client.models import Reservation

NOW = datetime(2026, 11, 28, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
WANTED = WantedReservation("slurm-operator-night-x-1234", NOW + HOUR, NOW + 2 * HOUR, frozenset({"a-0", "a-1"}))
THERE = Reservation(
    name=WANTED.name,
    nodes=("a-0", "a-1"),
    start_time=WANTED.start,
    end_time=WANTED.end,
    users=("root",),
    flags=frozenset({"MAINT", "IGNORE_JOBS", "SPEC_NODES"}),
)


def names(*there: Reservation, wanted: tuple[WantedReservation, ...] = (WANTED,)) -> tuple[list[str], ...]:
    found = find_changes(wanted, there, "1234", NOW)
    return (
        [one.name for one in found.create],
        [one.name for one in found.update],
        list(found.delete),
        list(found.taken),
    )


def test_one_that_is_missing_is_made() -> None:
    assert names() == ([WANTED.name], [], [], [])
    spec = spec_of(WANTED, NOW, new=True)
    assert (spec.nodes, spec.start_time, spec.end_time) == (["a-0", "a-1"], WANTED.start, WANTED.end)
    assert (spec.users, spec.flags) == (("root",), ("MAINT", "IGNORE_JOBS"))


def test_one_that_is_as_wanted_stays() -> None:
    assert names(THERE) == ([], [], [], [])


def test_one_that_differs_is_changed() -> None:
    for other in (
        replace(THERE, end_time=WANTED.end + HOUR),
        replace(THERE, start_time=WANTED.start - HOUR / 2),
        replace(THERE, nodes=("a-0",)),
        replace(THERE, nodes=("a-0", "a-1", "a-2")),
    ):
        assert names(other) == ([], [WANTED.name], [], []), other
    assert spec_of(WANTED, NOW, new=False).start_time == WANTED.start
    assert spec_of(WANTED, NOW, new=False).flags is None


def test_the_start_of_one_that_has_begun_stays_and_a_late_one_begins_now() -> None:
    begun = replace(WANTED, start=NOW - HOUR)
    late = replace(THERE, start_time=NOW - HOUR / 2)
    assert names(late, wanted=(begun,)) == ([], [], [], [])
    assert spec_of(begun, NOW, new=False).start_time is None
    assert spec_of(begun, NOW, new=True).start_time == NOW


def test_one_that_is_not_wanted_is_deleted_unless_it_is_over() -> None:
    assert names(THERE, wanted=()) == ([], [], [WANTED.name], [])
    assert names(replace(THERE, end_time=NOW), wanted=()) == ([], [], [], [])


def test_reservations_of_others_are_never_touched() -> None:
    for other in (
        replace(THERE, name="slurm-operator-night-x-5678"),
        replace(THERE, name="night-1234"),
        replace(THERE, name="maintenance"),
    ):
        assert names(other, wanted=()) == ([], [], [], [])
        assert names(other) == ([WANTED.name], [], [], [])


def test_one_of_the_same_name_that_somebody_else_has_made_stays_and_is_told() -> None:
    for other in (
        replace(THERE, users=("alice",)),
        replace(THERE, users=("root", "alice")),
        replace(THERE, flags=frozenset({"SPEC_NODES"})),
    ):
        assert names(other) == ([], [], [], [WANTED.name]), other
        # Somebody has changed that of a window which has ended early: it holds its nodes until it ends.
        assert names(other, wanted=()) == ([], [], [], [WANTED.name])
        assert names(replace(other, end_time=NOW), wanted=()) == ([], [], [], [])
