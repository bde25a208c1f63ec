"""Long lists of a watch, which are compared and read in slices: what happens in between."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

import pytest

from slurm_client import slices
from slurm_client.models import Node
from slurm_client.models.listing import Listing
from slurm_client.watch import SYNCED, Event, Watch
from slurm_client.watch.picture import Picture
from tests.unit.slurm_client.watch.watching import FAST, never

Thing: TypeAlias = tuple[str, int]
MANY = 200


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look at the clock be the end of a slice."""
    monkeypatch.setattr(slices, "SLICE_SECONDS", -1.0)


def things(version: int) -> list[Thing]:
    return [(str(number), version) for number in range(MANY)]


async def test_single_answers_that_come_while_a_list_is_compared_stay() -> None:
    picture: Picture[Thing] = Picture(lambda thing: thing[0])
    told: list[Event[Thing]] = []
    assert await picture.take_list(things(1), picture.ask(), told.extend)
    early, number = picture.ask(), picture.ask()
    taking = asyncio.create_task(picture.take_list(things(2), number, told.extend))
    await asyncio.sleep(0)
    late = picture.ask()
    assert picture.is_overtaken(early)
    for key, value in (("0", ("0", 3)), ("150", ("150", 3)), ("7", None), ("199", None), ("new", ("new", 3))):
        told += picture.take_one(key, value, late)
        assert not taking.done()

    assert not await taking

    now = picture.objects
    assert (now["0"], now["150"], now["new"]) == (("0", 3), ("150", 3), ("new", 3))
    assert now.keys() == {"new", *map(str, range(MANY))} - {"7", "199"}
    assert {version for key, (_, version) in now.items() if key not in {"0", "150", "new"}} == {2}
    seen: dict[str, Thing] = {}
    for event in told:
        assert seen.get(event.key) == event.old
        if event.new is None:
            del seen[event.key]
        else:
            seen[event.key] = event.new
    assert seen == now


async def test_what_was_shown_never_changes_so_that_another_thread_may_go_through_it() -> None:
    picture: Picture[Thing] = Picture(lambda thing: thing[0])
    assert await picture.take_list(things(1), picture.ask(), lambda _: None)
    shown = picture.objects
    assert picture.objects is shown
    goes = iter(shown.items())
    _ = next(goes)
    for key, value in (("0", ("0", 2)), ("1", None), ("new", ("new", 2))):
        _ = picture.take_one(key, value, picture.ask())
    assert [*goes][-1] == ("199", ("199", 1))
    assert [*shown.values()] == things(1)
    later = picture.objects
    assert (later["0"], later["new"], "1" in later, len(picture)) == (("0", 2), ("new", 2), False, MANY)
    assert await picture.take_list(things(3), picture.ask(), lambda _: None)
    assert later["0"] == ("0", 2)
    # What nobody has looked at since is not copied for each answer.
    _ = picture.objects
    _ = picture.take_one("2", ("2", 4), picture.ask())
    _ = picture.take_one("3", None, picture.ask())
    assert (picture.objects["2"], "3" in picture.objects) == (("2", 4), False)


async def test_what_is_gone_from_a_list_is_told_and_nothing_twice() -> None:
    picture: Picture[Thing] = Picture(lambda thing: thing[0])
    told: list[Event[Thing]] = []
    await picture.take_list(things(1), picture.ask(), told.extend)
    told.clear()
    assert await picture.take_list(things(1)[:-1], picture.ask(), told.extend)
    assert told == [Event("199", ("199", 1), None)]


async def test_who_joins_while_the_first_list_is_taken_over_gets_all_of_it() -> None:
    asked = asyncio.Event()

    async def fetch(_: int | None) -> Listing[Node]:
        asked.set()
        return Listing(tuple(Node(name=f"w-{number}") for number in range(MANY)), 1)

    watch = Watch(fetch, never, lambda node: node.name, pace=FAST)
    early = watch.reader()
    await asked.wait()
    late = watch.reader(mark=True)
    assert not watch.status.synced
    events = []
    async for event in late:
        if event is SYNCED:
            break
        events.append(event.key)
    assert len(events) == len(set(events)) == MANY
    assert len(await early.initial()) == MANY
    await watch.close()


async def test_others_have_their_turn_while_events_that_wait_are_read() -> None:
    async def fetch(_: int | None) -> Listing[Node]:
        return Listing(tuple(Node(name=f"w-{number}") for number in range(MANY)), 1)

    watch = Watch(fetch, never, lambda node: node.name, pace=FAST)
    reader = watch.reader()
    await watch.wait_synced()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(others())
    assert len(await reader.initial()) == MANY
    running.cancel()
    assert turns > 1
    await watch.close()


async def test_all_items_are_given_in_order_and_lists_are_emptied() -> None:
    items = list(range(MANY))
    assert [item async for item in slices.sliced(items)] == items
    others = list(items)
    await slices.drop(items, others)
    assert (items, others) == ([], [])
