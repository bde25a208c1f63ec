"""The array that a job asks for: read once, where the job is translated, and counted without a list of its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from slurm_client.notation.arrays import ArrayTasks


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
