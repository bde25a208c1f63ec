"""Labels with a budget: the largest by value keep their own sample, the rest share one.

Names of users, accounts, licenses and reasons come from outside. Without a bound, a typing error in a submission
script would cost a series forever.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, Generic, TypeVar

N = TypeVar("N", bound=Hashable)

OTHERS: Final = "(others)"
"""Label of what is beyond the budget; Slurm allows no parentheses in names."""

LONGEST: Final = 128
"""Most characters of a label."""

PARTITIONS: Final = 1024
"""Most partitions with samples of their own, the first by name."""

KINDS: Final = 256
"""Most kinds of GRES, by name and type, with samples of their own."""

OTHER_KIND: Final = (OTHERS, "")
"""Name and type of generic resources beyond the budget."""


def cut(name: str) -> str:
    """A label that is not too long."""
    return name[:LONGEST]


def short(name: str) -> str:
    """A name that can be a label; longer ones share one."""
    return name if len(name) <= LONGEST else OTHERS


def own(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights of single names: what was counted under the others is one of them already."""
    return {name: value for name, value in weights.items() if name != OTHERS}


def added(values: Iterable[tuple[str, float]]) -> dict[tuple[str, ...], float]:
    """Values by label; what has the same label once it is cut is added up."""
    result: dict[tuple[str, ...], float] = {}
    for name, value in values:
        result[cut(name),] = result.get((cut(name),), 0) + value
    return result


def largest(weights: Mapping[str, float], budget: int) -> frozenset[str]:
    """Names with the largest weights, at most `budget`; equal ones by name, so that the choice is stable."""
    if len(weights) <= budget:
        return frozenset(weights)
    return frozenset(sorted(weights, key=lambda name: (-weights[name], name))[:budget])


def folded(
    values: Mapping[tuple[str, ...], float], kept: frozenset[str], place: int = 0
) -> dict[tuple[str, ...], float]:
    """Add up the values of all names that are not kept.

    Parameters
    ----------
    values
        Value by labels.
    kept
        Names that keep samples of their own.
    place
        Which label has the name.
    """
    result: dict[tuple[str, ...], float] = {}
    for labels, value in values.items():
        name = labels[place]
        key = labels if name in kept else (*labels[:place], OTHERS, *labels[place + 1 :])
        result[key] = result.get(key, 0.0) + value
    return result


class Kept:
    """Names that keep samples of their own for good, the largest first while there is room.

    For counters: one that moved into the others and back would look like a restart.

    Parameters
    ----------
    budget
        Most names.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self.names: frozenset[str] = frozenset()

    def choose(self, weights: Mapping[tuple[str, ...], float]) -> frozenset[str]:
        """Fill what room is left, by weights whose first label is the name."""
        room = self._budget - len(self.names)
        if room > 0:
            self.names |= largest(
                {labels[0]: value for labels, value in weights.items() if labels[0] not in self.names}, room
            )
        return self.names


class _First(Generic[N]):
    """What has samples of its own while it is counted: the first that fit; the rest share one.

    Unlike :func:`largest` it bounds also what is counted: one object may name a million others.

    Parameters
    ----------
    budget
        How many.
    rest
        What the rest is counted under.
    longest
        Characters of the longest label of one.
    """

    def __init__(self, budget: int, rest: N, longest: Callable[[N], int]) -> None:
        self._budget, self._rest, self._longest = budget, rest, longest
        self._own: set[N] = set()

    def of(self, one: N) -> N:
        """What it is counted under."""
        if one in self._own:
            return one
        if one == self._rest or len(self._own) >= self._budget or self._longest(one) > LONGEST:
            return self._rest
        self._own.add(one)
        return one


class Names(_First[str]):
    """Names, each a label.

    Parameters
    ----------
    budget
        Most names.
    first
        Names that come before all others.
    """

    def __init__(self, budget: int, first: Iterable[str] = ()) -> None:
        super().__init__(budget, OTHERS, len)
        for name in first:
            _ = self.of(name)

    def each(self, names: Sequence[str]) -> list[str]:
        """The labels of one object, each once."""
        rest = [OTHERS] if len(names) > self._budget else []
        return list(dict.fromkeys([*map(self.of, names[: self._budget]), *rest]))

    def listed(self, text: str) -> list[str]:
        """The same of names with commas between them."""
        names = text.split(",", self._budget)
        rest = [OTHERS] if len(names) > self._budget else []
        return list(dict.fromkeys([*(self.of(name) for name in names[: self._budget] if name), *rest]))


class Kinds(_First[tuple[str, str]]):
    """Kinds of GRES, by name and type.

    Parameters
    ----------
    budget
        Most kinds.
    """

    def __init__(self, budget: int) -> None:
        super().__init__(budget, OTHER_KIND, lambda kind: max(map(len, kind)))
