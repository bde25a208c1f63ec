"""
Tasks of an array, as ``sbatch --array`` takes and slurmctld shows them: ``1-10:2%3``.

What becomes of the tasks is left to :mod:`slurm_client.operations`.
"""

from __future__ import annotations

import heapq
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LARGEST = 4_000_000
"""Largest index that any ``MaxArraySize`` of Slurm allows."""

LONGEST = 65_536
"""Most characters of an expression."""

MOST_RANGES = 16_384
"""Most ranges of an expression; so many different indices are longer than :data:`LONGEST` characters."""

_SPAN = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")
_EXPRESSION = re.compile(r"\[?([^%\[\]]*)\]?(?:%([0-9]{1,10}))?\]?")


@dataclass(frozen=True, slots=True)
class ArrayTasks:
    """
    Indices of the tasks of an array.

    ``len(tasks)`` counts them, ``in`` asks for one, and iterating gives each once, in ascending order. No list of the
    indices is made for any of these: ``0-4000000`` takes no more memory than ``0``.

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
            For any other text: also for ranges that run backwards, a step of 0, more than :data:`LARGEST` tasks, more
            than :data:`MOST_RANGES` ranges, and for a list that slurmctld has cut (``5-9,11,...``).
        """
        match = _EXPRESSION.fullmatch(text.strip()) if len(text) <= LONGEST else None
        if match is None or text.count("[") != text.count("]"):
            raise ValueError(f"{text[:40]!r} names no tasks of an array, such as 0-3,7 or 1-10:2%3")
        if match[1].count(",") >= MOST_RANGES:
            raise ValueError(f"{text[:40]!r} are more than {MOST_RANGES} ranges of tasks of an array")
        spans = tuple(_span(word) for word in match[1].split(","))
        if sum(map(len, spans)) > LARGEST + 1:
            raise ValueError(f"{text[:40]!r} are more than {LARGEST + 1} tasks")
        return cls(spans, int(match[2] or 0) or None)

    @property
    def first(self) -> int:
        """The lowest index."""
        return min(span.start for span in self.spans)

    def __len__(self) -> int:
        return _count(sorted(self.spans, key=lambda span: span.start))

    def __iter__(self) -> Iterator[int]:
        return (index for index, _ in itertools.groupby(heapq.merge(*self.spans)))

    def __contains__(self, index: object) -> bool:
        return any(index in span for span in self.spans)

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


def _count(ordered: Sequence[range]) -> int:
    """Count the indices in ranges that are ordered by their first: each once, however many ranges it is in."""
    count, place = 0, 0
    while place < len(ordered):
        # Ranges that overlap are counted together.
        end, last = place + 1, ordered[place][-1]
        while end < len(ordered) and ordered[end].start <= last:
            last = max(last, ordered[end][-1])
            end += 1
        count += _count_overlapping(ordered[place:end], last)
        place = end
    return count


def _count_overlapping(spans: Sequence[range], last: int) -> int:
    first = spans[0].start
    if all(span.step == 1 for span in spans):
        return last - first + 1
    if len(spans) == 1:
        return len(spans[0])
    # One byte for each index, 4 MB at most; no more than `LARGEST` are written, some by each range.
    named = bytearray(last - first + 1)
    for span in spans:
        named[span.start - first : span[-1] - first + 1 : span.step] = b"\1" * len(span)
    return named.count(1)


def _written(span: range) -> str:
    if len(span) == 1:
        return str(span.start)
    return f"{span.start}-{span.stop - 1}" + (f":{span.step}" if span.step > 1 else "")
