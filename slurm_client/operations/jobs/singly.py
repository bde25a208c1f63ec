"""
Jobs read one by one: what is left to do where a list of all jobs is larger than an answer may be.

No data parser can filter jobs, and a user decides how long the record of a job is: a dependency may have 128 KiB. The
states of all jobs are short. So these are asked for, and then the records, a few at a time; of each, texts that serve
people alone are dropped as it comes. There is a complete list in the end, or an error: a record that is listed and not
shown is one.

That takes minutes where there are many, and jobs start meanwhile. So the states are asked for again, and what has
changed is read again, until a round was short: then the list is about as old as one that comes in one answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from slurm_client import errors
from slurm_client.models.job import Job
from slurm_client.slices import sliced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from slurm_client.models.job import JobState, JobStateEntry

__all__ = ["SHORT_ROUND", "Singly"]

_AT_A_TIME = 4
_SECONDS = 240.0
"""For all of them; slurmrestd shows about a hundred a second on a busy machine."""

SHORT_ROUND = 1.0
"""Seconds of a round after which no other one follows."""

_AGAIN = 100
"""Known jobs that have not ended, of those whose state is as it was, that are read again each time."""

_A_JOB = 2048
"""Bytes that a record takes beside its texts."""

_AN_ITEM = 128
_FIELDS = tuple(each.name for each in fields(Job))


class Singly:
    """
    Reads jobs one by one.

    Parameters
    ----------
    states
        Asks for the states of all jobs.
    parts
        Asks for all records of a number: those of an array, of a heterogeneous job, or one.
    room
        Bytes that all records may take.
    seconds
        For all of them.
    short
        Seconds of a round after which no other one follows.
    """

    def __init__(
        self,
        states: Callable[[], Awaitable[Iterable[JobStateEntry]]],
        parts: Callable[[int], Awaitable[Iterable[Job]]],
        room: int,
        *,
        seconds: float = _SECONDS,
        short: float = SHORT_ROUND,
    ) -> None:
        self._states = states
        self._parts = parts
        self._room = room
        self._seconds = seconds
        self._short = short
        self._turn = 0

    async def read(
        self, wanted: Callable[[JobState], bool], known: Mapping[str, Job] = MappingProxyType({})
    ) -> tuple[Job, ...]:
        """
        Return the jobs whose state is wanted.

        Parameters
        ----------
        known
            Jobs by number that were read so before: one that has ended, or waits or runs as it did, is not read again
            each time.

        Raises
        ------
        TooLarge
            If they take more than there is room for, or the records of one number alone do.
        Timeout
            If they were not all read in time.
        DecodeError
            If a job is listed, and not shown.
        """
        found = _Found(self._room)
        pending: deque[int] = deque()
        try:
            async with asyncio.timeout(self._seconds):
                first = await self._listed(wanted)
                pending.extend(await self._to_read(first, known, found))
                listed: Mapping[int, _Listed] | None = first
                while listed is not None:
                    listed = await self._round(pending, found, listed, wanted)
        except TimeoutError as error:
            raise errors.Timeout(
                f"the list of all jobs is too large, and one by one {len(found.jobs)} jobs were read within "
                f"{self._seconds:g} s, and {len(pending)} were not"
            ) from error
        return tuple([job async for job in sliced(found.jobs.values()) if wanted(job.state)])

    async def _listed(self, wanted: Callable[[JobState], bool]) -> dict[int, _Listed]:
        """Return the numbers to ask for, each with what the list of states has of it."""
        listed: dict[int, _Listed] = {}
        async for entry in sliced(await self._states()):
            if wanted(entry.state):
                before = listed.get(entry.number)
                several = before is not None or entry.record is None
                digest = hash((entry.id, entry.state)) ^ (before.digest if before is not None else 0)
                listed[entry.number] = _Listed(None if several else entry.state, digest)
        return listed

    async def _round(
        self,
        pending: deque[int],
        found: _Found,
        listed: Mapping[int, _Listed],
        wanted: Callable[[JobState], bool],
    ) -> Mapping[int, _Listed] | None:
        """Read what is pending; returns the later list of states if some have changed meanwhile, which are pending."""
        began = asyncio.get_running_loop().time()
        gone = await self._read_all(pending, found)
        is_short = asyncio.get_running_loop().time() - began <= self._short
        if is_short and not gone:
            return None
        later = await self._listed(wanted)
        _check(gone, later, found)
        if is_short:
            return None
        pending.extend(sorted([number async for number, entry in sliced(later.items()) if listed.get(number) != entry]))
        found.read = set()
        return later if pending else None

    async def _to_read(self, listed: Mapping[int, _Listed], known: Mapping[str, Job], found: _Found) -> list[int]:
        """Return the numbers that must be read, and take over what is known of the others."""
        numbers: list[int] = []
        same: list[Job] = []
        async for number, entry in sliced(listed.items()):
            job, state = known.get(str(number)), entry.state
            if job is None or state is None or job.state != state or job.array_tasks:
                numbers.append(number)
            else:
                same.append(job)
        # A job that waits or runs may be changed: all of them have their turn.
        alive = [job.id for job in same if not job.is_finished]
        first = self._turn % len(alive) if alive else 0
        self._turn = first + _AGAIN
        again = {*alive[first : first + _AGAIN], *alive[: max(0, first + _AGAIN - len(alive))]}
        async for job in sliced(same):
            if job.id not in again:
                found.take(job)
        # The number of an array comes before those of its tasks, and shows all of them.
        return sorted([*numbers, *again])

    async def _read_all(self, pending: deque[int], found: _Found) -> set[int]:
        """Read these numbers; returns those that are gone."""
        gone: set[int] = set()

        async def work() -> None:
            while pending:
                number = pending.popleft()
                if number in found.read:
                    continue
                try:
                    parts = await self._parts(number)
                except errors.NotFound:
                    gone.add(number)
                    continue
                except errors.TooLarge as error:
                    error.message = f"job {number}: {error.message}"
                    raise
                for job in parts:
                    found.take(_short(job))

        workers = [asyncio.create_task(work()) for _ in range(min(_AT_A_TIME, len(pending)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return gone


@dataclass(frozen=True, slots=True)
class _Listed:
    """What a list of states has of a number."""

    state: JobState | None
    """``None`` where several tasks have the number."""

    digest: int
    """Differs where a state does, of any of them."""


def _check(gone: set[int], later: Mapping[int, _Listed], found: _Found) -> None:
    """Make sure that jobs that were not shown are not listed any more either."""
    for number in sorted(gone - found.read):
        # What an earlier round has shown of it is older than its state.
        if (entry := later.get(number)) is not None:
            raise errors.DecodeError(
                f"job {number} is listed{f' as {entry.state.base}' if entry.state else ''} and not shown: the list of "
                "jobs is not complete"
            )


class _Found:
    """Jobs by number, within a room."""

    def __init__(self, room: int) -> None:
        self.jobs: dict[int, Job] = {}
        self.read: set[int] = set()
        """Those of this round."""
        self._room = room
        self._weight = 0

    def take(self, job: Job) -> None:
        """Take a job, or raise TooLarge."""
        before = self.jobs.get(job.id)
        self._weight += _weight(job) - (_weight(before) if before is not None else 0)
        if self._weight > self._room:
            raise errors.TooLarge(f"{len(self.jobs)} jobs, read one by one, take more than {self._room} bytes")
        self.jobs[job.id] = job
        self.read.add(job.id)


def _short(job: Job) -> Job:
    """Return a job without the long texts of its user that decide nothing."""
    return replace(
        job,
        dependency="",
        comment="",
        admin_comment="",
        system_comment="",
        command="",
        submit_line="",
        standard_input="",
        standard_output="",
        standard_error="",
        container="",
        container_id="",
    )


def _weight(job: Job) -> int:
    """Return about how many bytes a job takes."""
    texts = sum(len(value) for name in _FIELDS if isinstance(value := getattr(job, name), str))
    return _A_JOB + texts + _AN_ITEM * (len(job.nodes) + len(job.gres_detail))
