"""
Texts for people: columns, units, times, and nothing that a terminal would obey.

Names of jobs, comments and reasons are written by anybody. What is no printable character is shown as an escape, so
that no job moves the cursor, sets a title or hides a line.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from slurm_client.models import INFINITE, Infinite

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["by_number", "length", "memory", "microseconds", "moment", "safe", "table"]

_LONGEST = 60
"""Characters of a cell that is not the last one."""


def safe(text: str) -> str:
    r"""Return a text without characters that a terminal interprets: ``\x1b`` is shown, not sent."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[str] = ()) -> list[str]:
    """
    Return lines with columns below their names.

    Parameters
    ----------
    right
        Names of the columns of numbers, which are aligned to the right.
    """
    flush = {index for index, name in enumerate(head) if name in set(right)}
    last = len(head) - 1
    lines = [list(head)]
    for row in rows:
        cells = [safe(str(cell)) if cell not in {None, ""} else "-" for cell in row]
        lines.append([cell if index == last else _cut(cell) for index, cell in enumerate(cells)])
    widths = [max(_width(line[column]) for line in lines) for column in range(len(head))]
    shown = []
    for line in lines:
        cells = []
        for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
            blanks = " " * (width - _width(cell))
            cells.append(blanks + cell if column in flush else cell + blanks)
        shown.append("  ".join(cells).rstrip())
    return shown


def _cut(cell: str) -> str:
    return cell if len(cell) <= _LONGEST else cell[: _LONGEST - 1] + "…"


def _width(text: str) -> int:
    """Return the columns a text takes: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def memory(mib: int | None) -> str:
    """Return memory in the largest unit that leaves a number of at least 1: ``512 MiB``, ``1.5 TiB``."""
    if mib is None:
        return ""
    size, unit = float(mib), "MiB"
    for larger in ("GiB", "TiB", "PiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if size == int(size) or size >= 100 else f"{size:.1f} {unit}"


def microseconds(number: int) -> str:
    """Return a time in microseconds with a unit that people read: ``850 us``, ``12 ms``, ``3.4 s``."""
    if number < 1000:
        return f"{number} us"
    return f"{number / 1000:.0f} ms" if number < 1_000_000 else f"{number / 1_000_000:.1f} s"


def length(value: timedelta | Infinite | None) -> str:
    """Return a length of time as Slurm writes it: ``1-02:03:04``, ``5:00``; ``unlimited``."""
    if value is None:
        return ""
    if value is INFINITE:
        return "unlimited"
    assert isinstance(value, timedelta)  # noqa: S101 - what is left
    seconds = max(0, int(value.total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def moment(value: datetime | None, now: datetime | None = None) -> str:
    """Return a time in the zone of this machine: ``14:03`` today, ``Nov 22 14:03`` this year."""
    if value is None:
        return ""
    here, today = value.astimezone(), (now or datetime.now(UTC)).astimezone()
    if here.date() == today.date():
        return f"{here:%H:%M}"
    return f"{here:%b %d %H:%M}" if here.year == today.year else f"{here:%Y-%m-%d %H:%M}"


def by_number(name: str) -> tuple[tuple[int, str | int], ...]:
    """Return a key that sorts ``n9`` before ``n10``."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name) if part)
