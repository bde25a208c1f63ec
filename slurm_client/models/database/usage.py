"""
What the tasks of a step used, resource by resource, in a form that thousands of steps can have.

Steps have a dozen usages each, and few programs look at them. As objects they would be most of what the history of a
cluster takes, and of what Python's garbage collector has to go through while everything else waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, overload

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["StepUsage", "Usages"]

Row: TypeAlias = tuple[str, str, int | None, int | None, int | None, str, int | None]
"""The fields of a usage, in their order."""


@dataclass(frozen=True, slots=True)
class StepUsage:
    """
    What the tasks of a step used of one resource, as the daemons sampled it.

    Parameters
    ----------
    type, name
        Of the resource: ``cpu``, ``mem``, ``vmem``, ``energy``, ``fs`` and ``disk``, ``gres`` and ``gpumem`` …
    average, total
        For a task, and of all tasks together: CPU time in milliseconds, memory and files in bytes, energy in joules.
    max, max_node, max_task
        Of the task that used most, the node it ran on, and its number; ``None`` and empty where nothing was sampled.
    """

    type: str
    name: str = ""
    average: int | None = None
    total: int | None = None
    max: int | None = None
    max_node: str = ""
    max_task: int | None = None


class Usages(Sequence[StepUsage]):
    """
    Usages of one step, each of which is made when it is looked at; equal to the tuple of them.

    Parameters
    ----------
    rows
        Their fields. Plain tuples of plain values are left alone by the garbage collector.
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    @override
    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> StepUsage: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[StepUsage, ...]: ...

    @override
    def __getitem__(self, index: int | slice) -> StepUsage | tuple[StepUsage, ...]:
        if isinstance(index, slice):
            return tuple(StepUsage(*row) for row in self._rows[index])
        return StepUsage(*self._rows[index])

    @override
    def __eq__(self, other: object) -> bool:
        if isinstance(other, Usages):
            return self._rows == other._rows
        return self[:] == other if isinstance(other, tuple) else NotImplemented

    @override
    def __hash__(self) -> int:
        # That of the tuple of them.
        return hash(self._rows)

    @override
    def __repr__(self) -> str:
        return repr(self[:])
