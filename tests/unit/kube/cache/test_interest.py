"""Nothing is kept of namespaces in which nothing can be ours, and a namespace is listed once something can."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from slinky_operator.kube.cache import informer as informer_module
from slinky_operator.kube.cache import interest as interest_module
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.informer import Handler, Informer
from slinky_operator.kube.cache.interest import Interest, OwnershipClaim
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, PODS, Resource
from tests.unit.kube.fake_api import FakeApi, client_of, eventually, running

NAMESPACE = "default"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(interest_module, "RETRY_S", 0.01)


@dataclass
class Owners:
    """A cache of owners."""

    resource: Resource = CLUSTERS
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
        return {"metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"}}


@dataclass
class World:
    fake: FakeApi
    owners: Owners
    informer: Informer
    told: list[str]

    def names(self) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.informer.store)


@asynccontextmanager
async def world(claim: Callable[[Object], OwnershipClaim] | None = None) -> AsyncIterator[World]:
    async with running() as fake, client_of(fake) as client:
        budget, owners, told = Budget(), Owners(), list[str]()
        interest = Interest([owners], budget)
        informer = Informer(client, PODS, budget=budget, interest=interest, claim=claim)
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


def by_name(obj: Object) -> OwnershipClaim:
    """The part of a name before the dash is the uid of an owner; `slurm` is a name that one may have, too."""
    owner = obj["metadata"]["name"].partition("-")[0]
    return OwnershipClaim(frozenset({f"uid-{owner}"}), frozenset({(CLUSTERS, "slurm")} if owner == "slurm" else ()))


async def test_junk_beside_an_owner_is_dropped_and_wakes_nobody() -> None:
    async with world(by_name) as w:
        await w.fake.put("junk-0")
        w.owners.come("a")
        w.owners.synced.set()
        await w.informer.synced.wait()
        await w.fake.put("junk-1")
        await w.fake.put("a-0")
        await eventually(lambda: w.names() == ["a-0"])
        await w.fake.remove("junk-0")
        await w.fake.put("a-1")
        await eventually(lambda: w.names() == ["a-0", "a-1"])
        assert set(w.told) == {"a-0", "a-1"}
        assert w.informer.store.missing(NAMESPACE) == 0
        assert w.fake.count("list") == 1


async def test_an_object_that_is_seen_before_its_owner_is_not_lost_and_nothing_is_decided_without_it() -> None:
    async with world(by_name) as w:
        w.owners.come("a")
        w.owners.synced.set()
        await w.informer.synced.wait()
        await w.fake.put("b-0")
        await w.fake.put("a-0")
        await eventually(lambda: w.names() == ["a-0"])
        w.fake.list_faults.append(500)
        w.owners.come("c")
        assert w.informer.is_shown(NAMESPACE), "nothing that was dropped is of c"
        w.owners.come("b")
        assert not w.informer.is_shown(NAMESPACE)
        await eventually(lambda: w.informer.is_shown(NAMESPACE))
        assert w.names() == ["a-0", "b-0"]


async def test_what_was_listed_for_an_owner_outlives_a_whole_list_that_had_begun_before_it_came() -> None:
    async with world(by_name) as w:
        w.fake.page_size = 2
        for name in ("a-0", "b-0", "b-1", "c-0"):
            await w.fake.put(name)
        w.owners.come("a")
        w.owners.synced.set()
        await w.informer.synced.wait()
        assert w.names() == ["a-0"]
        asked, held = w.fake.count("list"), asyncio.Event()
        w.fake.held = held
        w.fake.compact()
        w.fake.watch_faults.append("gone")
        w.fake.cut_watches.set()
        await w.fake.bookmark()
        # The first page of the whole list has come, without what is b's; the next one is on its way.
        await eventually(lambda: w.fake.count("list") == asked + 2)
        w.owners.come("b")
        await eventually(lambda: w.informer.is_shown(NAMESPACE) and w.names() == ["a-0", "b-0", "b-1"])
        held.set()
        await eventually(lambda: w.informer.relists == 2)
        assert w.informer.is_shown(NAMESPACE)
        assert w.names() == ["a-0", "b-0", "b-1"]


async def test_an_owner_takes_over_by_name_what_was_dropped_without_one() -> None:
    async with world(by_name) as w:
        w.owners.come("a")
        w.owners.synced.set()
        await w.informer.synced.wait()
        await w.fake.put("slurm-0")
        await w.fake.put("a-0")
        await eventually(lambda: w.names() == ["a-0"])
        w.owners.come("slurm")
        await eventually(lambda: w.informer.is_shown(NAMESPACE) and w.names() == ["a-0", "slurm-0"])


async def test_what_an_owner_has_left_stays_until_it_is_deleted() -> None:
    async with world(by_name) as w:
        w.owners.come("a")
        w.owners.come("b")
        w.owners.synced.set()
        await w.informer.synced.wait()
        await w.fake.put("b-0")
        await eventually(lambda: w.names() == ["b-0"])
        w.owners.go("b")
        await w.fake.put("b-0")
        await w.informer.show(NAMESPACE)
        assert w.names() == ["b-0"]
        await w.fake.remove("b-0")
        await eventually(lambda: w.names() == [])


async def test_with_more_junk_than_is_remembered_each_new_owner_is_looked_for_and_old_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interest_module, "MOST_REFUSED", 3)
    async with world(by_name) as w:
        w.owners.come("a")
        w.owners.synced.set()
        await w.informer.synced.wait()
        for number in range(9):
            await w.fake.put(f"junk{number}-0")
        await w.fake.put("a-0")
        await eventually(lambda: w.names() == ["a-0"])
        # A write to the status of an owner is no new one.
        known: Object = {"metadata": {"name": "a", "namespace": NAMESPACE, "uid": "uid-a"}}
        for handler in w.owners.handlers:
            handler(known, known)
        assert w.informer.is_shown(NAMESPACE)
        w.owners.come("junk8")
        assert not w.informer.is_shown(NAMESPACE)
        await eventually(lambda: w.informer.is_shown(NAMESPACE))
        assert w.names() == ["a-0", "junk8-0"]


async def test_an_owner_for_which_there_is_no_room_counts_once() -> None:
    """Such an owner comes as if it were new with each of its versions."""
    async with world(by_name) as w:
        w.owners.synced.set()
        await w.informer.synced.wait()
        for _ in range(3):
            w.owners.come("a")
        await eventually(lambda: w.informer.is_shown(NAMESPACE))
        w.owners.come("b")
        w.owners.go("a")
        await w.fake.put("a-0")
        await w.fake.put("b-0")
        await eventually(lambda: w.names() == ["b-0"])
        w.owners.go("b")
        await w.fake.remove("b-0")
        await eventually(lambda: w.names() == [])
        w.owners.come("elsewhere")
        w.owners.go("elsewhere")
        assert w.informer.is_shown(NAMESPACE)
