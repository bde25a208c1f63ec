"""
The few value types that all canonical models share: states, and the marker for "no limit".

Slurm says a state as one base word and any number of flag words, and a number as set, unset or infinite. What the words
mean for a node or a job is left to the modules of those models.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, ClassVar, Self, TypeAlias

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable


class Infinite(enum.Enum):
    """
    Type of :data:`INFINITE`; an enum so that ``is`` narrows the type.

    It is greater than every number and every length of time, and equal to itself alone, so limits can be compared and
    sorted: ``job.time_limit > timedelta(days=1)``.
    """

    INFINITE = "INFINITE"

    def __lt__(self, other: float | timedelta | Infinite) -> bool:
        return False if _is_limit(other) else NotImplemented

    def __le__(self, other: float | timedelta | Infinite) -> bool:
        return other is self if _is_limit(other) else NotImplemented

    def __gt__(self, other: float | timedelta | Infinite) -> bool:
        return other is not self if _is_limit(other) else NotImplemented

    def __ge__(self, other: float | timedelta | Infinite) -> bool:
        return True if _is_limit(other) else NotImplemented

    @override
    def __repr__(self) -> str:
        return "INFINITE"


def _is_limit(value: object) -> bool:
    """Whether a value is a number, a length of time or no limit: ``None`` is none of them."""
    return isinstance(value, int | float | timedelta | Infinite)


INFINITE = Infinite.INFINITE
"""Slurm's "no limit", as opposed to ``None``: not set."""


@dataclass(frozen=True, slots=True)
class OrZero:
    """Marks a length of time that may be zero."""

    wanted: str = "a timedelta of zero or more"


Delay: TypeAlias = Annotated[timedelta, OrZero()]
"""A length of time of which zero means something, such as no grace; other lengths are limits, and must be above it."""


@dataclass(frozen=True, slots=True)
class State:
    """
    A state as Slurm shows it: what the object is doing, and flags beside it.

    Parameters
    ----------
    base
        The base word, e.g. ``IDLE``. A word this library does not know is kept as it came; ``UNKNOWN`` when the
        answer held no base word at all.
    flags
        All other words, unknown ones included.
    """

    base: str = "UNKNOWN"
    flags: frozenset[str] = frozenset()

    BASES: ClassVar[frozenset[str]] = frozenset()
    FLAGS: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Self:
        """
        Tell base and flags apart.

        The first known base word wins; without one, the first word that is not a known flag is taken to be a base
        word of a newer Slurm.
        """
        rest = [word.upper() for word in words if word]
        base = next((word for word in rest if word in cls.BASES), None)
        if base is None:
            base = next((word for word in rest if word not in cls.FLAGS), None)
        return cls(base or "UNKNOWN", frozenset(word for word in rest if word != base))

    def __contains__(self, word: object) -> bool:
        return word == self.base or word in self.flags

    @override
    def __str__(self) -> str:
        return "+".join([self.base, *sorted(self.flags)])
