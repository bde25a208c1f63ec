"""Times, numbers and lists in words, each of bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from slurm_client.notation.compress import compress

MOST_NAMED: Final = 5
"""Things of a list that are named."""

LONGEST: Final = 200
"""Characters of a text of others: a reason, a message."""

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def span(length: timedelta) -> str:
    """A length of time by its largest unit: ``3d``, ``5h``, ``12min``, ``40s``."""
    seconds = max(0, int(length.total_seconds()))
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds // size}{unit}"


def ago(then: datetime | None, now: datetime) -> str:
    """How long ago something was; empty if that is not known."""
    if then is None:
        return ""
    return f"in {span(then - now)}" if then > now else f"{span(now - then)} ago"


def clip(text: str, most: int = LONGEST) -> str:
    """A text in one line, cut to a length."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def named(things: Sequence[str], most: int = MOST_NAMED) -> str:
    """The first things of a list, and how many more there are."""
    shown = ", ".join(clip(thing, 60) for thing in things[:most])
    return f"{shown} and {len(things) - most} more" if len(things) > most else shown


def nodes(names: Iterable[str], most: int = 60) -> str:
    """Names of nodes in Slurm's notation, by their numbers, cut to a length."""
    return clip(compress(sorted(names, key=_by_number)), most)


def _by_number(name: str) -> tuple[str, int, str]:
    return name.rstrip("0123456789"), len(name), name


def number(count: int, thing: str, plural: str = "") -> str:
    """A number of things: ``1 job``, ``2 jobs``."""
    return f"{count} {thing if count == 1 else plural or f'{thing}s'}"
