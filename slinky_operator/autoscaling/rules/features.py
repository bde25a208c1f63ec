"""Whether the features of one node match a job's ``--constraint``, as far as that can be said of one node.

``&`` (or ``,``), ``|`` and parentheses are read, ``&`` before ``|`` as in an expression of Slurm without parentheses.
Counts (``[rack1*2&rack2*2]``) and alternatives for all nodes of a job (``[a|b]``) speak of several nodes together: they
are refused, and their jobs are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final

LONGEST: Final = 1000
"""Characters of an expression that is read."""

DEEPEST: Final = 20
"""Parentheses inside each other that are read."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9_.:=+/-]+|[&|,()]")


class NotReadable(ValueError):
    """An expression that cannot be decided for one node at a time."""


def matches(expression: str, features: Collection[str]) -> bool:
    """Whether a node with these features matches.

    Raises
    ------
    NotReadable
        The expression is none that can be decided for one node.
    """
    return any(all(word in features for word in words) for words in alternatives(expression))


@lru_cache(maxsize=4096)
def alternatives(expression: str) -> tuple[frozenset[str], ...]:
    """The expression as alternatives, each the features that it needs all of; raises `NotReadable`."""
    if not expression.strip():
        return (frozenset(),)
    if len(expression) > LONGEST:
        raise NotReadable(f"a constraint of {len(expression)} characters")
    rest = _TOKEN.sub("", expression).strip()
    if rest:
        raise NotReadable(f"the constraint {expression[:60]!r}")
    words = iter([*_TOKEN.findall(expression), ""])
    found, end = _either(words, expression, 0)
    if end:
        raise NotReadable(f"the constraint {expression[:60]!r}")
    return tuple(found)


def _either(words: Iterator[str], whole: str, depth: int) -> tuple[list[frozenset[str]], str]:
    """Read alternatives up to a closing parenthesis or the end; returns that too."""
    if depth > DEEPEST:
        raise NotReadable(f"the constraint {whole[:60]!r}")
    found: list[frozenset[str]] = []
    while True:
        all_of, end = _all(words, whole, depth)
        found += all_of
        if end != "|":
            return found, end


def _all(words: Iterator[str], whole: str, depth: int) -> tuple[list[frozenset[str]], str]:
    """Read what is joined by ``&``; returns it as alternatives, and the word after it."""
    found = [frozenset[str]()]
    while True:
        word = next(words, "")
        if word == "(":
            inner, end = _either(words, whole, depth + 1)
            if end != ")":
                raise NotReadable(f"the constraint {whole[:60]!r}")
        elif word in {"", "&", "|", ",", ")"}:
            raise NotReadable(f"the constraint {whole[:60]!r}")
        else:
            inner = [frozenset({word})]
        found = [one | other for one in found for other in inner]
        if len(found) > LONGEST:
            raise NotReadable(f"the constraint {whole[:60]!r}")
        after = next(words, "")
        if after not in {"&", ","}:
            if after not in {"", "|", ")"}:
                raise NotReadable(f"the constraint {whole[:60]!r}")
            return found, after
