"""Polls of a watch: how many, how often, and for whom."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable

import pytest

from slurm_client import errors
from slurm_client.models import Node
from slurm_client.operations.base import Listing
from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import Pace, Watch
from tests.unit.slurm_client.watch.watching import client, never, next_of, until


async def test_many_readers_share_one_poll(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake, pace=Pace(interval=3600)) as slurm:
        readers = [slurm.watch_nodes() for _ in range(10)]
        for reader in readers:
            assert (await next_of(reader)).key == "w-0"
        late = slurm.watch_nodes()
        assert (await next_of(late)).key == "w-0"
        assert len(fake.calls("get_nodes")) == 1


async def test_an_unchanged_server_sends_no_list(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    fake.world.nodes_changed = time.time() - 100
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        await next_of(events)
        await until(lambda: slurm.node_watch.status.polls > 10)
        assert slurm.node_watch.status.full_answers == 1


async def test_a_full_list_is_asked_for_now_and_then() -> None:
    now, since = [0.0], []

    async def fetch(update_time: int | None) -> Listing[Node] | None:
        since.append(update_time)
        now[0] += 40
        return None if update_time else Listing((), 5)

    watch = Watch(
        fetch, never, lambda node: node.name, pace=Pace(interval=0, share=1, resync=100), clock=lambda: now[0]
    )
    reader = watch.reader()
    await until(lambda: len(since) > 7)
    assert since[:8] == [None, 5, 5, None, 5, 5, None, 5]
    await reader.aclose()
    await watch.close()


async def test_a_whole_list_is_asked_for_on_demand_once() -> None:
    since: list[int | None] = []

    async def fetch(update_time: int | None) -> Listing[Node] | None:
        since.append(update_time)
        return None if update_time else Listing((), 5)

    watch = Watch(fetch, never, lambda node: node.name, pace=Pace(interval=3600))
    reader = watch.reader()
    for count, whole in enumerate((False, True, False), 1):
        await until(lambda count=count: len(since) == count)  # type: ignore[misc]
        watch.poke(whole=whole)
    await until(lambda: len(since) == 4)
    assert since == [None, 5, None, 5]
    await reader.aclose()
    await watch.close()


class Quiet:
    """A server of three nodes that says that nothing has changed, and how old the list was at each whole answer.

    A plan may let a poll fail, tell of a change, or change something of which no poll tells, by what there was before.
    """

    def __init__(
        self,
        plan: Callable[[int, float], str] = lambda *_: "",
        *,
        per_object: float = 1000.0,
        longest: float = 7200.0,
    ) -> None:
        self.now = self.full_at = 0.0
        self.waits: list[float] = []
        self.version = 0
        self.plan = plan
        pace = Pace(
            interval=0,
            share=1,
            resync=100,
            resync_per_object=per_object,
            longest_resync=longest,
            first_pause=0.01,
        )
        self.watch = Watch(self.fetch, never, lambda node: node.name, pace=pace, clock=lambda: self.now)

    async def fetch(self, update_time: int | None) -> Listing[Node] | None:
        await asyncio.sleep(0)
        self.now += 10
        step = self.plan(len(self.waits), self.now - self.full_at)
        if step == "fail":
            raise errors.Unreachable("it is away")
        if update_time and step != "tell":
            return None
        self.version += bool(step)
        self.waits.append(self.now - self.full_at)
        self.full_at = self.now
        return Listing(tuple(Node(name=f"w-{number}", comment=str(self.version)) for number in range(3)), 5)

    async def whole(self, count: int) -> list[float]:
        """The first ages at which it was asked for the whole list."""
        reader = self.watch.reader()
        await until(lambda: len(self.waits) >= count)
        await reader.aclose()
        await self.watch.close()
        return self.waits[:count]


async def test_lists_that_show_nothing_new_come_ever_more_seldom() -> None:
    assert await Quiet().whole(8) == [10, 110, 210, 410, 810, 1610, 3010, 3010]


async def test_there_is_a_longest_time_and_by_default_it_never_grows() -> None:
    assert await Quiet(longest=300).whole(5) == [10, 110, 210, 310, 310]
    assert await Quiet(per_object=0).whole(4) == [10, 110, 110, 110]


async def test_a_list_that_shows_what_no_poll_has_told_brings_the_next_one_soon() -> None:
    quiet = Quiet(lambda lists, _: "change" if lists == 4 else "")
    assert await quiet.whole(7) == [10, 110, 210, 410, 810, 110, 210]


async def test_so_do_many_changes_and_one_does_not() -> None:
    quiet = Quiet(lambda lists, age: "tell" if (lists in {4, 6} and age > 200) or lists == 7 else "")
    assert await quiet.whole(9) == [10, 110, 210, 410, 210, 810, 210, 10, 110]


async def test_after_a_failure_the_whole_list_comes_soon() -> None:
    quiet = Quiet(lambda lists, age: "fail" if (lists, age) == (4, 310) else "")
    assert await quiet.whole(5) == [10, 110, 210, 410, 320]


def test_the_pace_bounds_the_share_of_full_answers() -> None:
    pace = Pace(interval=1, share=0.2, longest_interval=60)
    assert pace.after_full(0.01) == 1
    assert pace.after_full(2) == 8
    assert pace.after_full(100) == 60
    assert pace.after_failure(1, lambda: 0.0) == 1
    assert pace.after_failure(30, lambda: 1.0) == 15


async def test_polling_ends_with_the_last_reader_and_begins_anew(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm:
        async with slurm.watch_nodes() as events:
            await next_of(events)
        polls = slurm.node_watch.status.polls
        await asyncio.sleep(0.05)
        assert slurm.node_watch.status.polls == polls
        fake.update_node("w-0", comment="while nobody looked")
        async with slurm.watch_nodes() as events:
            assert (await next_of(events)).new.comment == ""
            assert (await next_of(events)).new.comment == "while nobody looked"


async def test_a_forgotten_reader_ends_too(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        reader = slurm.watch_nodes()
        await slurm.node_watch.wait_synced()
        del reader
        gc.collect()
        await until(lambda: slurm.node_watch._task is None or slurm.node_watch._task.done())


async def test_readers_end_with_the_client(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    slurm = client(fake)
    events = slurm.watch_nodes()
    await slurm.node_watch.wait_synced()
    await slurm.close()
    assert [event.key async for event in events] == ["w-0"]
    with pytest.raises(RuntimeError, match="closed"):
        slurm.watch_nodes()


async def test_a_reader_far_behind_gets_one_event_for_many(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    fake.add_node("w-1")
    async with client(fake, pace=Pace(interval=0.01, share=0.9, backlog=3)) as slurm, slurm.watch_nodes() as events:
        await slurm.node_watch.wait_synced()
        for number in range(20):
            fake.update_node("w-0", comment=str(number))
            await slurm.node_watch.refresh("w-0")
        assert events.pending() <= 4
        found = [await next_of(events) for _ in range(events.pending())]
        assert found[0].old is None
        assert found[-1].new == slurm.node_watch.objects[found[-1].key]
