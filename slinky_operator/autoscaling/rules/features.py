"""Whether the features of one node match a job's ``--constraint``, as far as that can be said of one node.

``&`` (or ``,``), ``|`` and parentheses are read, ``&`` before ``|`` as in an expression of Slurm without parentheses.
Counts (``[rack1*2&rack2*2]``) and alternatives for all nodes of a job (``[a|b]``) speak of several nodes together: they
are refused, and their jobs are not counted.

An expression is never multiplied out: ``(a|b)&(c|d)&…`` has as many alternatives as somebody likes. It is read once for
each text, and then for all nodes at a time: a set of kinds of nodes is a number with one bit for each kind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from slinky_operator.autoscaling.rules.effort import Effort

LONGEST: Final = 1000
"""Characters of an expression that is read."""

DEEPEST: Final = 20
"""Parentheses inside each other that are read."""

WORDS: Final = 8
"""Words of an expression that are read in one step."""

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
    return bool(_read(expression, dict.fromkeys(features, 1), 1, None))


class Constraints:
    """Which kinds of nodes match which expressions.

    Parameters
    ----------
    kinds
        The features of each kind of node that there is.
    effort
        What reading may cost.
    """

    def __init__(self, kinds: Iterable[frozenset[str]], effort: Effort | None = None) -> None:
        self._effort = effort
        self._bits = {features: 1 << place for place, features in enumerate(dict.fromkeys(kinds))}
        self._all = (1 << len(self._bits)) - 1
        self._having: dict[str, int] = {}
        for features, bit in self._bits.items():
            for word in features:
                self._having[word] = self._having.get(word, 0) | bit
        self._known: dict[str, int | NotReadable] = {}

    def bit(self, features: frozenset[str]) -> int:
        """The kind of a node with these features."""
        return self._bits[features]

    def kinds(self, expression: str) -> int:
        """The kinds that match an expression.

        Raises
        ------
        NotReadable
            The expression is none that can be decided for one node.
        """
        known = self._known.get(expression)
        if known is None:
            try:
                known = _read(expression, self._having, self._all, self._effort)
            except NotReadable as error:
                # The frames that an error holds hold the words.
                known = NotReadable(*error.args)
            self._known[expression] = known
        if isinstance(known, NotReadable):
            raise NotReadable(*known.args)
        return known


def _read(expression: str, having: Mapping[str, int], everything: int, effort: Effort | None) -> int:
    if not expression.strip():
        return everything
    if len(expression) > LONGEST:
        raise NotReadable(f"a constraint of {len(expression)} characters")
    if _TOKEN.sub("", expression).strip():
        raise NotReadable(f"the constraint {expression[:60]!r}")
    words = _TOKEN.findall(expression)
    if effort is not None:
        effort.spend(1 + len(words) // WORDS)
    found, end = _either(iter([*words, ""]), having, expression, 0)
    if end:
        raise NotReadable(f"the constraint {expression[:60]!r}")
    return found


def _either(words: Iterator[str], having: Mapping[str, int], whole: str, depth: int) -> tuple[int, str]:
    """Read alternatives up to a closing parenthesis or the end; returns that too."""
    if depth > DEEPEST:
        raise NotReadable(f"the constraint {whole[:60]!r}")
    found = 0
    while True:
        all_of, end = _all(words, having, whole, depth)
        found |= all_of
        if end != "|":
            return found, end


def _all(words: Iterator[str], having: Mapping[str, int], whole: str, depth: int) -> tuple[int, str]:
    """Read what is joined by ``&``; returns the kinds that have it all, and the word after it."""
    found = -1
    while True:
        word = next(words, "")
        if word == "(":
            inner, end = _either(words, having, whole, depth + 1)
            if end != ")":
                raise NotReadable(f"the constraint {whole[:60]!r}")
        elif word in {"", "&", "|", ",", ")"}:
            raise NotReadable(f"the constraint {whole[:60]!r}")
        else:
            inner = having.get(word, 0)
        found &= inner
        after = next(words, "")
        if after not in {"&", ","}:
            if after not in {"", "|", ")"}:
                raise NotReadable(f"the constraint {whole[:60]!r}")
            return found, after
