"""A submission and a cancellation are seen soon, and cost no list of all jobs where that is long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_operator.slurmjob.ended_jobs import EndedJobs
from slinky_operator.slurmjob.polling.queues import Clients, Entry, Queue, Queues
from slinky_operator.slurmjob.polling.young_jobs import MANY, YoungJobs
from slurm_client.models import Job


class Watch:
    """Counts lists that are asked for at once."""

    def __init__(self, jobs: int) -> None:
        self.status: Any = SimpleNamespace(objects=jobs)
        self.lists = 0
        self.asked: list[str] = []

    def poke(self) -> None:
        self.lists += 1

    async def refresh(self, *keys: str) -> dict[str, Job | None]:
        self.asked += keys
        return dict.fromkeys(keys)


@pytest.fixture
async def following() -> AsyncIterator[asyncio.Task[Any]]:
    task: asyncio.Task[Any] = asyncio.create_task(asyncio.Event().wait())
    yield task
    _ = task.cancel()


def queues_over(watch: Watch, task: asyncio.Task[Any]) -> Queues:
    """The queues of one Cluster whose list is known."""
    entry = cast("Entry", SimpleNamespace(client=SimpleNamespace(job_watch=watch), closed=False))
    made = Queues(cast("Clients", {"uid": entry}), lambda _: True, cast("EndedJobs", None))
    made._queues["uid"] = Queue(entry, is_complete=True, young=YoungJobs(watch), task=task)
    return made


async def test_a_short_list_is_asked_for_after_each_submission(following: asyncio.Task[Any]) -> None:
    watch = Watch(MANY - 1)
    queues_over(watch, following).changed("uid", "team", 7)
    assert watch.lists == 1


async def test_where_the_list_is_long_the_new_job_is_asked_for_alone(following: asyncio.Task[Any]) -> None:
    watch = Watch(MANY)
    queues = queues_over(watch, following)
    queues.changed("uid", "team", 7)
    young = queues._queues["uid"].young
    assert young is not None
    assert young._task is not None
    await young._task
    assert (watch.lists, watch.asked) == (0, ["7"])


async def test_many_new_jobs_of_a_long_list_cost_no_list_each(following: asyncio.Task[Any]) -> None:
    watch = Watch(MANY)
    queues = queues_over(watch, following)
    for number in range(100):
        queues.changed("uid", "team", number)
    young = queues._queues["uid"].young
    assert young is not None
    young.stop()
    assert watch.lists == 0
