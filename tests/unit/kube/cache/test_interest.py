"""Nothing is kept of namespaces in which nothing can be ours, and a namespace is listed once something can."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from slinky_operator.kube.cache import informer as informer_module
from slinky_operator.kube.cache import interest as interest_module
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.informer import Handler, Informer
from slinky_operator.kube.cache.interest import Interest
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from tests.unit.kube.fake_api import FakeApi, client_of, eventually, running

NAMESPACE = "default"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(interest_module, "RETRY_S", 0.01)


@dataclass
class Owners:
    """A cache of owners."""

    synced: asyncio.Event = field(default_factory=asyncio.Event)
    handlers: list[Handler] = field(default_factory=list)

    def add_handler(self, handler: Handler) -> None:
        self.handlers.append(handler)

    def come(self, name: str = "slurm") -> None:
        for handler in self.handlers:
            handler(None, self._one(name))

    def go(self, name: str = "slurm") -> None:
        for handler in self.handlers:
            handler(self._one(name), None)

    def _one(self, name: str) -> Object:
        return {"metadata": {"name": name, "namespace": NAMESPACE}}


@dataclass
class World:
    fake: FakeApi
    owners: Owners
    informer: Informer
    told: list[str]

    def names(self) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.informer.store)


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with running() as fake, client_of(fake) as client:
        budget, owners, told = Budget(), Owners(), list[str]()
        interest = Interest([owners], budget)
        informer = Informer(client, PODS, budget=budget, interest=interest)
        informer.add_handler(lambda old, new: told.append((new or old or {})["metadata"]["name"]))
        tasks = [asyncio.create_task(one.run()) for one in (informer, interest)]
        try:
            yield World(fake, owners, informer, told)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def test_objects_of_a_namespace_without_owners_are_neither_kept_nor_told() -> None:
    async with world() as w:
        await w.fake.put("listed")
        # What owns is known before anything is listed.
        await asyncio.sleep(0)
        assert w.fake.count("list") == 0
        w.owners.synced.set()
        await w.informer.synced.wait()
        await w.fake.put("watched")
        await w.fake.remove("listed")
        await w.fake.bookmark()
        await eventually(lambda: w.fake.count("watch") == 1 and w.informer.heard_at is not None)
        assert (w.names(), w.told) == ([], [])
        assert w.informer.is_shown(NAMESPACE)


async def test_a_namespace_is_listed_when_its_first_owner_comes_and_not_shown_before() -> None:
    async with world() as w:
        w.owners.synced.set()
        await w.informer.synced.wait()
        await w.fake.put("early")
        w.fake.list_faults.append(500)
        w.owners.come()
        assert not w.informer.is_shown(NAMESPACE)
        await eventually(lambda: w.informer.is_shown(NAMESPACE))
        assert w.names() == ["early"]
        await w.fake.put("late")
        await eventually(lambda: w.names() == ["early", "late"])
        assert sorted(set(w.told)) == ["early", "late"]


async def test_owners_that_are_known_first_cost_no_further_list() -> None:
    async with world() as w:
        await w.fake.put("a")
        w.owners.come()
        w.owners.synced.set()
        await w.informer.synced.wait()
        assert w.informer.is_shown(NAMESPACE)
        assert w.names() == ["a"]
        await asyncio.sleep(0.05)
        assert w.fake.count("list") == 1


async def test_a_namespace_without_owners_counts_until_nothing_is_left_of_it() -> None:
    async with world() as w:
        await w.fake.put("a")
        w.owners.come("slurm")
        w.owners.synced.set()
        await w.informer.synced.wait()
        w.owners.go("slurm")
        assert w.names() == ["a"]
        await w.fake.remove("a")
        await eventually(lambda: w.names() == [])
        # Noticed with the next owner that comes or goes anywhere.
        w.owners.come("b")
        w.owners.go("b")
        await w.fake.put("stranger")
        await w.fake.bookmark()
        w.owners.come("c")
        await eventually(lambda: w.informer.is_shown(NAMESPACE) and w.names() == ["stranger"])


async def test_what_happens_while_a_namespace_is_listed_is_not_lost() -> None:
    """Owners come and go while pods are made and deleted; in the end the cache is as the API server."""
    async with world() as w:
        w.owners.synced.set()
        await w.informer.synced.wait()
        for number in range(40):
            await w.fake.put(f"p-{number % 7}")
            (w.owners.go if number % 2 else w.owners.come)()
            if number % 3 == 0:
                await w.fake.remove(f"p-{number % 7}")
            await asyncio.sleep(0.001 * (number % 4))
        w.owners.come("last")
        await eventually(lambda: w.informer.is_shown(NAMESPACE) and w.names() == sorted(w.fake.objects))
