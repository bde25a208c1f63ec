"""
Tasks of an array, as ``sbatch --array`` takes and slurmctld shows them: ``1-10:2%3``.

What becomes of the tasks is left to :mod:`slurm_client.operations`.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 4_000_000
"""Largest index that any ``MaxArraySize`` of Slurm allows."""

LONGEST = 65_536
"""Most characters of an expression."""

_SPAN = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")
_EXPRESSION = re.compile(r"\[?([^%\[\]]*)\]?(?:%([0-9]{1,10}))?\]?")


@dataclass(frozen=True, slots=True)
class ArrayTasks:
    """
    Indices of the tasks of an array.

    ``len(tasks)`` counts them, ``in`` asks for one, and iterating gives each once, in ascending order.

    Parameters
    ----------
    spans
        Ranges of indices, each with its step.
    at_once
        How many may run at a time; ``None`` for all of them.

    Examples
    --------
    >>> tasks = ArrayTasks.parse("1-10:2%3")
    >>> len(tasks), tasks.at_once, list(tasks)
    (5, 3, [1, 3, 5, 7, 9])
    """

    spans: tuple[range, ...]
    at_once: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Read an expression such as ``0-3,7``, ``1-10:2%3`` or ``[5-9]``.

        Raises
        ------
        ValueError
            For any other text: also for ranges that run backwards, a step of 0, more than :data:`LARGEST` tasks, and
            for a list that slurmctld has cut (``5-9,11,...``).
        """
        match = _EXPRESSION.fullmatch(text.strip()) if len(text) <= LONGEST else None
        if match is None or text.count("[") != text.count("]"):
            raise ValueError(f"{text[:40]!r} names no tasks of an array, such as 0-3,7 or 1-10:2%3")
        spans = tuple(_span(word) for word in match[1].split(","))
        if sum(map(len, spans)) > LARGEST + 1:
            raise ValueError(f"{text[:40]!r} are more than {LARGEST + 1} tasks")
        return cls(spans, int(match[2] or 0) or None)

    def __len__(self) -> int:
        return len(self._indices()) if self._overlap() else sum(map(len, self.spans))

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._indices()))

    def __contains__(self, index: object) -> bool:
        return any(index in span for span in self.spans)

    def _indices(self) -> set[int]:
        return set(itertools.chain.from_iterable(self.spans))

    def _overlap(self) -> bool:
        """Whether an index might be in two of the ranges."""
        ordered = sorted(self.spans, key=lambda span: span.start)
        return any(later.start <= earlier[-1] for earlier, later in itertools.pairwise(ordered))

    @override
    def __str__(self) -> str:
        listed = ",".join(_written(span) for span in self.spans)
        return f"{listed}%{self.at_once}" if self.at_once else listed


def _span(word: str) -> range:
    match = _SPAN.fullmatch(word.strip())
    if match is None:
        raise ValueError(f"{word[:40]!r} is no range of tasks of an array, such as 0-3 or 1-10:2")
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    if last < first or last > LARGEST or step < 1:
        raise ValueError(f"{word[:40]!r} is no range of tasks: indices ascend to {LARGEST} at most, by at least 1")
    return range(first, last + 1, step)


def _written(span: range) -> str:
    if len(span) == 1:
        return str(span.start)
    return f"{span.start}-{span.stop - 1}" + (f":{span.step}" if span.step > 1 else "")
