"""
Waiting for the end of a job; tasks of arrays one by one.

How a job is waited for: slurmrestd is asked for the states of its parts, which costs slurmctld little. What has ended
is noted when it is seen, since slurmctld forgets the early tasks of an array while the late ones run. A part that is
gone before its end was seen is looked up in slurmdbd.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode import endings
from slurm_client.models.job import FinishedJob, JobEnd
from slurm_client.notation.arrays import ArrayTasks
from slurm_client.notation.jobid import JobId
from slurm_client.operations.database.history import RECORDS
from slurm_client.operations.jobs import resolve
from slurm_client.operations.jobs.changes import JobOperations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.models import Job, JobState
    from slurm_client.operations.arguments import JobRef

__all__ = ["WaitingOperations"]

PATIENCE = 300.0
"""Seconds for which slurmrestd or slurmctld may be away while a job is waited for."""

MOST_TASKS = 65_536
"""Tasks that are counted singly: each is a job of some hundred bytes."""

_SLOWER = 1.5
"""How much longer each pause is than the one before, while nothing changes."""

_PARTS = ListOf("jobs", endings.part)

_STARTS_AGAIN = frozenset({"REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
"""Flags of a job that has not ended, since it is to run again."""


class WaitingOperations(JobOperations):
    """Wait for jobs."""

    async def wait_job(
        self,
        job: JobRef,
        *,
        timeout: float | None = None,
        first_pause: float = 0.5,
        longest_pause: float = 10.0,
        call_timeout: float | None = None,
    ) -> FinishedJob:
        """
        Wait until a job has ended, with all tasks of an array and all components of a heterogeneous job.

        A job that is requeued has not ended. slurmrestd and slurmctld may be away for five minutes meanwhile.

        Parameters
        ----------
        job
            A job or its id: ``7`` is the whole of it, ``7_3`` one task, ``7+1`` one component.
        timeout
            Seconds to wait for the job, unlike in other calls; without end when absent.
        first_pause, longest_pause
            Seconds between two looks, the first and the longest: each pause is half as long again as the one before,
            until the state of a part changes. Longer than ``MinJobAge`` the end of a job may be missed.
        call_timeout
            Seconds for each single call; the client's when absent.

        Raises
        ------
        NotFinished
            After ``timeout``; the job goes on.
        EndUnknown
            If slurmctld does not know the job, or a part of it, any more, and slurmdbd neither.
        """
        _positive("first_pause", first_pause)
        _positive("longest_pause", longest_pause)
        if timeout is not None:
            _positive("timeout", timeout)
        wanted = resolve.job_id(job)
        progress = _Progress(wanted)
        now = time.monotonic()
        ends_at = None if timeout is None else now + timeout
        answered, pause = now, first_pause
        while True:
            try:
                states = await self._states_of(wanted, call_timeout)
                answered = time.monotonic()
                if progress.take(states):
                    pause = first_pause
                if progress.is_over:
                    return await self._finished(progress, call_timeout)
            except errors.ClientClosed:
                raise
            except errors.Unreachable:
                if time.monotonic() - answered > PATIENCE:
                    raise
            left = longest_pause if ends_at is None else ends_at - time.monotonic()
            if left <= 0:
                parts = progress.open_parts
                raise errors.NotFinished(
                    f"job {wanted} has not ended within {timeout:g} s, and goes on: {_some(parts)}",
                    parts=parts,
                )
            await asyncio.sleep(min(pause, longest_pause, left))
            pause = min(pause * _SLOWER, longest_pause)

    async def _states_of(self, wanted: JobId, timeout: float | None) -> dict[str, JobState]:
        """Return the states of the parts that slurmctld knows, by what follows the number of the job."""
        listed = await self._list("get_jobs_state", _PARTS, query={"job_id": str(wanted)}, timeout=timeout)
        parts: Iterable[endings.Part] = listed.items if listed is not None else ()
        # Asked for one task that waits, slurmrestd lists all that wait with it.
        whole = wanted.task is None and wanted.component is None
        own = str(wanted).removeprefix(str(wanted.id))
        return {part.suffix: part.state for part in parts if whole or part.suffix == own}

    async def _finished(self, progress: _Progress, timeout: float | None) -> FinishedJob:
        """Return the end of a job whose parts have all ended or are gone."""
        wanted = progress.wanted
        try:
            records = await self.job_parts(wanted.id, details=False, timeout=timeout)
        except (errors.NotFound, errors.InvalidRequest, errors.ServerError):
            records = ()
        for record in records:
            progress.describe(record)
        silent: errors.SlurmError | None = None
        if progress.missing:
            try:
                for end in await self._past(wanted, timeout):
                    progress.note(end)
            except errors.ClientClosed:
                raise
            except errors.SlurmError as error:
                silent = error
        missing = progress.missing
        if missing:
            why = "slurmdbd does not know of it" if silent is None else f"slurmdbd cannot be asked: {silent.message}"
            raise errors.EndUnknown(
                f"the end of job {wanted} cannot be told: slurmctld has forgotten {_some(missing)}, "
                f"as it does with what ended MinJobAge ago, and {why}",
                parts=missing,
            ) from silent
        return FinishedJob(id=wanted, ends=progress.ends)

    async def _past(self, wanted: JobId, timeout: float | None) -> tuple[JobEnd, ...]:
        """Return the ends that slurmdbd knows of a job or its parts."""
        listed = await self._list("db_get_job", RECORDS, path={"job_id": str(wanted.id)}, timeout=timeout)
        ends = endings.ends_of(listed.items if listed is not None else ())
        return tuple(end for end in ends.values() if end.id.id == wanted.id)

    async def job_tasks(self, job_id: JobRef, *, timeout: float | None = None) -> tuple[Job, ...]:
        """
        Return the tasks of an array, each as a job of its own and in their order; of any other job, its parts.

        Those that wait together have one record, which is repeated for each of them with its ``array_task_id``. Where
        slurmctld has cut their list (``5-9,11,...``), or where they are more than :data:`MOST_TASKS`, they stay one
        record with ``array_tasks``.
        """
        tasks: list[Job] = []
        for record in await self.job_parts(job_id, timeout=timeout):
            try:
                waiting = ArrayTasks.parse(record.array_tasks) if record.array_task_id is None else ()
            except ValueError:
                waiting = ()
            if len(waiting) + len(tasks) > MOST_TASKS:
                waiting = ()
            split = [replace(record, array_task_id=index, array_tasks="") for index in waiting]
            tasks += split or [record]
        return tuple(sorted(tasks, key=lambda task: (task.array_task_id is None, task.array_task_id or 0, task.id)))


class _Progress:
    """What is known of the parts of a job so far: which there are, and how those have ended that have."""

    def __init__(self, wanted: JobId) -> None:
        self.wanted = wanted
        self._states: dict[str, JobState] = {}
        self._ends: dict[JobId, JobEnd] = {}
        self._parts: set[JobId] = set()
        self._gone: set[JobId] = set()

    def take(self, states: dict[str, JobState]) -> bool:
        """Note the states of the parts; whether any of them has changed."""
        changed = states != self._states
        self._states = states
        named = {self._named(suffix): state for suffix, state in states.items()}
        self._parts |= named.keys()
        self._gone = self._parts - named.keys()
        for part, state in named.items():
            if state.is_finished and state.flags.isdisjoint(_STARTS_AGAIN):
                self._ends[part] = JobEnd(id=part, state=state)
            else:
                self._ends.pop(part, None)
        return changed

    def _named(self, suffix: str) -> JobId:
        return endings.part_of(self.wanted.id, suffix)

    @property
    def is_over(self) -> bool:
        """Whether no part is left that has not ended: those that are gone have."""
        return not self.open_parts

    @property
    def open_parts(self) -> tuple[str, ...]:
        """Parts that slurmctld knows and that have not ended."""
        return _sorted(self._parts - self._ends.keys() - self._gone)

    @property
    def missing(self) -> tuple[str, ...]:
        """Parts whose end is not known; the job itself where it was never seen."""
        return _sorted((self._parts or {self.wanted}) - self._ends.keys()) if not self._answered else ()

    @property
    def _answered(self) -> bool:
        """Whether slurmdbd has told the end of a job that was never seen here."""
        return not self._parts and bool(self._ends)

    @property
    def ends(self) -> tuple[JobEnd, ...]:
        """All ends, in the order of the parts."""
        return tuple(self._ends[part] for part in sorted(self._ends, key=_order))

    def describe(self, record: Job) -> None:
        """Add the exit code that a record has of a part whose end is known."""
        part = endings.name_of(record)
        end = self._ends.get(part)
        if end is not None and record.state.base == end.state.base:
            self._ends[part] = replace(end, exit_code=record.exit_code)

    def note(self, end: JobEnd) -> None:
        """Add what slurmdbd says of a part that is gone, or of the parts of a job that was never seen."""
        wanted = end.id == self.wanted or (self.wanted.task is None and self.wanted.component is None)
        if wanted and end.id not in self._ends and end.state.is_finished and (not self._parts or end.id in self._parts):
            self._ends[end.id] = end


def _order(part: JobId) -> tuple[int, int, int]:
    return (part.id, part.task or 0, part.component or 0)


def _sorted(parts: Iterable[JobId]) -> tuple[str, ...]:
    return tuple(str(part) for part in sorted(parts, key=_order))


def _some(parts: tuple[str, ...], most: int = 5) -> str:
    """Name some of the parts of a job, and count the others."""
    return ", ".join(parts[:most]) + (f" and {len(parts) - most} more" if len(parts) > most else "")


def _positive(field: str, value: float) -> None:
    if value <= 0:
        raise errors.InvalidArgument(f"{field} is {value!r}, not above 0; nothing was sent", field=field)
