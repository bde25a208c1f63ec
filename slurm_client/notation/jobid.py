"""
Names of jobs: a whole job, one task of an array, or one component of a heterogeneous job.

What each of them stands for in a call is said by :mod:`slurm_client.operations.jobs.resolve`.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import Self, SupportsIndex, cast

from typing_extensions import override

_LARGEST = 0xFFFF_FFF0
"""Slurm counts in 32 bits and keeps the numbers above for itself."""

_TEXT = re.compile(r"(?P<id>[1-9][0-9]{0,9})(?:_(?P<task>0|[1-9][0-9]{0,9})|\+(?P<component>0|[1-9][0-9]{0,9}))?")


def _number(part: object, least: int) -> int:
    """Return a number of a job as ``int``, such as that of an enumeration or of numpy."""
    try:
        number = None if isinstance(part, bool) else int(operator.index(cast("SupportsIndex", part)))
    except TypeError:
        number = None
    if number is None or not least <= number <= _LARGEST:
        raise ValueError(f"{part!r:.40} is not a number of a job")
    return number


@dataclass(frozen=True, slots=True)
class JobId:
    """
    Name of a job, as Slurm's commands write it: ``7``, ``7_3`` or ``7+1``.

    Parameters
    ----------
    id
        Number of the job; of an array or a heterogeneous job, the number of the whole.
    task
        Index of one task of the array.
    component
        Offset of one component of the heterogeneous job.

    Raises
    ------
    ValueError
        For numbers that no job can have.
    """

    id: int
    task: int | None = None
    component: int | None = None

    def __post_init__(self) -> None:
        """Refuse what Slurm cannot count to, and a task of a component; any type of whole numbers becomes ``int``."""
        if self.task is not None and self.component is not None:
            raise ValueError("a job id names a task of an array or a component of a heterogeneous job, not both")
        for field, least in (("id", 1), ("task", 0), ("component", 0)):
            part = getattr(self, field)
            if part is not None or field == "id":
                object.__setattr__(self, field, _number(part, least))

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Read ``7``, ``7_3`` or ``7+1``, and nothing else: no blanks, signs, leading zeros, ranges or steps.

        Raises
        ------
        ValueError
            For any other text.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:40]!r} is not a job id such as 7, 7_3 or 7+1")
        task, component = match["task"], match["component"]
        return cls(int(match["id"]), None if task is None else int(task), None if component is None else int(component))

    @override
    def __str__(self) -> str:
        if self.task is not None:
            return f"{self.id}_{self.task}"
        return str(self.id) if self.component is None else f"{self.id}+{self.component}"
