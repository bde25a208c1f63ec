"""Asks each Cluster's Slurm for its partitions, beside the passes: a Slurm that lets calls hang delays none of them.

One question at a time for each Cluster, every `EVERY_S` seconds, and less often the more the answer has cost. Nodes are
polled once for all controllers (`slurm.connection.cluster_client`), and jobs are counted there whenever anybody lists
them: they are asked for here only where nobody has for `JOBS_EVERY_S`, and by the question that all planners share.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from slinky_operator.kube.cache.store import Key
from slinky_operator.slurm.jobs.query_budget import wait_after
from slurm_client.errors import SlurmError
from slurm_client.models import Job, Partition

logger = logging.getLogger(__name__)

EVERY_S: Final = 30.0
"""Seconds between two questions."""

AGAIN_S: Final = 5.0
"""Seconds until another question after one that has failed."""

JOBS_EVERY_S: Final = 90.0
"""Seconds without a list of jobs after which the shared one is asked for."""


class Client(Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    async def partitions(self) -> Iterable[Partition]:
        """All partitions."""
        ...


class Slurm(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    jobs_listed_at: float | None

    async def shared_jobs(self) -> Iterable[Job]:
        """Jobs, by an answer that all planners share."""
        ...

    @property
    def client(self) -> Client:
        """Its client."""
        ...


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """What Slurm has said last."""

    partitions: tuple[Partition, ...] | None = None
    """None before the first answer."""
    failure: str = ""
    """Why the last question came to nothing; empty if it did not."""
    due: float = 0.0
    """Monotonic seconds of the next question."""


class PartitionPoll:
    """The partitions of Clusters.

    Parameters
    ----------
    clock
        Monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers: dict[str, PartitionAnswer] = {}
        self._wanted: dict[str, tuple[Key, Slurm]] = {}
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._listed: dict[str, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._tell: Callable[[Key], None] = lambda _key: None

    def subscribe(self, tell: Callable[[Key], None]) -> None:
        """Call `tell` with the key of a Cluster after each question."""
        self._tell = tell

    def known(self, uid: str) -> PartitionAnswer:
        """What the Slurm of a Cluster has said last."""
        return self._answers.get(uid, PartitionAnswer())

    def ask(self, key: Key, uid: str, slurm: Slurm) -> float:
        """Let a Slurm be asked if it is time; returns the seconds until it is."""
        left = self.known(uid).due - self._clock()
        if left <= 0 and uid not in self._asked:
            self._wanted[uid] = key, slurm
            self._woken.set()
        return max(0.0, left)

    def forget(self, keeps: Iterable[str]) -> None:
        """Forget all Clusters but these, by uid."""
        for uid in self._answers.keys() - set(keeps):
            del self._answers[uid]
            for task in (self._asked.get(uid), self._listed.get(uid)):
                if task is not None:
                    _ = task.cancel()

    async def run(self) -> None:
        """Ask until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                _ = await self._woken.wait()
                self._woken.clear()
                for uid, (key, slurm) in self._wanted.items():
                    task = group.create_task(self._question(key, uid, slurm), name=f"partitions of {'/'.join(key)}")
                    self._asked[uid] = task
                    task.add_done_callback(partial(_ended, self._asked, uid))
                    if uid not in self._listed and self._lacks_jobs(slurm):
                        task = group.create_task(self._jobs(key, slurm), name=f"jobs of {'/'.join(key)}")
                        self._listed[uid] = task
                        task.add_done_callback(partial(_ended, self._listed, uid))
                self._wanted.clear()

    def _lacks_jobs(self, slurm: Slurm) -> bool:
        return slurm.jobs_listed_at is None or self._clock() - slurm.jobs_listed_at >= JOBS_EVERY_S

    async def _jobs(self, key: Key, slurm: Slurm) -> None:
        """Let the jobs be counted: a long list takes far longer than one of partitions, which does not wait for it."""
        try:
            _ = await slurm.shared_jobs()
        except SlurmError as error:
            logger.info("jobs of %s/%s cannot be counted by partition: %s", *key, error)
        except Exception:
            # A bug; the question is repeated.
            logger.exception("the question for jobs of %s/%s failed", *key)
        else:
            self._tell(key)

    async def _question(self, key: Key, uid: str, slurm: Slurm) -> None:
        began, before = self._clock(), self.known(uid)
        try:
            answer = PartitionAnswer(tuple(await slurm.client.partitions()))
            pause = EVERY_S
        except SlurmError as error:
            logger.info("partitions of %s/%s are not known: %s", *key, error)
            answer, pause = replace(before, failure=str(error)), AGAIN_S
        except Exception as error:
            # A bug; what is known stays, and the question is repeated.
            logger.exception("the question for partitions of %s/%s failed", *key)
            answer, pause = replace(before, failure=f"{type(error).__name__} in the operator"), EVERY_S
        now = self._clock()
        self._answers[uid] = replace(answer, due=now + max(pause, wait_after(now - began)))
        self._tell(key)


def _ended(tasks: dict[str, asyncio.Task[None]], uid: str, _: asyncio.Task[None]) -> None:
    tasks.pop(uid, None)
