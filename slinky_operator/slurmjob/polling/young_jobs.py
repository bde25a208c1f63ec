"""Looks at jobs that were just submitted or cancelled, one by one, where the list of all jobs takes long.

slurmctld lists all jobs or one. With 10,000 in the queue a list takes some ten seconds, most of it for the jobs of one
namespace, and each job that starts meanwhile would be seen to run as late. So a new one is asked for by itself a few
times: most that find room start at once. What waits for longer is left to the list. One that was cancelled, held or
released is asked for in the same way, and once if it does not wait any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from itertools import islice
from typing import Final, Protocol

from slurm_client.errors import SlurmError
from slurm_client.models import Job
from slurm_client.watch import WatchStatus

logger = logging.getLogger(__name__)

MANY: Final = 1000
"""Jobs of a Cluster from which on a list takes long: some 0.7 s for as many."""

PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds until a job is asked for, and until it is asked for again while it waits."""

AT_ONCE: Final = 8
"""Jobs that are asked for together, of each namespace in its turn."""

MOST: Final = 32
"""Jobs of a namespace that are looked at; further ones are left to the list."""

TICK_S: Final = 0.25
"""Seconds from one such round to the next."""


class Watch(Protocol):
    """What is used of `SlurmClient.job_watch`."""

    @property
    def status(self) -> WatchStatus:
        """How many jobs it knows, among other things."""
        ...

    async def refresh(self, *keys: str) -> dict[str, Job | None]:
        """Ask for jobs singly; readers get what has changed."""
        ...


class YoungJobs:
    """Jobs of one Cluster that were just submitted.

    Parameters
    ----------
    watch
        The list of its jobs.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._of: dict[str, deque[tuple[float, int, int]]] = {}
        """When each is due, its number and how often it was asked for, by namespace."""
        self._task: asyncio.Task[None] | None = None

    def add(self, namespace: str, number: int) -> bool:
        """Look at a job soon; False where the list is short, which is asked for at once instead."""
        if self._watch.status.objects < MANY:
            return False
        own = self._of.setdefault(namespace, deque())
        if len(own) >= MOST:
            return True
        loop = asyncio.get_running_loop()
        own.append((loop.time() + PAUSES_S[0], number, 0))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run(), name="look at jobs that were just submitted")
        return True

    def stop(self) -> None:
        """Look no more."""
        self._of.clear()
        if self._task is not None:
            _ = self._task.cancel()

    async def _run(self) -> None:
        while self._of:
            await asyncio.sleep(TICK_S)
            # The namespaces that are not reached in this round are the first ones of the next.
            for namespace in list(islice(self._of, AT_ONCE)):
                own = self._of.pop(namespace)
                await self._look(own)
                if own:
                    self._of[namespace] = own

    async def _look(self, own: deque[tuple[float, int, int]]) -> None:
        """Ask for the first job of a namespace that is due."""
        now = asyncio.get_running_loop().time()
        due = min(own)
        if due[0] > now:
            return
        own.remove(due)
        _, number, tries = due
        try:
            found = (await self._watch.refresh(str(number))).get(str(number))
        except SlurmError as error:
            logger.debug("job %s is left to the list: %s", number, error)
            return
        if found is not None and found.state.base == "PENDING" and tries + 1 < len(PAUSES_S):
            own.append((now + PAUSES_S[tries + 1], number, tries + 1))
