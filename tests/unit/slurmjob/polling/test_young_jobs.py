"""Jobs that were just submitted are looked at one by one where the list of all jobs takes long."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_operator.slurmjob.polling import young_jobs
from slinky_operator.slurmjob.polling.young_jobs import MANY, MOST, PAUSES_S, YoungJobs
from slurm_client import errors
from slurm_client.models import Job
from slurm_client.models.job import JobState


class Watch:
    """Remembers what it was asked for."""

    def __init__(self, objects: int = MANY) -> None:
        self.status: Any = SimpleNamespace(objects=objects)
        self.asked: list[int] = []
        self.states: dict[int, str] = {}
        self.fails = False

    async def refresh(self, *keys: str) -> dict[str, Job | None]:
        (key,) = keys
        self.asked.append(int(key))
        if self.fails:
            raise errors.Timeout("no answer")
        state = self.states.get(int(key))
        return {key: Job(id=int(key), state=JobState(state)) if state else None}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(young_jobs, "TICK_S", 0.0)
    monkeypatch.setattr(young_jobs, "PAUSES_S", (0.0,) * len(PAUSES_S))


async def over(young: YoungJobs) -> None:
    assert young._task is not None
    await young._task


async def test_one_that_waits_is_asked_for_a_few_times_and_one_that_runs_or_is_gone_once() -> None:
    watch = Watch()
    watch.states = {1: "PENDING", 2: "RUNNING"}
    young = YoungJobs(watch)
    for number in (1, 2, 3):
        young.add("a", number)
    await over(young)
    assert sorted(watch.asked) == [1] * len(PAUSES_S) + [2, 3]


async def test_a_short_list_is_enough() -> None:
    watch = Watch(MANY - 1)
    young = YoungJobs(watch)
    young.add("a", 1)
    assert young._task is None


async def test_a_namespace_with_many_is_not_before_others_and_has_a_bound() -> None:
    watch = Watch()
    watch.states = dict.fromkeys(range(10_000), "PENDING")
    young = YoungJobs(watch)
    for number in range(1000):
        young.add("a", number)
    young.add("b", 9999)
    await over(young)
    assert watch.asked.index(9999) <= 2
    assert len(watch.asked) == (MOST + 1) * len(PAUSES_S)


async def test_of_many_namespaces_each_has_its_turn() -> None:
    watch = Watch()
    young = YoungJobs(watch)
    for number in range(100):
        young.add(f"n-{number}", number)
    await over(young)
    assert watch.asked == list(range(100))


async def test_what_cannot_be_asked_for_is_left_to_the_list() -> None:
    watch = Watch()
    watch.fails = True
    young = YoungJobs(watch)
    young.add("a", 1)
    await over(young)
    assert watch.asked == [1]


async def test_a_stop_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(young_jobs, "TICK_S", 3600.0)
    young = YoungJobs(Watch())
    young.add("a", 1)
    young.stop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
