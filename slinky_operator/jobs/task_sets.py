"""Sets of tasks of an array, as slurmctld writes them (``0-3,7``), or slurmdbd (``0x8f``).

Made for what is noted in the status of a job object, so a text of any length makes no more than `MOST` ranges, and a
set is written in as many characters as there is room for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

MOST: Final = 100_000
"""Ranges that are read of one text; a step makes a range of each task."""

_MASK: Final = re.compile(r"0x([0-9a-fA-F]{1,2000000})")
_SPAN: Final = re.compile(r"\s*([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?\s*")


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Tasks of an array.

    Parameters
    ----------
    spans
        First and last task of each range, in ascending order; no two of them touch.
    is_cut
        Whether the text that was read names others too, which could not be read.
    """

    spans: tuple[tuple[int, int], ...] = ()
    is_cut: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a text such as ``0-3,7``, ``1-9:2%3`` or ``0x8f``; what cannot be read is left out (`is_cut`)."""
        mask = _MASK.fullmatch(text)
        if mask is not None:
            bits = bin(int(mask[1], 16))[:1:-1]
            return cls(tuple((one.start(), one.end() - 1) for one in re.finditer("1+", bits)))
        spans: list[tuple[int, int]] = []
        is_cut = False
        for word in text.partition("%")[0].strip("[] ").split(",") if text else ():
            match = _SPAN.fullmatch(word)
            if match is None:
                is_cut = True
                continue
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            made = [(first, last)] if step <= 1 else [(task, task) for task in range(first, last + 1, step)[: MOST + 1]]
            if first > last or len(spans) + len(made) > MOST:
                is_cut = True
                continue
            spans += made
        return cls(_merged(spans), is_cut)

    @classmethod
    def of(cls, tasks: Iterable[int]) -> Self:
        """Make a set of single tasks."""
        return cls(_merged((task, task) for task in tasks))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.spans)

    def __or__(self, other: TaskSet) -> TaskSet:
        return TaskSet(_merged((*self.spans, *other.spans)), self.is_cut or other.is_cut)

    def __sub__(self, other: TaskSet) -> TaskSet:
        left: list[tuple[int, int]] = []
        at = 0
        for start, last in self.spans:
            first = start
            while at < len(other.spans) and other.spans[at][1] < first:
                at += 1
            taken = at
            while taken < len(other.spans) and other.spans[taken][0] <= last:
                if other.spans[taken][0] > first:
                    left.append((first, other.spans[taken][0] - 1))
                first = other.spans[taken][1] + 1
                taken += 1
            if first <= last:
                left.append((first, last))
        return TaskSet(tuple(left), self.is_cut)

    def written(self, longest: int) -> str:
        """Write it in this many characters at most; ranges for which there is no room are left out."""
        text = ""
        for first, last in self.spans:
            word = f"{',' if text else ''}{first}" + (f"-{last}" if last > first else "")
            if len(text) + len(word) > longest:
                break
            text += word
        return text


def union(sets: Iterable[TaskSet]) -> TaskSet:
    """All tasks of several sets."""
    given = tuple(sets)
    return TaskSet(_merged(span for one in given for span in one.spans), any(one.is_cut for one in given))


def _merged(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)
