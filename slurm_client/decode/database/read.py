"""Readers of what only slurmdbd's answers have."""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from slurm_client.decode.read import count, is_short, items, mapping, number, text
from slurm_client.notation.tres import Tres, TresCount

if TYPE_CHECKING:
    from collections.abc import Mapping


def tres(value: Any) -> Tres:
    """
    Return a list of resources from objects with type, name and count; what has no type or no count is left out.

    The kind of a generic resource is a part of its name there: ``gpu:h100``.
    """
    found = []
    for raw in map(mapping, items(value)):
        kind, how_many = text(raw.get("type")), number(raw.get("count"))
        if kind and how_many is not None:
            found.append((kind, text(raw.get("name")), how_many))
    made = _tres if is_short([kind + name for kind, name, _ in found]) else _tres.__wrapped__
    return made(tuple(found))


@functools.lru_cache(maxsize=4096)
def _tres(found: tuple[tuple[str, str, int], ...]) -> Tres:
    """Return one object for equal lists: many jobs ask for the same."""
    return Tres(tuple(TresCount(kind, *name.partition(":")[::2], count) for kind, name, count in found))


def span(value: Any) -> timedelta | None:
    """Return a length of time from an object with seconds and microseconds."""
    raw: Mapping[str, Any] = mapping(value)
    if "seconds" not in raw and "microseconds" not in raw:
        return None
    try:
        return timedelta(seconds=count(raw.get("seconds")), microseconds=count(raw.get("microseconds")))
    except OverflowError:
        return None
