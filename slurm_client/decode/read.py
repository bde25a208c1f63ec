"""
Readers of single values that take every shape a data parser gives them, and never raise.

Slurm's parsers write the same value as a plain number or as ``{set, infinite, number}``, a list of words as a list, a
text with commas or ``null``. What cannot be read counts as not set: a wrong type in one field must not hide a node.
"""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from slurm_client.models.values import INFINITE, Infinite

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

S = TypeVar("S")

_EMPTY: Mapping[str, Any] = {}

_FEW = 32
_SHORT = 256
"""Longer lists and texts are not shared: what is shared outlives the answer that it was in."""

_LARGEST = 2**64
"""Slurm's own numbers have 64 bits."""


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else _EMPTY


def items(value: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a text; numbers are written out, lists are joined by commas, all else is empty."""
    if type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(words(value))
    if isinstance(value, int | float | dict):
        found = number(value)
        return "" if found is None else str(found)
    return ""


def words(value: Any) -> tuple[str, ...]:
    """Return a tuple of words from a list or from a text with commas."""
    if isinstance(value, list):
        if not value:
            return ()
        try:
            return (_shared if is_short(value) else _shared.__wrapped__)(tuple(value))
        except TypeError:  # something in it cannot be hashed
            return tuple(word for word in value if isinstance(word, str))
    if isinstance(value, str):
        return (_split if len(value) <= _SHORT else _split.__wrapped__)(value)
    return ()


def is_short(value: Sequence[str]) -> bool:
    """Whether words are so few and short that what is made of them may outlive the answer that they were in."""
    return len(value) <= _FEW and sum(map(len, value)) <= _SHORT


def shared(make: Callable[[tuple[str, ...]], S], most: int) -> Callable[[tuple[str, ...]], S]:
    """Let equal states be one object, as long as they are short: they outlive the answer that they were in."""
    known = functools.lru_cache(maxsize=most)(make)
    return lambda found: known(found) if is_short(found) else make(found)


@functools.lru_cache(maxsize=8192)
def _shared(value: tuple[Any, ...]) -> tuple[str, ...]:
    """Return one tuple object for equal lists, of which a big cluster has thousands."""
    return tuple(word for word in value if isinstance(word, str) and word)


@functools.lru_cache(maxsize=8192)
def _split(value: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(",") if word.strip())


def decimal(value: Any) -> float | None:
    """Return a number; ``None`` if unset, infinite or not a number."""
    if isinstance(value, dict):
        # A parser that leaves out `set` means what it says in `number`.
        if value.get("infinite") is True or value.get("set", True) is False:
            return None
        value = value.get("number")
    if isinstance(value, int | float):  # Booleans are 0 and 1
        return value if value == value and abs(value) != float("inf") else None  # noqa: PLR0124 - NaN
    if isinstance(value, str):
        try:
            return decimal(float(value) if not value.strip().lstrip("+-").isdecimal() else int(value))
        except ValueError:
            return None
    return None


def number(value: Any) -> int | None:
    """Return a whole number; ``None`` if unset, infinite or not a number."""
    if type(value) is int:
        return value if -_LARGEST <= value <= _LARGEST else None
    found = decimal(value)
    return None if found is None or abs(found) > _LARGEST else int(found)


def count(value: Any) -> int:
    """Return a whole number, 0 if there is none."""
    return number(value) or 0


def flag(value: Any) -> bool:
    """Return a Boolean, however it is written."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.strip().lower() in {"true", "yes", "1", "on"}
    return bool(number(value))


def limit(value: Any) -> int | Infinite | None:
    """Return a whole number, ``INFINITE`` for no limit, ``None`` if not set."""
    if isinstance(value, dict) and value.get("infinite") is True:
        return INFINITE
    if isinstance(value, str) and value.strip().upper() in {"UNLIMITED", "INFINITE"}:
        return INFINITE
    return number(value)


def timestamp(value: Any) -> datetime | None:
    """Return a time in UTC from seconds since 1970; ``None`` if unset, zero, or no time at all."""
    if type(value) is dict and value.get("number") == 0:
        return None
    seconds = number(value)
    if not seconds:
        return None
    return _moment(seconds)


@functools.lru_cache(maxsize=8192)
def _moment(seconds: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def minutes(value: Any) -> timedelta | Infinite | None:
    """Return a limit of time that is given in minutes."""
    found = limit(value)
    return found if found is None or found is INFINITE else _span(found * 60)


def seconds(value: Any) -> timedelta | None:
    """Return a length of time that is given in seconds."""
    found = number(value)
    return None if found is None else _span(found)


def _span(length: int) -> timedelta | None:
    try:
        return timedelta(seconds=length)
    except OverflowError:
        return None
