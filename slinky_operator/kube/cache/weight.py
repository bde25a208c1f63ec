"""How much work an object may cause, and where it is done.

Users decide the size of an object, but it must not block the event loop. Each object is weighed before any other
processing; counting stops at a limit, so weighing is cheap. An object with more values than any real one is refused.
Rules over an object with long texts run in a thread, and the longer they take, the longer the object rests before its
next pass (`rest_after`).

The controllers decide how to report a refused object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MOST_VALUES: Final = 10_000
"""Values (of mappings and lists, at all depths) that one object may have. The biggest spec seen has 900; reading and
merging ten thousand takes some milliseconds."""

LONG_TEXT: Final = 16_384
"""Characters from which on rules about an object leave the event loop: each takes up to a microsecond in the slowest
rule, so less than that stays below 20 ms."""

SHARE: Final = 0.05
"""Part of the time that rules about one object may take."""

LONGEST_REST: Final = 60.0
"""Seconds for which an object rests at most."""


@dataclass(frozen=True, slots=True)
class Weight:
    """Size of a document of mappings, lists and scalars."""

    values: int
    """All values, containers included; `MOST_VALUES` + 1 for a document that has more."""

    characters: int
    """Of all texts, keys included, as far as values were counted."""

    @property
    def too_many(self) -> bool:
        """Whether there are more values than may be."""
        return self.values > MOST_VALUES

    @property
    def heavy(self) -> bool:
        """Whether rules about it are to leave the event loop alone."""
        return self.characters > LONG_TEXT or self.values > MOST_VALUES // 4


def weigh(document: object, *, most: int = MOST_VALUES) -> Weight:
    """Weigh a document as JSON has it.

    Parameters
    ----------
    document
        Mappings, lists and scalars.
    most
        Counting ends beyond so many values.
    """
    values = characters = 0
    waiting = [document]
    while waiting and values <= most:
        one = waiting.pop()
        values += 1
        if isinstance(one, str):
            characters += len(one)
        elif isinstance(one, dict):
            if len(one) > most:
                return Weight(most + 1, characters)
            characters += sum(map(len, one))
            waiting.extend(one.values())
        elif isinstance(one, list):
            if len(one) > most:
                return Weight(most + 1, characters)
            waiting.extend(one)
    return Weight(values, characters)


async def decide(rules: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run rules in a thread: all they read must be frozen, or nobody else's meanwhile."""
    return await asyncio.to_thread(rules, *args, **kwargs)


def rest_after(seconds: float) -> float:
    """How long an object rests after rules about it have taken so many seconds, so that they keep to their `SHARE`."""
    return min(LONGEST_REST, seconds / SHARE)
