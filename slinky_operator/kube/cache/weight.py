"""How much work an object may cause, and where it is done.

Users decide the size of an object, but it must not block the event loop. Each object is weighed before any other
processing; counting stops at a limit, so weighing is cheap. An object with more values than any real one is refused.
Rules over an object with long texts run in a thread, and the longer they take, the longer the object rests before its
next pass (`rest_after`).

The controllers decide how to report a refused object.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import filterfalse
from typing import Any, Final, ParamSpec, TypeVar

from slinky_operator.runtime import threads

P = ParamSpec("P")
T = TypeVar("T")

MOST_VALUES: Final = 10_000
"""Values (of mappings and lists, at all depths) that one object may have. The biggest spec seen has 900; reading and
merging ten thousand takes some milliseconds."""

MOST_LEVELS: Final = 64
"""Levels of mappings and lists in one object, itself included. Rules and encoders that call themselves once for each
level are safe; a template of a pod has 20. `kube.calls.depth` cuts an object at more."""

LONG_TEXT: Final = 16_384
"""Characters from which on rules about an object leave the event loop: each takes up to a microsecond in the slowest
rule, so less than that stays below 20 ms."""

_is_text: Final[Callable[[Any], bool]] = partial(type.__instancecheck__, str)
"""`isinstance(…, str)` without a call of Python code."""

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

    levels: int = 0
    """Of mappings and lists in each other; `MOST_LEVELS` + 1 for a document that has more."""

    @property
    def too_many(self) -> bool:
        """Whether there are more values than may be."""
        return self.values > MOST_VALUES

    @property
    def too_deep(self) -> bool:
        """Whether they are nested more deeply than may be."""
        return self.levels > MOST_LEVELS


def weigh(document: object, *, most: int = MOST_VALUES) -> Weight:
    """Weigh a document as JSON has it.

    Parameters
    ----------
    document
        Mappings, lists and scalars.
    most
        Counting ends beyond so many values.
    """
    values = characters = levels = 0
    level: list[object] = [document]
    while level and values <= most and levels <= MOST_LEVELS:
        below: list[object] = []
        for one in level:
            values += 1
            if isinstance(one, str):
                characters += len(one)
                continue
            if not isinstance(one, (dict, list)):
                continue
            if len(one) > most:
                return Weight(most + 1, characters, levels)
            if isinstance(one, dict):
                characters += sum(map(len, one))
            inner = list(one.values()) if isinstance(one, dict) else one
            # Most values are texts; they are counted all at once, thousands of names in a list too.
            texts = list(filter(_is_text, inner))
            values += len(texts)
            characters += sum(map(len, texts))
            below.extend(filterfalse(_is_text, inner))
            if values > most:
                break
        levels += any(isinstance(one, (dict, list)) for one in level)
        level = below
    return Weight(min(values, most + 1), characters, levels)


def is_small(document: object) -> bool:
    """Whether a document is so short that it may be weighed and read at once.

    Weighing thousands of values takes milliseconds. Writing them as JSON does not: it is done in C, and two thousand
    users of an account tree are written in a fraction of one.
    """
    return len(json.dumps(document, default=str)) <= LONG_TEXT


async def run_in_thread(key: threads.Key, rules: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run rules about an object in a thread: all they read must be frozen, or nobody else's meanwhile.

    Parameters
    ----------
    key
        Namespace of the object, then what identifies the rules and it: they run once at a time.

    Raises
    ------
    slinky_operator.runtime.threads.Busy
        Too many objects wait.
    """
    return await threads.RULES.run(key, rules, *args, **kwargs)


def rest_after(seconds: float) -> float:
    """How long an object rests after rules about it have taken so many seconds, so that they keep to their `SHARE`."""
    return min(LONGEST_REST, seconds / SHARE)
