"""Tasks of an array: what a job asks for, and sets as slurmctld (``0-3,7``) or slurmdbd (``0x8f``) writes them.

Made for what is noted in the status of a job object, so texts of any length make no more than `MOST` ranges, whatever
the numbers in them are; tasks for which there is no room are counted by arithmetic. A set is written in as many
characters as there is room for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from slurm_client.notation.arrays import LARGEST, ArrayTasks


@dataclass(frozen=True, slots=True)
class Array:
    """Tasks of an array.

    Parameters
    ----------
    tasks
        Their indices, as ranges.
    count
        How many there are.
    """

    tasks: ArrayTasks
    count: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Read the value of ``--array``; empty words between commas count for nothing, as for slurmctld.

        Raises
        ------
        ValueError
            For what slurmctld would refuse whatever its ``MaxArraySize`` is: no list of indices, an index above
            4000000. Also for more than 65536 characters.
        """
        tasks = ArrayTasks.parse(",".join(filter(str.strip, text.split(","))))
        return cls(tasks, len(tasks))


MOST: Final = 16_384
"""Ranges that are kept of what is read; a step makes a range of each task."""

LONGEST: Final = 65_536
"""Characters that are read of one list of tasks; a mask has more, and is read in one step."""

_WIDTHS: Final = 16
"""Texts of `LONGEST` characters that may be read of one job."""

_MASK: Final = re.compile(rf"0x([0-9a-fA-F]{{1,{LARGEST // 4 + 1}}})")
_SPAN: Final = re.compile(r"\s*([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?\s*")


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Tasks of an array.

    Parameters
    ----------
    spans
        First and last task of each range, in ascending order; no two of them touch.
    is_cut
        Whether the text that was read names others too, which could not be read or kept.
    unlisted
        How many tasks of those are known by number only.
    """

    spans: tuple[tuple[int, int], ...] = ()
    is_cut: bool = False
    unlisted: int = 0

    @classmethod
    def read(cls, text: str) -> TaskSet:
        """Read a text such as ``0-3,7``, ``1-9:2%3`` or ``0x8f``; what cannot be read is left out (`is_cut`)."""
        return Reader().read(text)

    @classmethod
    def of(cls, tasks: Iterable[int]) -> Self:
        """Make a set of single tasks."""
        return cls(_merged((task, task) for task in tasks))

    def __len__(self) -> int:
        return self.unlisted + sum(last - first + 1 for first, last in self.spans)

    def __or__(self, other: TaskSet) -> TaskSet:
        return union((self, other))

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
        return TaskSet(tuple(left), self.is_cut, self.unlisted)

    def written(self, longest: int) -> str:
        """Write it in this many characters at most; ranges for which there is no room are left out."""
        text = ""
        for first, last in self.spans:
            word = f"{',' if text else ''}{first}" + (f"-{last}" if last > first else "")
            if len(text) + len(word) > longest:
                break
            text += word
        return text


class Reader:
    """Reads the texts of one job, with room for all of them together.

    Parameters
    ----------
    ranges, characters
        How many ranges are kept, and how many characters are read.
    """

    def __init__(self, ranges: int = MOST, characters: int = _WIDTHS * LONGEST) -> None:
        self._ranges = ranges
        self._characters = characters

    def read(self, text: str) -> TaskSet:
        """Read one text; see `TaskSet.read`."""
        longest = min(self._characters, LONGEST)
        self._characters = max(0, self._characters - len(text))
        if text.startswith("0x"):
            mask = _MASK.fullmatch(text) if len(text) <= longest * _WIDTHS else None
            found = TaskSet(is_cut=True) if mask is None else _masked(mask[1], self._ranges)
        else:
            found = _listed(text, longest, self._ranges)
        self._ranges -= len(found.spans)
        return found


def _masked(digits: str, room: int) -> TaskSet:
    number = int(digits, 16)
    bits = bin(number)[:1:-1]
    runs = itertools.islice(re.finditer("1+", bits), room)
    spans = tuple((run.start(), run.end() - 1) for run in runs)
    unlisted = number.bit_count() - sum(last - first + 1 for first, last in spans)
    return TaskSet(spans, unlisted > 0, unlisted)


def _listed(text: str, longest: int, room: int) -> TaskSet:
    spans: list[tuple[int, int]] = []
    is_cut, unlisted = len(text) > longest, 0
    for word in text[:longest].partition("%")[0].strip("[] ").split(",") if text else ():
        match = _SPAN.fullmatch(word)
        tasks = range(int(match[1]), int(match[2] or match[1]) + 1, max(1, int(match[3] or 1))) if match else range(0)
        if not tasks or tasks[-1] > LARGEST:
            is_cut = True
            continue
        size = 1 if tasks.step == 1 else len(tasks)
        if len(spans) + size > room:
            is_cut = True
            unlisted += len(tasks)
            continue
        spans += [(tasks[0], tasks[-1])] if size == 1 else [(task, task) for task in tasks]
    return TaskSet(_merged(spans), is_cut, unlisted)


def union(sets: Iterable[TaskSet]) -> TaskSet:
    """All tasks of several sets; those of which only a number is known are taken for different ones."""
    given = tuple(sets)
    spans = _merged(span for one in given for span in one.spans)
    return TaskSet(spans, any(one.is_cut for one in given), sum(one.unlisted for one in given))


def _merged(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)
