"""The client without asyncio, and with several servers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from slurm_client import MintedToken, RetryPolicy, SlurmClient, errors
from slurm_client.sync import SyncSlurmClient
from slurm_client.testing import FakeSlurmrestd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY = b"k" * 32


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd(key=KEY) as server:
        server.add_node("w-0")
        server.add_node("w-1", state="DOWN", reason="fans")
        server.add_job(nodes=["w-0"], name="hello")
        yield server


async def test_calls_are_waited_for_in_a_thread(fake: FakeSlurmrestd) -> None:
    def ordinary() -> list[str]:
        with SyncSlurmClient(fake.url, MintedToken(KEY)) as slurm:
            with pytest.raises(errors.NotFound):
                slurm.node("nosuch")
            with slurm.watch_nodes() as events:
                assert set(events.initial()) == {"w-0", "w-1"}
                assert events.is_synced
            with pytest.raises(StopIteration):
                next(events)
            assert slurm.api_version == "v0.0.45"
            slurm.drain_nodes(["w-0"], "by hand")
            assert slurm.node("w-0").reason == "by hand"
            assert len(slurm.run(lambda client: client.nodes())) == 2
            return [node.name for node in slurm.nodes()]

    assert await asyncio.to_thread(ordinary) == ["w-0", "w-1"]


async def test_a_client_for_another_user_leaves_the_first_one_its_thread(fake: FakeSlurmrestd) -> None:
    def ordinary() -> None:
        with SyncSlurmClient(fake.url, MintedToken(KEY, "root")) as slurm:
            with slurm.as_user("alice") as alice:
                assert len(alice.nodes()) == 2
            assert fake.requests[-1].headers["X-SLURM-USER-NAME"] == "alice"
            assert len(slurm.nodes()) == 2
            later = slurm.as_user("bob")
        with pytest.raises(errors.ClientClosed):
            later.nodes()
        later.close()

    await asyncio.to_thread(ordinary)


async def test_a_closed_client_says_so_and_a_call_in_its_own_thread_does_not_hang(fake: FakeSlurmrestd) -> None:
    def ordinary() -> None:
        slurm = SyncSlurmClient(fake.url, MintedToken(KEY))
        events = slurm.watch_nodes()
        assert next(events).key == "w-0"

        async def inside(client: SlurmClient) -> None:
            assert client.circuit.name == "closed"
            slurm.nodes()

        with pytest.raises(RuntimeError, match="wait for itself"):
            slurm.run(inside)
        slurm.close()
        slurm.close()
        events.close()
        with pytest.raises(errors.ClientClosed, match="closed"):
            slurm.nodes()

    await asyncio.to_thread(ordinary)


def test_a_useless_url_leaves_no_thread_behind() -> None:
    with pytest.raises(ValueError, match="URL"):
        SyncSlurmClient("nonsense", "token")


async def test_the_next_server_is_taken_when_one_cannot_be_reached(fake: FakeSlurmrestd) -> None:
    async with FakeSlurmrestd(key=KEY) as other:
        other.add_node("w-0")
        retry = RetryPolicy(first_pause=0.001)
        async with SlurmClient([other.url, fake.url], MintedToken(KEY), retry=retry) as slurm:
            assert len(await slurm.nodes()) == 1
            await other.stop()
            assert len(await slurm.nodes()) == 2
            assert slurm.base_url == fake.url
            await slurm.drain_nodes(["w-0"], "reason")
            assert fake.nodes["w-0"].is_drain
    with pytest.raises(ValueError, match="URL"):
        SlurmClient([], "token")


async def test_the_next_server_is_taken_when_one_is_silent(fake: FakeSlurmrestd) -> None:
    async with (
        FakeSlurmrestd(key=KEY) as other,
        SlurmClient([other.url, fake.url], MintedToken(KEY), timeout=0.2) as slurm,
    ):
        other.faults.hang()
        with pytest.raises(errors.Timeout):
            await slurm.nodes()
        assert slurm.base_url == fake.url
        assert len(await slurm.nodes(timeout=3600)) == 2
