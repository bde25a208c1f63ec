"""The client without asyncio, on the command line, and with several servers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from slurm_client import MintedToken, RetryPolicy, SlurmClient, errors
from slurm_client.__main__ import main
from slurm_client.sync import SyncSlurmClient
from slurm_client.testing import FakeSlurmrestd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

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


async def test_the_command_line(
    fake: FakeSlurmrestd, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "jwt.key"
    key.write_bytes(KEY)

    async def run(*arguments: str) -> str:
        options = ["--url", fake.url, "--jwt-key", str(key)]
        assert await asyncio.to_thread(main, [*options, *arguments]) == 0
        return capsys.readouterr().out

    assert "Slurm 26.05.5, data parser v0.0.45" in await run("ping")
    shown = await run("nodes")
    assert "w-1   DOWN+DYNAMIC_NORM" in shown
    assert "fans" in shown
    assert "hello" in await run("jobs")
    assert "all" in await run("partitions")
    await run("drain", "--reason", "by hand", "w-0", "w-1")
    assert fake.nodes["w-0"].reason == "by hand"
    await run("undrain", "w-0")
    assert not fake.nodes["w-0"].is_drain

    monkeypatch.setenv("SLURM_JWT", "garbage")
    for command in ("nodes", "watch"):
        assert await asyncio.to_thread(main, ["--url", fake.url, command]) == 1
        assert "Unauthorized" in capsys.readouterr().err
    assert await asyncio.to_thread(main, ["--url", fake.url, "--token-file", str(tmp_path / "none"), "nodes"]) == 1
