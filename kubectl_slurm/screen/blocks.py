"""Blocks of text that rules make: sections of lines and tables. How they look is left to `printing`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MOST_ROWS: Final = 20
"""Rows of a table that are shown."""


class Mood(StrEnum):
    """What a line means for its reader."""

    PLAIN = "plain"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text."""

    text: str
    mood: Mood = Mood.PLAIN


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    cells: tuple[str, ...]
    mood: Mood = Mood.PLAIN


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes
    ----------
    numbers
        Columns with numbers, which are aligned to the right.
    more
        How many rows are not shown, and what they are: ``12 more NodeSets``.
    """

    head: tuple[str, ...]
    rows: tuple[Row, ...]
    numbers: frozenset[str] = frozenset()
    more: str = ""


Part = Line | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A title and what belongs to it."""

    title: str
    parts: tuple[Part, ...] = ()
    mood: Mood = Mood.PLAIN


Screen = tuple[Section, ...]


def table(
    head: Sequence[str], rows: Sequence[Row], what: str, *, numbers: Sequence[str] = (), most: int = MOST_ROWS
) -> Table:
    """A table of the first rows, which says how many it leaves out.

    Parameters
    ----------
    what
        What the rows are, in the plural.
    most
        Rows that are shown.
    """
    more = f"and {len(rows) - most} more {what}: -o json shows all" if len(rows) > most else ""
    return Table(tuple(head), tuple(rows[:most]), frozenset(numbers), more)
