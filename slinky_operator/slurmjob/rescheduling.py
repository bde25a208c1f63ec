"""Lets slurmctld look through its queue when a job without a script has ended and another one waits.

slurmctld looks when a job leaves a node with a slurmd. Of a job without a script nobody tells it: the next one waits
beside idle nodes until somebody submits a job, or for `sched_interval`, a minute (measured with 26.05.5, and by its
source). Any change of a job makes it look, within a second, also one that leaves the job as it is: so the first of
those that wait is given the name that it has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from slurm_client import JobSpec
from slurm_client.encode.jobs import EXTERNAL
from slurm_client.errors import SlurmError
from slurm_client.models import Job

logger = logging.getLogger(__name__)

PAUSE_S: Final = 1.0
"""Seconds from one such call to the next: slurmctld looks about once a second."""


class Client(Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    async def update_job(self, job_id: int, spec: JobSpec) -> None:
        """Change a job."""
        ...


class Rescheduling:
    """Watches jobs without a script of one Cluster.

    Parameters
    ----------
    client
        Of its Slurm.
    jobs
        Gives all jobs that SlurmJobs have there.
    pause_s
        Seconds from one call to the next.
    """

    def __init__(self, client: Client, jobs: Callable[[], Iterable[Job]], pause_s: float = PAUSE_S) -> None:
        self._client = client
        self._jobs = jobs
        self._pause_s = pause_s
        self._is_due = False
        self._task: asyncio.Task[None] | None = None

    def changed(self, old: Job | None, new: Job | None) -> None:
        """Note that a job has changed, or is gone."""
        if old is None or EXTERNAL not in old.flags or not old.holds_nodes:
            return
        if new is not None and new.holds_nodes:
            return
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="reschedule jobs without a script")

    def stop(self) -> None:
        """Call no more."""
        self._is_due = False
        if self._task is not None:
            _ = self._task.cancel()

    async def _run(self) -> None:
        while self._is_due:
            self._is_due = False
            first = min(filter(_waits, self._jobs()), key=lambda job: job.id, default=None)
            if first is None:
                return
            try:
                await self._client.update_job(first.id, JobSpec(name=first.name))
            except SlurmError as error:
                # It has started or ended meanwhile, or Slurm is away: it looks by itself later.
                logger.debug("slurmctld was not made to look through its queue: %s", error)
            await asyncio.sleep(self._pause_s)


def _waits(job: Job) -> bool:
    return EXTERNAL in job.flags and job.state.base == "PENDING" and not job.hold and bool(job.name)
