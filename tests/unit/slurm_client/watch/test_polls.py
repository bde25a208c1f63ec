"""Polls of a watch: how many, how often, and for whom."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest

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
