"""Calls about jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from slurm_client import errors
from slurm_client.answers import ListOf
from slurm_client.decode import objects
from slurm_client.operations.base import Listing, Operations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slurm_client.models import Job, JobStateEntry

__all__ = ["JobOperations"]

_JOBS = ListOf("jobs", objects.job)
_STATES = ListOf("jobs", objects.job_state)


class JobOperations(Operations):
    """List, get, submit, update, signal, cancel and requeue jobs."""

    @overload
    async def jobs(self, *, timeout: float | None = None) -> Listing[Job]: ...

    @overload
    async def jobs(self, update_time: int | None, *, timeout: float | None = None) -> Listing[Job] | None: ...

    async def jobs(self, update_time: int | None = None, *, timeout: float | None = None) -> Listing[Job] | None:
        """
        Return all jobs slurmctld remembers, finished ones included for ``MinJobAge`` seconds.

        Parameters
        ----------
        update_time
            ``last_update`` of an earlier list; the answer is then ``None`` if nothing has changed since. (slurmrestd
            says that by an empty list with a warning, which must not pass for "no jobs".)
        """
        found = await self._list("get_jobs", _JOBS, update_time=update_time, timeout=timeout)
        if found is not None and update_time is not None and not found.items and found.warnings:
            return None
        return found

    async def job(self, job_id: int, *, timeout: float | None = None) -> Job:
        """Return one job; NotFound if slurmctld does not know it (any more)."""
        found: Job = await self._one("get_job", _JOBS, f"job {job_id}", path={"job_id": int(job_id)}, timeout=timeout)
        return found

    async def job_states(self, *, timeout: float | None = None) -> Listing[JobStateEntry]:
        """Return ids and states of all jobs: a much smaller answer than :meth:`jobs`."""
        found = await self._list("get_jobs_state", _STATES, timeout=timeout)
        return found if found is not None else Listing(())

    async def jobs_on_nodes(self, names: Iterable[str], *, timeout: float | None = None) -> tuple[Job, ...]:
        """
        Return the jobs that hold any of these nodes: running, suspended, completing or staging out.

        A node without such a job may lose its slurmd. One list is asked for, whatever the number of names.
        """
        wanted = set(names)
        if not wanted:
            return ()
        return tuple(
            job for job in await self.jobs(timeout=timeout) if job.holds_nodes and not wanted.isdisjoint(job.nodes)
        )

    async def cancel_job(self, job_id: int, *, signal: str | None = None, timeout: float | None = None) -> None:
        """
        End a job, or send it a signal; no error if it has ended already, NotFound if it is unknown.

        Parameters
        ----------
        signal
            Name or number, e.g. ``TERM``; without one the job is cancelled.
        """
        try:
            await self._session.call(
                "delete_job", path={"job_id": int(job_id)}, query={"signal": signal}, timeout=timeout
            )
        except errors.SlurmError as error:
            if error.number != _ALREADY_DONE:
                raise


_ALREADY_DONE = 2021
