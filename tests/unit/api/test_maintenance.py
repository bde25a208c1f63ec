"""Maintenance windows: which period is on, which comes next, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from slinky_api.v1alpha1.cluster.maintenance import Maintenance, MaintenanceWindow

NOW = datetime(2026, 11, 28, 10, tzinfo=UTC)
NIGHT = {"name": "night", "schedule": "0 2 * * *", "duration": "4h"}


def window(**fields: Any) -> MaintenanceWindow:
    return MaintenanceWindow.model_validate({**NIGHT, **fields})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_window_is_on_from_its_first_moment_to_its_last() -> None:
    night = window()
    for now, is_on in (("01:59:59", False), ("02:00:00", True), ("05:59:59", True), ("06:00:00", False)):
        assert (night.current(at(f"2026-11-28T{now}Z")) is not None) is is_on, now
    following = night.next(at("2026-11-28T02:00:00Z"))
    assert following is not None
    assert following.start == at("2026-11-29T02:00Z")


def test_a_window_that_comes_once_is_over_after_it() -> None:
    once = MaintenanceWindow.model_validate({"name": "once", "start": "2026-12-01T02:00:30+01:00", "duration": "1h"})
    (period,) = once.periods(NOW)
    assert (period.start, period.end) == (at("2026-12-01T01:00:30Z"), at("2026-12-01T02:00:30Z"))
    assert once.current(period.start) == period
    assert once.next(period.start) is None
    assert once.periods(period.end) == ()


def test_the_duration_is_time_that_passes_whatever_clocks_do() -> None:
    night = window(timeZone="Europe/Berlin")
    (period,) = night.periods(at("2026-10-24T12:00Z"))
    assert period.end - period.start == timedelta(hours=4)


def test_a_window_that_starts_again_before_it_has_ended_is_noticed() -> None:
    assert window(duration="25h").overlaps_itself()
    assert not window(duration="24h").overlaps_itself()


@pytest.mark.parametrize(
    ("schedule", "longest"),
    [
        ("0 0 1 * *", 28 * 24),
        ("0 */6 * * *", 6),
        ("0 1,5,20 * * *", 4),
        ("30 2 * * mon,thu", 72),
        ("0 0 29 2 *", 720),
        ("0 12 1,15 * *", 14 * 24),
    ],
)
def test_whether_it_does_is_the_same_in_every_month_and_when_clocks_change(schedule: str, longest: int) -> None:
    fields = {"schedule": schedule, "timeZone": "Europe/Berlin"}
    assert not window(**fields, duration=f"{longest}h").overlaps_itself()
    if longest < 720:
        assert window(**fields, duration=f"{longest * 60 + 1}m").overlaps_itself()


def test_two_periods_that_a_missing_hour_lets_overlap_are_both_on() -> None:
    often = window(schedule="0 */2 * * *", timeZone="Europe/Berlin", duration="2h")
    assert [one.start for one in often.periods(at("2026-03-29T02:30Z"))] == [
        at("2026-03-29T01:00Z"),
        at("2026-03-29T02:00Z"),
    ]


def test_of_several_windows_the_next_one_is_shown_and_of_those_that_are_on_the_longest() -> None:
    several = Maintenance.model_validate(
        {"windows": [NIGHT, {**NIGHT, "name": "long", "duration": "8h", "nodeSets": ["a"]}]}
    )
    for node_set, name in (("a", "long"), ("b", "night"), (None, "long")):
        found = several.coming(at("2026-11-28T03:00Z"), node_set)
        assert found is not None
        assert found[0].name == name
    assert several.changes_in(at("2026-11-28T03:00Z")) == 3 * 3600
    assert Maintenance().changes_in(NOW) is None
    assert Maintenance().coming(NOW) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"start": "2026-12-01T02:00:00Z"}, "give either schedule or start"),
        ({"schedule": None}, "give either schedule or start"),
        ({"schedule": None, "start": "2026-12-01T02:00:00Z", "timeZone": "Etc/UTC"}, "timeZone requires schedule"),
        ({"schedule": None, "start": "2026-12-01T02:00:00"}, "must have an offset"),
        ({"schedule": None, "start": "9999-12-31T23:59:59Z"}, "must be in a year from 2000 to 2999"),
        ({"schedule": None, "start": "0001-01-01T00:00:00+14:00"}, "must be in a year from 2000 to 2999"),
        ({"releaseEarly": True}, "releaseEarly requires holdUpdates"),
        ({"duration": "59s"}, "must be from 1m to 720h"),
        ({"duration": "721h"}, "must be from 1m to 720h"),
        ({"timeZone": "Mars/Olympus"}, "must be the name of a time zone"),
        ({"schedule": "0 2 30 feb *"}, "never comes"),
    ],
)
def test_what_has_no_meaning_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        window(**fields)
