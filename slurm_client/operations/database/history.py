"""Calls about jobs as slurmdbd keeps them."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from slurm_client import errors
from slurm_client.connection.answers import ListOf
from slurm_client.decode.database import history as decode
from slurm_client.operations.database.base import DatabaseOperations
from slurm_client.operations.database.filters import JobFilters, chosen, queries, since_1970
from slurm_client.operations.jobs import resolve
from slurm_client.slices import sliced

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from slurm_client.models import JobId, JobRecord
    from slurm_client.operations.arguments import JobRef

__all__ = ["RECORDS", "HistoryOperations"]

RECORDS = ListOf("jobs", decode.job, in_slices=decode.job_in_slices)
"""The jobs in an answer of slurmdbd."""

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)

Key: TypeAlias = tuple[str, int, datetime | None]
"""What names a record: cluster, id, and time of submission or requeue."""


class HistoryOperations(DatabaseOperations):
    """Job history: one job, those of a time, and all of a longer time."""

    async def job(self, job_id: JobRef, *, timeout: float | None = None) -> JobRecord:
        """
        Return the last run of one job, task or component; NotFound if slurmdbd has none.

        slurmctld tells slurmdbd some seconds later; of an array whose tasks wait, there is one record with its number.
        """
        wanted = resolve.job_id(job_id)
        fitting = [record for record in await self._runs(wanted, timeout) if _is_it(wanted, record)]
        if not fitting:
            raise errors.NotFound(f"slurmdbd has no job {wanted}")
        return max(fitting, key=_submitted)

    async def job_records(self, job_id: JobRef, *, timeout: float | None = None) -> tuple[JobRecord, ...]:
        """
        Return every record of a job: all runs, all tasks of its array, all its components; empty if there is none.

        For ``7_3`` these are the runs of that task, for ``7+1`` those of that component.
        """
        wanted = resolve.job_id(job_id)
        found = await self._runs(wanted, timeout)
        if wanted.task is None and wanted.component is None:
            return tuple(found)
        return tuple(record for record in found if _is_it(wanted, record))

    async def jobs(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        steps: bool = True,
        timeout: float | None = None,
        **filters: Unpack[JobFilters],
    ) -> tuple[JobRecord, ...]:
        """
        Return the jobs of a time that is not too long: those that were eligible, ran or ended in it.

        A job that was requeued is there once for each run. Jobs that were held or not eligible all the time are left
        out by Slurm. For a long time use :meth:`history`.

        Parameters
        ----------
        since, until
            Both in whole seconds; until now when absent.
        steps
            Whether to read their steps too, which are most of the answer.
        timeout
            Seconds for each request; there is one for each pair of user and state.
        filters
            See :class:`~slurm_client.operations.database.filters.JobFilters`.

        Raises
        ------
        TooLarge
            If the answer does not fit into the client's room for answers.
        """
        last = _until(since, until)
        found = await self._window(since, last, queries(filters), steps=steps, timeout=timeout)
        matches = chosen(filters)
        return tuple([record async for record in sliced(found.values()) if matches(record)])

    async def history(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        step: timedelta | None = None,
        steps: bool = True,
        timeout: float | None = None,
        **filters: Unpack[JobFilters],
    ) -> AsyncIterator[JobRecord]:
        """
        Give all jobs of any length of time, from window to window: each run of each job once.

        Of a job that is in several windows the record is given as it was read with the first of them. One window is
        in memory at a time, and of the jobs that had not ended at its end a few bytes each. A window whose answer is
        too large for the client or for slurmdbd is asked for in halves.

        Parameters
        ----------
        since, until, steps, filters
            As for :meth:`jobs`.
        step
            Length of a window, in whole seconds; a day when absent.
        timeout
            Seconds for each request.

        Raises
        ------
        TooLarge
            If the jobs of a single second are too many.
        """
        begin, last = _seconds(since), _until(since, until)
        asked, matches = queries(filters), chosen(filters)
        known: dict[Key, datetime | None] = {}
        pending = deque(_windows(begin, last, step or _DAY))
        while pending:
            first, end = pending.popleft()
            try:
                # One second twice: for some states, Slurm finds no job that begins and ends on the border of two times.
                since_then = max(begin, first - _SECOND)
                found = await self._window(since_then, end, asked, steps=steps, timeout=timeout)
            except errors.SlurmError as error:
                if end - first <= _SECOND or not _is_too_much(error):
                    raise
                middle = first + timedelta(seconds=(end - first) // _SECOND // 2)
                pending.extendleft([(middle, end), (first, middle)])
                continue
            # One that ended before the next window is asked for is in no later window.
            next_since = end - _SECOND
            alive = {key: ended for key, ended in known.items() if ended is None or ended >= next_since}
            async for key, record in sliced(found.items()):
                if record.end_time is None or record.end_time >= next_since:
                    alive[key] = record.end_time
                if key not in known and matches(record):
                    yield record
            known = alive

    async def _window(
        self, since: datetime, until: datetime, asked: list[dict[str, Any]], *, steps: bool, timeout: float | None
    ) -> dict[Key, JobRecord]:
        """Return the records of a time in Slurm's order, user by user and state by state, each once."""
        found: dict[Key, JobRecord] = {}
        every = {
            "start_time": since_1970(since),
            "end_time": since_1970(until),
            "show_duplicates": "true",
            # Else jobs would seem to begin and end with the window.
            "disable_truncate_usage_time": "true",
            "skip_steps": None if steps else "true",
        }
        for query in asked:
            records = await self._records("db_get_jobs", RECORDS, query={**query, **every}, timeout=timeout)
            async for record in sliced(records):
                found.setdefault(_key(record), record)
        return found

    async def _runs(self, wanted: JobId, timeout: float | None) -> list[JobRecord]:
        """Return what Slurm has under an address: it takes the number of a task, and none of a component."""
        address = str(wanted) if wanted.component is None else str(wanted.id)
        return list(await self._records("db_get_job", RECORDS, path={"job_id": address}, timeout=timeout))


