"""The fence in front of every Slurm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from string import Formatter

import httpx
import pytest
from typing_extensions import override

from slinky_operator.kube.errors import Fenced
from slinky_operator.slurm.connection.fencing import FencedTransport
from slurm_client import wire
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.session import RetryPolicy, Session
from slurm_client.errors import Unreachable
from slurm_client.tokens import StaticToken
from slurm_client.wire import CHANGES_NOTHING
from slurm_client.wire.endpoint import WRITES
from tests.support.listener import listening


class Gate:
    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)

    def closed_because(self) -> str | None:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@asynccontextmanager
async def server() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers everything, and what it was asked."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if b"HTTP/1.1" in line:
                seen.append(line.split(b" HTTP")[0])
            if line == b"\r\n":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                break

    async with listening(serve) as port:
        yield port, seen


READ: dict[str, object] = {CHANGES_NOTHING: True}


async def send(gate: Gate, *requests: tuple[str, str], marks: dict[str, object] | None = None) -> list[bytes]:
    async with server() as (port, seen):
        transport = FencedTransport(httpx.AsyncHTTPTransport(trust_env=False), gate, ("here", "slurm"))
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            for method, path in requests:
                await http.request(method, f"http://127.0.0.1:{port}{path}", extensions=marks)
        return seen


async def test_reads_pass_a_closed_fence() -> None:
    asked = ("GET", "/slurm/v0.0.42/nodes/")
    assert await send(Gate("late"), asked, marks=READ) == [b"GET /slurm/v0.0.42/nodes/"]


@pytest.mark.parametrize("marks", [None, {CHANGES_NOTHING: False}, {CHANGES_NOTHING: "yes"}])
@pytest.mark.parametrize("method", ["POST", "DELETE", "GET"])
async def test_what_is_not_marked_as_a_read_does_not(method: str, marks: dict[str, object] | None) -> None:
    with pytest.raises(Fenced, match="here/slurm: late"):
        await send(Gate("late"), (method, "/slurm/v0.0.42/nodes/"), marks=marks)


async def test_a_write_that_waited_is_held_back_before_its_first_byte() -> None:
    async with server() as (port, seen):
        transport = FencedTransport(httpx.AsyncHTTPTransport(trust_env=False), Gate(None, "late"), ("here", "slurm"))
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            with pytest.raises(Fenced):
                await http.post(f"http://127.0.0.1:{port}/x", json={})
        assert seen == []


# every operation of every data parser, through the session that sends it

EVERY_OPERATION = [(version, each) for version in wire.PARSERS for each in wire.endpoints(version)]


class Broken(httpx.AsyncBaseTransport):
    """Loses every connection after the request, but answers a ping."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/ping/") and not self.seen:
            self.seen.append("negotiation")
            return httpx.Response(200, json={"pings": []})
        self.seen.append(f"{request.method} {request.url.path}")
        raise httpx.ReadError("connection reset", request=request)


async def call(operation: wire.Endpoint, version: str, gate: Gate, inner: Broken, *, by_path: bool = False) -> None:
    session = Session(
        "http://slurm",
        StaticToken("t"),
        api_version=version,
        transport=FencedTransport(inner, gate, ("here", "slurm")),
        retry=RetryPolicy(attempts=3, first_pause=0.0),
        circuit=Circuit(threshold=0),
    )
    parameters = {name: "1" for _, name, _, _ in Formatter().parse(operation.path) if name}
    try:
        if by_path:
            inner.seen.append("negotiation")  # there is none
            await session.request(operation.method, operation.url(version, parameters))
        else:
            await session.call(operation.operation, path=parameters)
    finally:
        await session.close()


@pytest.mark.parametrize("by_path", [False, True], ids=["by name", "by path"])
@pytest.mark.parametrize(
    ("version", "operation"), EVERY_OPERATION, ids=lambda value: getattr(value, "operation", value)
)
async def test_a_closed_fence_lets_out_reads_and_nothing_else(
    version: str,
    operation: wire.Endpoint,
    by_path: bool,
) -> None:
    inner = Broken()
    with pytest.raises((Fenced, Unreachable)) as failed:
        await call(operation, version, Gate("late"), inner, by_path=by_path)
    sent = inner.seen[1:]
    if operation.operation in WRITES:
        assert isinstance(failed.value, Fenced)
        assert not sent
    else:
        assert isinstance(failed.value, Unreachable)
        assert sent


@pytest.mark.parametrize(
    "path",
    [
        "/slurm/v0.0.45/nosuch/",
        "/slurm/v0.0.46/nodes/",
        "/slurm/v0.0.45/job/7%2Frequeue",
        "/slurm/v0.0.45/JOB/7",
        "/openapi/v3",
    ],
)
async def test_a_closed_fence_holds_back_paths_that_are_not_known(path: str) -> None:
    inner = Broken()
    session = Session("http://slurm", StaticToken("t"), transport=FencedTransport(inner, Gate("late"), ("here", "s")))
    with pytest.raises(Fenced):
        await session.request("GET", path, repeatable=True)
    assert not inner.seen
    await session.close()


@pytest.mark.parametrize(
    ("version", "operation"), EVERY_OPERATION, ids=lambda value: getattr(value, "operation", value)
)
async def test_only_what_changes_nothing_is_sent_twice(version: str, operation: wire.Endpoint) -> None:
    inner = Broken()
    with pytest.raises(Unreachable):
        await call(operation, version, Gate(None), inner)
    assert len(inner.seen[1:]) == (1 if operation.operation in WRITES else 3)
