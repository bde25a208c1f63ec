"""The fence in front of every Slurm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from slinky_operator.kube.errors import Fenced
from slinky_operator.slurm.fencing import FencedTransport


class Gate:
    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)

    def closed_because(self) -> str | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@asynccontextmanager
async def server() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers everything, and what it was asked."""
    seen: list[bytes] = []
    ended: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end = asyncio.Event()
        ended.append(end)
        while line := await reader.readline():
            if b"HTTP/1.1" in line:
                seen.append(line.split(b" HTTP")[0])
            if line == b"\r\n":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                break
        writer.close()
        await writer.wait_closed()
        end.set()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1], seen
        for end in ended:
            await end.wait()


async def send(gate: Gate, *requests: tuple[str, str]) -> list[bytes]:
    async with server() as (port, seen):
        transport = FencedTransport(httpx.AsyncHTTPTransport(trust_env=False), gate, ("here", "slurm"))
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            for method, path in requests:
                await http.request(method, f"http://127.0.0.1:{port}{path}")
        return seen


async def test_reads_pass_a_closed_fence() -> None:
    assert await send(Gate("late"), ("GET", "/slurm/v0.0.42/nodes/")) == [b"GET /slurm/v0.0.42/nodes/"]


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/slurm/v0.0.42/node/x"), ("DELETE", "/n"), ("GET", "/slurm/v0.0.42/reconfigure/")]
)
async def test_writes_do_not(method: str, path: str) -> None:
    with pytest.raises(Fenced, match="here/slurm: late"):
        await send(Gate("late"), (method, path))


async def test_a_write_that_waited_is_held_back_before_its_first_byte() -> None:
    async with server() as (port, seen):
        transport = FencedTransport(httpx.AsyncHTTPTransport(trust_env=False), Gate(None, "late"), ("here", "slurm"))
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            with pytest.raises(Fenced):
                await http.post(f"http://127.0.0.1:{port}/x", json={})
        assert seen == []
