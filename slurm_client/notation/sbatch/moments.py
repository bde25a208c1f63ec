"""
Points in time as ``--begin`` and ``--deadline`` take them (``parse_time.c`` of 24.11 and 26.05).

``2030-01-20T12:34:00``, ``010230``, ``1/2/30``, ``16:00``, ``3:30pm``, ``tomorrow``, ``teatime tomorrow``,
``now+2hours``, ``uts1900000000``. sbatch reads them by the clock and the time zone of its own machine;
here the caller gives both.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo

_LONGEST = 256
"""Most characters of a point in time: a text may name any number of them, each of which looks at the rest."""

_HOURS = {"midnight": 0, "noon": 12, "elevenses": 11, "fika": 15, "teatime": 16}
_UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_NOW = re.compile(r"now[ \t]*(?:([+-])[ \t]*([0-9 \t]{1,18}?)(second|minute|hour|day|week)?s?[ \t]*)?", re.IGNORECASE)
_WORD = re.compile("|".join(["today", "tomorrow", *_HOURS]), re.IGNORECASE)
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?\s*(am|pm)?", re.IGNORECASE)
_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{1,2})")
_US = re.compile(r"([0-9]{1,2})[./]?([0-9]{1,2})(?:[./]?([0-9]{2}))?(?![0-9])")


def moment(text: str, *, now: datetime, zone: tzinfo) -> datetime:
    """
    Return a point in time, in UTC.

    Parameters
    ----------
    text
        As it is written.
    now, zone
        What time it is, and where.

    Raises
    ------
    ValueError
        For what is no point in time.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:40]!r}… has more than {_LONGEST} characters")
    here = now.astimezone(zone).replace(microsecond=0)
    try:
        found = _read(text, here)
        return found.replace(tzinfo=found.tzinfo or zone).astimezone(UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{text[:40]!r} is beyond all calendars") from error


def _read(text: str, here: datetime) -> datetime:
    if text[:3].lower() == "uts" and re.fullmatch(r"[0-9]{7,12}", text[3:]):
        return datetime.fromtimestamp(int(text[3:]), UTC)
    if match := _NOW.fullmatch(text.strip(" \t")):
        return _from_now(match, here)
    day, clock = _day_and_clock(text, here)
    if day is None and clock is None:
        raise ValueError(f"{text[:40]!r} {_WRONG}")
    if day is None and clock is not None:
        later = (clock.hour, clock.minute) > (here.hour, here.minute)
        day = (here if later else here + timedelta(days=1)).date()
    return datetime.combine(day or here.date(), clock or time())


def _day_and_clock(text: str, here: datetime) -> tuple[date | None, time | None]:
    """Read all parts of a text; of several days or times of day, the last counts."""
    day: date | None = None
    clock: time | None = None
    index = 0
    while index < len(text):
        if text[index] in " \t-" or (text[index] == "T" and not _WORD.match(text, index)):
            index += 1
            continue
        match = next((found for found in (each.match(text, index) for each in _PARTS) if found), None)
        if match is None:
            raise ValueError(f"{text[:40]!r} {_WRONG}")
        word = match[0].lower()
        if match.re is _CLOCK or word in _HOURS:
            clock = _clock(match) if match.re is _CLOCK else time(_HOURS[word])
        elif match.re is _WORD:
            day = (here + timedelta(days=word == "tomorrow")).date()
        elif match.re is _ISO:
            day = date(int(match[1]), int(match[2]), int(match[3]))
        else:
            day = _us_date(match, clock, text[match.end() :], here)
        index = match.end()
    return day, clock


_PARTS = (_WORD, _CLOCK, _ISO, _US)
_WRONG = "is no point in time such as 2030-01-20T12:34:00, 16:00 or now+2hours"


def _from_now(match: re.Match[str], here: datetime) -> datetime:
    count = re.sub(r"[ \t]", "", match[2] or "")
    if match[1] and not count:
        raise ValueError(f"{match[0][:40]!r} {_WRONG}")
    delta = timedelta(seconds=int(count or 0) * _UNITS[(match[3] or "second").lower()])
    return here.astimezone(UTC) + (-delta if match[1] == "-" else delta)


def _clock(match: re.Match[str]) -> time:
    hour, half = int(match[1]), (match[4] or "").lower()
    if half and hour == 12:
        hour -= 12
    if half and hour > 11:
        raise ValueError(f"{match[0]!r}: the hour is no hour of half a day")
    return time(hour + 12 * (half == "pm"), int(match[2]), int(match[3] or 0))


def _us_date(match: re.Match[str], clock: time | None, rest: str, here: datetime) -> date:
    """Return the date of month, day and perhaps year; without one, the next time that it comes."""
    month, day = int(match[1]), int(match[2])
    if match[3] is not None and int(match[3]):
        return date(2000 + int(match[3]), month, day)
    after = _CLOCK.search(rest)
    at = clock or (_clock(after) if after else time())
    word = _WORD.search(rest)
    if word and word[0].lower() in _HOURS:
        at = time(_HOURS[word[0].lower()])
    later = (month, day, at.hour, at.minute) > (here.month, here.day, here.hour, here.minute)
    return date(here.year if later else here.year + 1, month, day)
