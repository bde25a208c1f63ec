"""Reads Slurm's records of a job, in a thread where they are many or long.

How many records a job has, and how long the lists of tasks in them are, is up to Slurm, which may be a tenant's own.
What the records say is left to `model.slurm_records.records`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from slinky_api.v1alpha1.slurmjob.kind import ArrayCounts, ArrayTasks
from slinky_operator.runtime import threads
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slurm_client.models import Job, JobRecord

MANY_RECORDS: Final = 1000
"""Records of one job from which on they are read in a thread."""

LONG: Final = 8192
"""Characters that name tasks in these records, from which on they are read in a thread."""

R = TypeVar("R", Job, JobRecord)


async def seen(
    key: threads.Key,
    rule: Callable[[Sequence[R], ArrayCounts | None, ArrayTasks | None], Seen | None],
    found: Sequence[R],
    counted: ArrayCounts | None,
    tasks: ArrayTasks | None,
) -> Seen | None:
    """Return what the records of one job say by a rule, `records.of_queue` or `records.of_history`.

    Parameters
    ----------
    key
        Namespace of the SlurmJob, and what identifies it and the rule.
    rule
        Reads them.
    found
        The records.
    counted, tasks
        What was counted of an array before, and which of its tasks had ended.
    """
    if len(found) > MANY_RECORDS or sum(len(one.array_tasks) for one in found) > LONG:
        return await threads.JOBS.run(key, rule, found, counted, tasks)
    return rule(found, counted, tasks)
