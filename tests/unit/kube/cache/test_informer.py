"""The store ends up equal to the API server, whatever happens to the watch."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from slinky_operator.kube.cache import informer as informer_module
from slinky_operator.kube.cache import mirror as mirror_module
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.cache.store import by_label
from slinky_operator.kube.calls.reading import SLICE
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS
from tests.unit.kube.fake_api import FakeApi, client_of, eventually, running

FAULTS: tuple[int | str, ...] = ("cut", "gone", "error", "end", 500, 429, 410)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(informer_module, "LONGEST_PAUSE", 0.02)
    monkeypatch.setattr(mirror_module, "FIRST_PAUSE", 0.01)


@asynccontextmanager
async def informed(fake: FakeApi) -> AsyncIterator[tuple[Informer, list[tuple[str, str | None, str | None]]]]:
    """An informer at work, and the changes it reported: name, old version, new version."""
    told: list[tuple[str, str | None, str | None]] = []

    def version(obj: Object | None) -> str | None:
        return None if obj is None else str(obj["metadata"]["resourceVersion"])

    async with client_of(fake) as client:
        informer = Informer(client, PODS, namespaces=["default"], indexers={"app": by_label("app")})

        def note(old: Object | None, new: Object | None) -> None:
            obj = new or old
            assert obj is not None
            name = obj["metadata"]["name"]
            # Stored first, told then.
            assert informer.store.get("default", name) is new
            told.append((name, version(old), version(new)))

        informer.add_handler(note)
        task = asyncio.create_task(informer.run())
        try:
            yield informer, told
        finally:
            task.cancel()
            await asyncio.wait([task])


def same(informer: Informer, fake: FakeApi) -> bool:
    here = {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in informer.store}
    return here == {name: obj["metadata"]["resourceVersion"] for name, obj in fake.objects.items()}


async def test_list_then_watch() -> None:
    async with running() as fake:
        await fake.put("a", app="x")
        await fake.put("b", app="y")
        async with informed(fake) as (informer, told):
            await informer.synced.wait()
            await fake.put("a", app="y")
            await fake.remove("b")
            await fake.put("c")
            await eventually(lambda: len(told) == 5)
        assert told == [
            ("a", None, "101"),
            ("b", None, "102"),
            ("a", "101", "103"),
            ("b", "104", None),
            ("c", None, "105"),
        ]
        assert [obj["metadata"]["name"] for obj in informer.store.find("app", "y")] == ["a"]
        found = informer.store.get("default", "a")
        assert found is not None
        assert "managedFields" not in found["metadata"]
        assert (fake.count("list"), fake.count("watch")) == (1, 1)


async def test_a_list_in_pages_is_one_list_and_its_items_have_kinds() -> None:
    async with running() as fake:
        fake.page_size = 3
        for number in range(10):
            await fake.put(f"p{number}")
        async with informed(fake) as (informer, told):
            await informer.synced.wait()
            assert len(informer.store) == len(told) == 10
            assert {(obj["kind"], obj["apiVersion"]) for obj in informer.store} == {("Pod", "v1")}
        assert fake.count("list") == 4


@pytest.mark.parametrize("kind", [Informer, Mirror])
async def test_others_have_their_turn_while_a_page_is_stored(kind: type[Informer | Mirror]) -> None:
    turns, seen = 0, list[int]()

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with running() as fake, client_of(fake) as client:
        for number in range(3 * SLICE):
            await fake.put(f"p-{number:02}")
        stored = kind(client, PODS)
        stored.add_handler(lambda _, __: seen.append(turns))
        tasks = [asyncio.create_task(one) for one in (turn(), stored.run())]
        await stored.synced.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert (len(seen), fake.count("list")) == (3 * SLICE, 1)
        assert seen[-1] - seen[0] >= 2


@pytest.mark.parametrize("fault", ["cut", "error", "end", 500, 503, 429])
async def test_a_broken_watch_goes_on_from_the_last_version(fault: int | str) -> None:
    async with running() as fake:
        await fake.put("a")
        fake.watch_faults.append(fault)
        async with informed(fake) as (informer, told):
            await informer.synced.wait()
            await fake.put("b")
            await eventually(lambda: same(informer, fake))
            await fake.put("c")
            await eventually(lambda: same(informer, fake))
        assert [name for name, _, _ in told] == ["a", "b", "c"]
        assert fake.count("list") == 1


@pytest.mark.parametrize("fault", ["gone", 410])
async def test_gone_lists_again_and_finds_what_vanished_meanwhile(fault: int | str) -> None:
    async with running() as fake:
        await fake.put("stays")
        await fake.put("vanishes")
        fake.watch_faults.append(fault)
        async with informed(fake) as (informer, told):
            await informer.synced.wait()
            # Before the informer can have heard of it by the watch, it is gone and forgotten.
            await fake.remove("vanishes")
            fake.compact()
            await eventually(lambda: same(informer, fake))
            await fake.put("later")
            await eventually(lambda: same(informer, fake))
        assert [name for name, _, new in told if new is None] == ["vanishes"]
        assert fake.count("list") >= 2


async def test_a_restored_etcd_leaves_no_ghosts() -> None:
    async with running() as fake:
        await fake.put("in the backup", app="new")
        await fake.put("not in the backup")
        fake.watch_faults.append(410)
        async with informed(fake) as (informer, told):
            await informer.synced.wait()
            fake.objects.pop("not in the backup")
            kept = fake.objects["in the backup"]
            fake.objects["in the backup"] = {**kept, "metadata": {**kept["metadata"], "resourceVersion": "50"}}
            fake.version = 60
            fake.log.clear()
            await eventually(lambda: same(informer, fake))
            assert [name for name, _, new in told if new is None] == ["not in the backup"]
            await fake.put("in the backup", app="newer")
            await eventually(lambda: same(informer, fake))


async def test_a_bookmark_moves_the_version_so_that_a_quiet_watch_does_not_expire() -> None:
    async with running() as fake:
        await fake.put("a")
        async with informed(fake) as (informer, _):
            await informer.synced.wait()
            await eventually(lambda: fake.count("watch") == 1)
            await fake.bookmark()
            fake.watch_faults.append("end")
            fake.cut_watches.set()
            await eventually(lambda: fake.count("watch") >= 3)
        # The second watch began at the bookmark, although no object has that version.
        assert [q["resourceVersion"] for kind, _, q in fake.requests if kind == "watch"][1:3] == ["102", "102"]
        assert fake.count("list") == 1


async def test_failures_at_the_first_list_are_survived() -> None:
    async with running() as fake:
        await fake.put("a")
        fake.list_faults.extend([500, 429, 403, 410])
        async with informed(fake) as (informer, _):
            await informer.synced.wait()
            assert same(informer, fake)


async def test_a_watch_that_fails_again_and_again_makes_a_new_list() -> None:
    async with running() as fake:
        await fake.put("a")
        fake.watch_faults.extend([500] * 6)
        async with informed(fake) as (informer, _):
            await eventually(lambda: informer.relists == 2)
            await fake.put("b")
            await eventually(lambda: same(informer, fake))


async def test_a_handler_that_fails_stops_neither_the_others_nor_the_watch() -> None:
    async with running() as fake, client_of(fake) as client:
        informer = Informer(client, PODS)
        seen: list[object] = []

        def broken(_: Object | None, __: Object | None) -> None:
            raise KeyError("x")

        informer.add_handler(broken)
        informer.add_handler(lambda _, new: seen.append(new))
        task = asyncio.create_task(informer.run())
        await fake.put("a")
        await fake.put("b")
        await eventually(lambda: len(seen) == 2)
        task.cancel()
        await asyncio.wait([task])


async def shake(fake: FakeApi, rng: random.Random) -> None:
    for _ in range(300):
        name = f"p{rng.randrange(8)}"
        chance = rng.random()
        if chance < 0.55 or name not in fake.objects:
            await fake.put(name, app=str(rng.randrange(3)))
        elif chance < 0.85:
            await fake.remove(name)
        elif chance < 0.9:
            fake.compact()
        if rng.random() < 0.1:
            fake.watch_faults.append(rng.choice(FAULTS))
        if rng.random() < 0.05:
            fake.list_faults.append(rng.choice([500, 429, 410]))
        if rng.random() < 0.3:
            await asyncio.sleep(0.002)
    await fake.put("last")


async def test_random_changes_and_faults_lose_nothing() -> None:
    rng = random.Random(7)  # noqa: S311 - repeatable
    async with running() as fake, informed(fake) as (informer, told):
        await shake(fake, rng)
        await eventually(lambda: same(informer, fake))
        # What was told adds up to what is there.
        alive: dict[str, str] = {}
        for name, old, new in told:
            if new is None:
                assert name in alive
                del alive[name]
            else:
                assert (old is None) == (name not in alive)
                alive[name] = new
        assert alive == {name: obj["metadata"]["resourceVersion"] for name, obj in fake.objects.items()}
        for value in ("0", "1", "2"):
            here = {obj["metadata"]["name"] for obj in informer.store.find("app", value)}
            assert here == {n for n, o in fake.objects.items() if o["metadata"]["labels"].get("app") == value}


async def test_a_mirror_drops_ghosts_and_repairs_what_was_missed() -> None:
    async with running() as fake, client_of(fake) as client:
        seen_live = await fake.put("ghost")
        await fake.put("stays")
        mirror = Mirror(client, PODS, namespaces=["default"], relist_every=3600)
        told: list[tuple[Object | None, Object | None]] = []
        mirror.add_handler(lambda old, new: told.append((old, new)))
        fake.list_faults.append(503)
        task = asyncio.create_task(mirror.run())
        await mirror.synced.wait()
        assert len(mirror.store) == 2
        await fake.remove("ghost")
        missed = await fake.put("missed")
        await mirror.relist()
        assert [obj["metadata"]["name"] for obj in mirror.store] == ["stays", "missed"]
        assert told[-1][1] is None or told[-2][1] is None
        # A late event about the dead, and one told twice, change nothing.
        count = len(told)
        mirror.feed("MODIFIED", missed)
        assert len(told) == count
        mirror.feed("DELETED", {**seen_live, "metadata": {**seen_live["metadata"], "resourceVersion": "103"}})
        mirror.feed("MODIFIED", seen_live)
        assert len(told) == count
        task.cancel()
        await asyncio.wait([task])
