"""
Which records of jobs are meant by an id, and how a job is named to slurmrestd.

An address takes ``7``, ``7_3`` and ``7+1``, and means different things by them (measured with 24.11 and 26.05):

- Asked for a job, it returns all tasks of the array, also for ``7_3``, and for ``7+1`` the job whose number is 8.
- Told to change one, it takes the number of a record only, refuses ``7_3``, and changes 7 for ``7+1``.
- Told to end or requeue one, it does that to all tasks for ``7``, and to the one for ``7_3`` and ``7+1``.

So jobs are asked for by number, and the record that is meant is looked for here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from slurm_client import errors
from slurm_client.models import Job, JobId

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.operations.arguments import JobRef

_INDICES = re.compile(r"[0-9]{1,10}(-[0-9]{1,10}(:[0-9]{1,10})?)?(,[0-9]{1,10}(-[0-9]{1,10}(:[0-9]{1,10})?)?)*")


@dataclass(frozen=True, slots=True)
class JobNames:
    """
    What stands for a job when it is ended or requeued.

    Parameters
    ----------
    id
        The job, task or component.
    waiting
        Indices of the tasks of an array that wait together; empty where the id says it all.
    """

    id: JobId
    waiting: str = ""

    @override
    def __str__(self) -> str:
        return f"{self.id}_[{self.waiting}]" if self.waiting else str(self.id)


def job_id(job: JobRef) -> JobId:
    """
    Return the id of a job that is to be read or changed.

    Raises
    ------
    InvalidArgument
        For what no job is called.
    """
    if isinstance(job, JobId):
        return job
    if isinstance(job, Job):
        return JobId(job.id) if job.array_task_id is None else JobId(job.array_job_id or job.id, job.array_task_id)
    try:
        return JobId.parse(job) if isinstance(job, str) else JobId(cast("int", job))
    except ValueError as error:
        raise errors.InvalidArgument(f"{error}; nothing was sent", field="job_id") from error


def names(job: JobRef) -> JobNames:
    """
    Return what stands for a job, and for no other, when it is ended or requeued.

    Raises
    ------
    InvalidArgument
        For what no job is called, and for tasks that wait together whose list Slurm has cut.
    """
    if isinstance(job, Job) and job.array_task_id is None and job.array_tasks:
        # The record has the number of the array, which would mean the tasks that run as well.
        waiting = job.array_tasks.partition("%")[0]
        if not _INDICES.fullmatch(waiting):
            raise errors.InvalidArgument(
                f"the waiting tasks of job {job.id} are only known in part ({job.array_tasks[:40]}); "
                f"name them one by one, as {job.id}_<task>; nothing was sent",
                field="job",
            )
        return JobNames(JobId(job.id), waiting)
    return JobNames(job_id(job))


def pick(wanted: JobId, records: Iterable[Job]) -> Job | None:
    """
    Return the record that an id means, alone or with others that wait together.

    A task with a record of its own is that record: of the tasks that wait, Slurm may have cut the list.
    """
    fitting = [record for record in records if _is_it(wanted, record)]
    own = (record for record in fitting if record.array_task_id == wanted.task)
    return next(own, None) or next(iter(fitting), None)


def _is_it(wanted: JobId, record: Job) -> bool:
    if wanted.component is not None:
        return (record.het_job_id, record.het_job_offset) == (wanted.id, wanted.component)
    if wanted.task is None:
        return record.id == wanted.id
    if record.array_job_id != wanted.id:
        return False
    if record.array_task_id is not None:
        return record.array_task_id == wanted.task
    return _has(record.array_tasks, wanted.task)


def means(named: JobNames, record: Job) -> bool:
    """Whether a record is ended under a name: the number of an array, or of a heterogeneous job, means all of it."""
    if named.waiting:
        return record.id == named.id.id and record.array_task_id is None
    if named.id.task is None and named.id.component is None:
        return named.id.id in {record.id, record.array_job_id, record.het_job_id}
    return _is_it(named.id, record)


def part(wanted: JobId, record: Job) -> Job:
    """Return a record as that of the one task that is meant, if others wait with it."""
    if wanted.task is None or record.array_task_id is not None:
        return record
    return replace(record, array_task_id=wanted.task, array_tasks="")


def _has(array_tasks: str, task: int) -> bool:
    """Whether a list such as ``2-7,12-20:4%2`` has an index; one that Slurm has cut may have any."""
    indices = array_tasks.partition("%")[0]
    if not _INDICES.fullmatch(indices):
        return bool(indices)
    for each in indices.split(","):
        span, _, step = each.partition(":")
        first, _, last = span.partition("-")
        if int(first) <= task <= int(last or first) and (task - int(first)) % (int(step or 1) or 1) == 0:
            return True
    return False
