"""Times of a schedule: fields of cron, time zones, clocks that are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_api.v1alpha1.schedule import read_schedule, zone


def times(text: str, where: str, after: str, count: int) -> list[str]:
    moment, found = datetime.fromisoformat(after), []
    for _ in range(count):
        moment = read_schedule(text).after(moment, zone(where))
        found.append(f"{moment:%Y-%m-%dT%H:%M}")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 2 * * tue", ["2026-12-01T02:00", "2026-12-08T02:00"]),
        ("30 */12 * * *", ["2026-11-28T12:30", "2026-11-29T00:30"]),
        ("0 0 1,15 * *", ["2026-12-01T00:00", "2026-12-15T00:00"]),
        ("0 22 * jan-feb sat,SUN", ["2027-01-02T22:00", "2027-01-03T22:00"]),
        ("0 0 31 * *", ["2026-12-31T00:00", "2027-01-31T00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00", "2032-02-29T00:00"]),
        # A day of the month or a day of the week, where both are given; both, where one begins with an asterisk.
        ("0 0 1 * tue", ["2026-12-01T00:00", "2026-12-08T00:00"]),
        ("0 0 */2 * wed", ["2026-12-09T00:00", "2026-12-23T00:00"]),
        ("0 0 * * 7", ["2026-11-29T00:00", "2026-12-06T00:00"]),
        ("0 0 * * 5-7", ["2026-11-29T00:00", "2026-12-04T00:00"]),
        ("0 0 5/10 * *", ["2026-12-05T00:00", "2026-12-15T00:00"]),
    ],
)
def test_the_next_times(text: str, expected: list[str]) -> None:
    assert times(text, "Etc/UTC", "2026-11-28T10:00Z", 2) == expected


def test_a_time_that_the_clock_leaves_out_is_the_moment_after() -> None:
    # On 29 March 2026 clocks in Berlin go from 2:00 to 3:00.
    assert times("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00Z", 3) == [
        "2026-03-28T01:30", "2026-03-29T01:30", "2026-03-30T00:30",
    ]  # fmt: skip
    # 2:30 is 3:30 on that day, and comes after 3:00.
    assert times("0,30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00Z", 4) == [
        "2026-03-29T01:00", "2026-03-29T01:30", "2026-03-30T00:00", "2026-03-30T00:30",
    ]  # fmt: skip


def test_of_a_time_that_comes_twice_only_the_first_counts() -> None:
    # On 25 October 2026 clocks in Berlin go from 3:00 to 2:00.
    assert times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", 2) == ["2026-10-25T00:30", "2026-10-26T01:30"]


def test_a_zone_without_whole_hours() -> None:
    assert times("0 0 * * *", "Asia/Kolkata", "2026-11-28T10:00Z", 1) == ["2026-11-28T18:30"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 2 * *", "must be five fields"),
        ("0  2 * * *", "must be five fields"),
        ("@daily", "must be five fields"),
        ("60 2 * * *", "the minute '60' must be a number from 0 to 59"),
        ("0 24 * * *", "the hour '24' must be a number from 0 to 23"),
        ("0 2 0 * *", "the day of the month '0' must be a number from 1 to 31"),
        ("0 2 * foo *", "the month 'foo' must be a number from 1 to 12 or dec and the like"),
        ("0 2 * * 8", "the day of the week '8' must be a number from 0 to 7 or sat and the like"),
        ("0 2 * * */0", "the step of the day of the week '0' must be a number from 1 to 7"),
        ("0 2 20-5 * *", "the day of the month 20-5 runs backwards"),
        ("0 2 1, * *", "the day of the month '' must be"),
        ("0 2 -3 * *", "the day of the month '' must be"),
        ("0 2 30 feb *", "never comes"),
        ("*/30 * * * *", "must have at most 24 times a day"),
        ("0 2 * * ٣", "the day of the week '٣' must be"),
        (f"0 2 * * {'1,' * 60}1", "must be five fields"),
    ],
)
def test_a_wrong_schedule_is_refused_with_its_field(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("*", r"\*")):
        read_schedule(text)


@pytest.mark.parametrize("name", ["Nowhere/Land", "../etc/passwd", "/etc/localtime", "", "a\0b"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be the name of a time zone"):
        zone(name)


@given(
    st.integers(0, 16 * 365 * 24 * 60),
    st.sampled_from(["0 2 * * *", "30 2 * * sun", "15 0,12 1 * *", "0 3 * 3,10 *"]),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Etc/UTC", "America/Sao_Paulo"]),
)
def test_times_go_forward_and_show_on_the_clock(minutes: int, text: str, where: str) -> None:
    schedule, there = read_schedule(text), zone(where)
    found = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)]
    for _ in range(3):
        found.append(schedule.after(found[-1], there))
    assert all(one < other for one, other in pairwise(found))
    for one in found[1:]:
        # As the clock shows it, or, on a day on which it goes ahead, as it would have.
        local = one.astimezone(there).replace(tzinfo=None)
        shown = [local - timedelta(minutes=minutes) for minutes in (0, 30, 60)]
        assert any(each.hour in schedule.hours and each.minute in schedule.minutes for each in shown)
