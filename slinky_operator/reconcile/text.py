"""Formats lists, times and long texts for conditions, Events and the status text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from slinky_operator.runtime.printable import printable

LONGEST_LIST: Final = 5
"""Nodes or pods named in one condition."""


def stamp(when: datetime) -> str:
    """A time as Kubernetes writes it."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: object) -> datetime | None:
    """Parse a time as Kubernetes writes it; None if it is none."""
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def cut(text: str, longest: int) -> str:
    """A text on one line, printable, and cut to the given number of characters."""
    # One character may become several, and never none: what follows would be cut off anyway.
    words = " ".join(text.split())
    shown = printable(words[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def joined(texts: Sequence[str]) -> str:
    """The first of some texts, and the number of the others."""
    shown = "; ".join(texts[:LONGEST_LIST])
    return shown if len(texts) <= LONGEST_LIST else f"{shown}; and {len(texts) - LONGEST_LIST} more"


def named(names: Sequence[str], most: int = LONGEST_LIST, separator: str = ", ") -> str:
    """The first of some names, and the number of the others."""
    shown = separator.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
