"""
Arrays as slurmctld keeps them: one record for the tasks that wait together, and one for each task that was started.

The record has the number of the array. A task that starts gets a number of its own, and the last one keeps that of the
array (measured with 24.11 and 26.05). Which tasks start is left to :mod:`slurm_client.testing.slurmctld.queue`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from slurm_client.notation.arrays import ArrayTasks
from slurm_client.testing.refusals import INVALID_ARRAY, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.models import Job

MAX_ARRAY_SIZE = 1001
"""``MaxArraySize``, the least index that is refused."""


def wished(text: str) -> ArrayTasks:
    """Return the tasks that a submission names; Refusal for what slurmctld does not take."""
    try:
        tasks = ArrayTasks.parse(text)
    except ValueError:
        raise Refusal(INVALID_ARRAY, "Batch job submission failed") from None
    if max(tasks) >= MAX_ARRAY_SIZE:
        raise Refusal(INVALID_ARRAY, "Batch job submission failed")
    return tasks


def waiting(job: Job) -> ArrayTasks | None:
    """Return the tasks that wait in this record; ``None`` if there are none, or the list was cut."""
    try:
        return ArrayTasks.parse(job.array_tasks) if job.array_tasks else None
    except ValueError:
        return None


def written(indices: Iterable[int], at_once: int | None) -> str:
    """Write indices as slurmctld shows those that wait: ``3,5-7%2``."""
    spans: list[list[int]] = []
    for index in sorted(indices):
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    listed = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
    return f"{listed}%{at_once}" if at_once else listed


def without(job: Job, index: int) -> Job:
    """Return the record of the tasks that still wait when one of them does not."""
    tasks = waiting(job)
    assert tasks is not None  # noqa: S101 - the caller has looked
    return replace(job, array_tasks=written(set(tasks) - {index}, tasks.at_once))


def state_names(job: Job) -> list[str]:
    """Return the names under which a record is in the list of states: each task for itself, by its record's number."""
    tasks = waiting(job)
    if tasks is not None:
        return [f"{job.id}_{index}" for index in tasks]
    return [str(job.id) if job.array_task_id is None else f"{job.id}_{job.array_task_id}"]
