"""Decoders of states and ends of the parts of jobs: tasks of arrays, components of heterogeneous jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from slurm_client.decode.read import text, words
from slurm_client.models.entry import Entry
from slurm_client.models.job import JobEnd, JobState
from slurm_client.notation.jobid import JobId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from slurm_client.models.database.history import JobRecord
    from slurm_client.models.job import Job

_ID = re.compile(r"[0-9]{1,10}(_[0-9]{1,10}|\+[0-9]{1,10})?")


@dataclass(frozen=True, slots=True)
class Part(Entry):
    """
    State of one part of a job, out of ``jobs/state``.

    Parameters
    ----------
    suffix
        ``_3`` of a task, ``+1`` of a component, empty for a job. What stands before it is no help: slurmrestd writes
        the number of the part's own record there, and that of the array for a task that waits (24.11 and 26.05).
    state
        Base state and flags.
    """

    suffix: str
    state: JobState


def part(raw: Mapping[str, Any]) -> Part:
    """Decode one entry of ``jobs/state``."""
    match = _ID.fullmatch(text(raw.get("job_id")))
    return Part((match[1] or "") if match else "", JobState.from_words(words(raw.get("state"))))


def ends_of(records: Iterable[JobRecord]) -> dict[JobId, JobEnd]:
    """Return the end of each part out of its records in slurmdbd: of several runs, that of the last."""
    runs = sorted(records, key=lambda record: record.submit_time or _LONG_AGO)
    return {end.id: end for end in map(_end_of, runs)}


def _end_of(record: JobRecord) -> JobEnd:
    if record.array_job_id is not None and record.array_task_id is not None:
        found = _made(record.array_job_id, f"_{record.array_task_id}")
    elif record.het_job_id is not None and record.het_job_offset is not None:
        found = _made(record.het_job_id, f"+{record.het_job_offset}")
    else:
        found = _made(record.id, "")
    return JobEnd(id=found, state=record.state, exit_code=record.exit_code)


def _made(job: int, suffix: str) -> JobId:
    """Return a name; that of a job that cannot be for a number that no job has."""
    try:
        return part_of(job, suffix)
    except ValueError:
        return JobId(_NO_JOB)


_LONG_AGO = datetime.fromtimestamp(0, UTC)
_NO_JOB = 0xFFFF_FFF0


def part_of(job: int, suffix: str) -> JobId:
    """Return the name of a part by what follows the number of its job."""
    index = int(suffix[1:]) if suffix else None
    return JobId(
        job, task=index if suffix.startswith("_") else None, component=index if suffix.startswith("+") else None
    )


def name_of(record: Job) -> JobId:
    """Return the name of what a record of slurmctld is about."""
    if record.array_job_id is not None and record.array_task_id is not None:
        return JobId(record.array_job_id, task=record.array_task_id)
    if record.het_job_id is not None and record.het_job_offset is not None:
        return JobId(record.het_job_id, component=record.het_job_offset)
    return JobId(record.id)
