"""The initial list of a reader, and where it ends."""

from __future__ import annotations

import asyncio

import pytest

from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import SYNCED, Pace
from tests.unit.slurm_client.watch.watching import client, next_of, until


async def test_a_loop_over_events_sees_which_is_the_last_of_the_initial_list(fake: FakeSlurmrestd) -> None:
    for number in range(3):
        fake.add_node(f"w-{number}")
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        assert not events.is_synced
        seen = []
        for _ in range(3):
            seen.append((await next_of(events)).key)
            assert events.is_synced == (len(seen) == 3)
        assert not events.pending()
        fake.add_node("w-3")
        assert (await next_of(events)).key == "w-3"
        assert events.is_synced


async def test_the_end_of_the_initial_list_is_an_event_for_who_asks(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes(mark=True) as events, slurm.watch_nodes() as others:
        assert (await next_of(events)).key == "w-0"
        before = events.is_synced
        mark = await next_of(events)
        assert mark is SYNCED
        assert mark.kind == "synced"
        assert (before, events.is_synced) == (False, True)
        fake.update_node("w-0", comment="new")
        assert (await next_of(events)).kind == "changed"
        assert [(await next_of(others)).kind for _ in range(2)] == ["added", "changed"]
        late = slurm.watch_nodes(mark=True)
        assert [(await next_of(late)).kind for _ in range(2)] == ["added", "synced"]


async def test_an_empty_cluster_has_an_initial_list_too(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm, slurm.watch_jobs() as events, slurm.watch_jobs(mark=True) as marked:
        assert await asyncio.wait_for(events.initial(), 120) == {}
        assert events.is_synced
        assert await next_of(marked) is SYNCED
        assert await asyncio.wait_for(slurm.watch_jobs().initial(), 120) == {}


async def test_the_initial_list_of_a_late_reader_is_what_is_true_by_then(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    fake.add_node("w-1")
    async with client(fake) as slurm:
        async with slurm.watch_nodes() as events:
            assert set(await events.initial()) == {"w-0", "w-1"}
            fake.update_node("w-1", comment="new")
            await next_of(events)
            async with slurm.watch_nodes() as late:
                assert (await late.initial())["w-1"].comment == "new"
        # Nobody read for a while: what was known then is not yet the whole truth.
        fake.remove_node("w-0")
        fake.add_node("w-2")
        async with slurm.watch_nodes() as events:
            assert events.pending() == 2
            assert not events.is_synced
            assert set(await events.initial()) == {"w-1", "w-2"}
            assert not events.pending()


async def test_who_joins_in_an_outage_has_the_initial_list_only_after_it(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes() as first:
        await first.initial()
        fake.faults.controller_down()
        await until(lambda: slurm.node_watch.status.failures > 0)
        late = slurm.watch_nodes()
        assert (await next_of(late)).key == "w-0"
        assert not late.is_synced
        fake.add_node("w-1")
        fake.faults.clear()
        assert set(await late.initial()) == {"w-1"}


async def test_the_mark_survives_events_that_are_made_one(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    pace = Pace(interval=0.01, share=0.9, backlog=3)
    async with client(fake, pace=pace) as slurm, slurm.watch_nodes(mark=True) as events:
        await slurm.node_watch.wait_synced()
        for number in range(20):
            fake.update_node("w-0", comment=str(number))
            await slurm.node_watch.refresh("w-0")
        fake.add_node("w-1")
        await slurm.node_watch.refresh("w-1")
        kinds = [(await next_of(events)).kind]
        while kinds[-1] != "synced":
            kinds.append((await next_of(events)).kind)
        assert kinds == ["added", "synced"]


async def test_a_reader_that_is_closed_before_its_list_says_so(fake: FakeSlurmrestd) -> None:
    fake.faults.hang()
    slurm = client(fake)
    listing = asyncio.create_task(slurm.watch_nodes().initial())
    await until(lambda: bool(fake.requests))
    await slurm.close()
    with pytest.raises(RuntimeError, match="nodes ended before"):
        await listing
