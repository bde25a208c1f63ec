"""When something recurs: the five fields of cron in a time zone, read and computed. Pure; the time is passed in.

A time that a clock leaves out (spring) is the moment at which the clock would have shown it without the change; of one
that it shows twice (autumn) only the first counts. Why no library does this: `docs/dependencies.md`.
"""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["LONGEST_SCHEDULE", "MOST_A_DAY", "SCHEDULE", "ZONE", "Schedule", "read_schedule", "zone"]

SCHEDULE: Final = r"[0-9A-Za-z*,/-]+( [0-9A-Za-z*,/-]+){4}"
"""What five fields look like; `read_schedule` decides what they may be."""

ZONE: Final = r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}"
"""What the name of a time zone looks like."""

LONGEST_SCHEDULE: Final = 100
"""Characters of five fields."""

MOST_A_DAY: Final = 24
"""Times that one day may have."""

_DAYS_AHEAD: Final = 366 * 40
"""Days in which every date has been every day of the week, a 29 February too, beyond a year such as 2100."""

_DAYS_COMPARED: Final = 366 * 8

_MONTHS: Final = tuple(one.lower() for one in calendar.month_abbr)
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _WEEKDAYS),
)
_NUMBER: Final = re.compile(r"[0-9]{1,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Five fields of cron, as sets of numbers."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Sunday is 0."""

    either_day: bool
    """Whether a day needs to match only one of the two fields about days: neither begins with an asterisk."""

    def after(self, moment: datetime, where: tzinfo) -> datetime:
        """The first time after a moment.

        Parameters
        ----------
        moment
            With a time zone.
        where
            Whose clocks count.

        Returns
        -------
        datetime
            In UTC.

        Raises
        ------
        ValueError
            There is none: no such month has such a day.
        """
        day = moment.astimezone(where).date()
        for _ in range(_DAYS_AHEAD):
            if self._has(day):
                found = min((one for one in self._times(day, where) if one > moment), default=None)
                if found is not None:
                    return found
            day += timedelta(days=1)
        raise ValueError("never comes: no such month has such a day")

    def shortest_gap(self) -> timedelta:
        """The shortest time from one start to the next by the clock, in some years that have all kinds of months."""
        times = [timedelta(hours=hour, minutes=minute) for hour in self.hours for minute in self.minutes]
        gaps = [other - one for one, other in pairwise(times)]
        first = date(2023, 1, 1)
        days = [day for day in (first + timedelta(days=count) for count in range(_DAYS_COMPARED)) if self._has(day)]
        gaps += [other - one + times[0] - times[-1] for one, other in pairwise(days)]
        return min(gaps, default=timedelta.max)

    def _has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week

    def _times(self, day: date, where: tzinfo) -> Iterator[datetime]:
        for hour in self.hours:
            for minute in self.minutes:
                yield datetime.combine(day, time(hour, minute), where).astimezone(UTC)


@lru_cache(maxsize=256)
def read_schedule(text: str) -> Schedule:
    """Read five fields: numbers, names of months and days, lists, ranges and steps.

    Raises
    ------
    ValueError
        With the field, and what it may be.
    """
    words = text.split(" ")
    if len(text) > LONGEST_SCHEDULE or len(words) != len(_FIELDS):
        raise ValueError("must be five fields: minute, hour, day of the month, month, day of the week")
    read = [_field(word, *field) for word, field in zip(words, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = read
    if len(minutes) * len(hours) > MOST_A_DAY:
        raise ValueError(f"must have at most {MOST_A_DAY} times a day")
    either = not words[2].startswith("*") and not words[4].startswith("*")
    of_week = frozenset(day % 7 for day in weekdays)
    schedule = Schedule(tuple(sorted(minutes)), tuple(sorted(hours)), days, months, of_week, either)
    _ = schedule.after(datetime(2024, 1, 1, tzinfo=UTC), UTC)
    return schedule


@lru_cache(maxsize=256)
def zone(name: str) -> ZoneInfo:
    """The time zone of a name such as ``Europe/Berlin``.

    Raises
    ------
    ValueError
        There is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("must be the name of a time zone, such as Europe/Berlin or Etc/UTC") from error


def _field(word: str, what: str, least: int, most: int, names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, slash, step = part.partition("/")
        low, dash, high = span.partition("-")
        if span == "*":
            first, last = least, min(most, 6) if names is _WEEKDAYS else most
        else:
            first = _number(low, what, least, most, names)
            last = _number(high, what, least, most, names) if dash else most if slash else first
        by = _number(step, f"step of the {what}", 1, most, ()) if slash else 1
        if last < first:
            raise ValueError(f"the {what} {part[:20]} runs backwards: write {low},{high} or two ranges")
        found.update(range(first, last + 1, by))
    return frozenset(found)


def _number(word: str, what: str, least: int, most: int, names: tuple[str, ...]) -> int:
    if word and word.lower() in names:
        return names.index(word.lower())
    number = int(word) if _NUMBER.fullmatch(word) else -1
    if not least <= number <= most:
        also = f" or {names[-1]} and the like" if names else ""
        raise ValueError(f"the {what} {word[:20]!r} must be a number from {least} to {most}{also}")
    return number
