"""Watches of a server that is away, upgraded, or answers what cannot be read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from slurm_client import errors
from slurm_client.models import Node
from slurm_client.operations.base import Listing
from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import Watch
from tests.unit.slurm_client.watch.watching import FAST, client, never, next_of, until

if TYPE_CHECKING:
    from collections.abc import Awaitable


async def test_an_outage_is_survived_and_visible(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        await next_of(events)
        await fake.stop()
        await until(lambda: slurm.node_watch.status.failures > 2)
        status = slurm.node_watch.status
        assert isinstance(status.error, errors.Unreachable)
        assert status.synced
        assert status.age is not None
        assert status.age > 0
        assert slurm.node_watch.objects["w-0"].name == "w-0"
        fake.update_node("w-0", comment="meanwhile")
        await fake.start()
        event = await next_of(events)
        assert (event.old.comment, event.new.comment) == ("", "meanwhile")
        await until(lambda: slurm.node_watch.status.failures == 0)


async def test_an_answer_that_cannot_be_read_removes_nothing(fake: FakeSlurmrestd) -> None:
    for number in range(10):
        fake.add_node(f"w-{number}")
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        for _ in range(10):
            await next_of(events)
        for options in ({"cut": 0.6}, {"truncate": 0.6}, {"body": "{}"}, {"body": {"nodes": [{"name": None}]}}):
            fault = fake.faults.add("/nodes/", times=None, **options)
            fake.update_node("w-0", comment=str(options))
            await until(lambda fault=fault: fault.hits > 1)  # type: ignore[misc]
            fake.faults.remove(fault)
            event = await next_of(events)
            assert (event.kind, event.key) == ("changed", "w-0")


async def test_a_server_upgraded_under_a_watch_is_watched_on() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake) as slurm, slurm.watch_nodes() as events:
        fake.add_node("w-0")
        await next_of(events)
        await fake.stop()
        fake.upgrade("26.05.5")
        await fake.start()
        fake.update_node("w-0", comment="after")
        event = await next_of(events, lambda event: event.new is not None and event.new.comment == "after")
        assert event.old.comment == ""
        await until(lambda: slurm.api_version == "v0.0.45")


async def test_an_outage_is_waited_for(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    fake.faults.controller_down()
    async with client(fake) as slurm, slurm.watch_nodes() as events:
        await until(lambda: slurm.node_watch.status.failures > 5)
        fake.faults.clear()
        assert (await next_of(events)).key == "w-0"


async def test_a_mistake_of_ours_reaches_the_readers() -> None:
    async def fetch(since: int | None) -> Listing[Node] | None:
        raise ZeroDivisionError

    watch = Watch(fetch, never, lambda node: node.name, pace=FAST)
    reader = watch.reader()
    with pytest.raises(ZeroDivisionError):
        await next_of(reader)
    await watch.close()


async def test_waiting_for_the_first_list_can_be_bounded(fake: FakeSlurmrestd) -> None:
    fake.faults.hang()
    async with client(fake, timeout=0.05) as slurm, slurm.watch_nodes():
        waiting: Awaitable[None] = slurm.node_watch.wait_synced()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.2)
        assert not slurm.node_watch.status.synced
        assert slurm.node_watch.status.age is None