def _is_it(wanted: JobId, record: JobRecord) -> bool:
    if wanted.component is not None:
        return (record.het_job_id, record.het_job_offset) == (wanted.id, wanted.component)
    if wanted.task is not None:
        return (record.array_job_id, record.array_task_id) == (wanted.id, wanted.task)
    return record.id == wanted.id


def _key(record: JobRecord) -> Key:
    return record.cluster, record.id, record.submit_time


_LONG_AGO = datetime.fromtimestamp(0, UTC)


def _submitted(record: JobRecord) -> tuple[datetime, str, int]:
    return record.submit_time or _LONG_AGO, record.cluster, record.id


def _seconds(when: datetime) -> datetime:
    """Return the whole second: Slurm has no parts of it."""
    return when.astimezone(UTC).replace(microsecond=0)


def _until(since: datetime, until: datetime | None) -> datetime:
    """
    Return the end of the time asked for.

    Raises
    ------
    InvalidArgument
        If it is not after its beginning.
    """
    last = _seconds(until if until is not None else datetime.now(UTC) + _SECOND)
    if last <= _seconds(since):
        raise errors.InvalidArgument(
            f"until ({last.isoformat()}) is not after since ({since.isoformat()}); nothing was sent", field="until"
        )
    return last


def _windows(since: datetime, until: datetime, step: timedelta) -> list[tuple[datetime, datetime]]:
    length = max(_SECOND, _SECOND * (step // _SECOND))
    count = -((since - until) // length)
    return [(since + length * index, min(until, since + length * (index + 1))) for index in range(count)]


def _is_too_much(error: errors.SlurmError) -> bool:
    """Whether a shorter time may be answered."""
    return isinstance(error, errors.TooLarge) or error.number in _TOO_MUCH


_TOO_MUCH = frozenset({7006, 7007})
"""Of slurmdbd: the result is too large, the time asked for too long."""
