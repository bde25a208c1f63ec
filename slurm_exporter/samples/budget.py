"""Labels with a budget: the largest by value keep their own sample, the rest share one.

Names of users, accounts, licenses and reasons come from outside. Without a bound, a typing error in a submission
script would cost a series forever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OTHERS: Final = "(others)"
"""Label of what is beyond the budget; Slurm allows no parentheses in names."""


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
