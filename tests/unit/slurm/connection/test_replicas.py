"""Which of several slurmrestds a call goes to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from typing_extensions import override

from slinky_operator.kube.errors import Fenced
from slinky_operator.slurm.connection.fencing import FencedTransport
from slinky_operator.slurm.connection.replicas import ALIVE_PATH, AT_A_TIME, ReplicaTransport
from slurm_client.wire import CHANGES_NOTHING

SERVICE = "http://10.96.0.9:6820"
A, B, C, D = (f"http://10.0.0.{number}:6820" for number in range(1, 5))
READ = {CHANGES_NOTHING: True}


class Body(httpx.AsyncByteStream):
    """The body of an answer, which must be closed."""

    def __init__(self) -> None:
        self.closed = False

    @override
    async def aclose(self) -> None:
        self.closed = True


@dataclass
class Servers(httpx.AsyncBaseTransport):
    """Servers by URL: silent ones take a request and wait until the test releases them; a frozen one is never alive."""

    silent: set[str] = field(default_factory=set)
    frozen: set[str] = field(default_factory=set)
    broken: dict[str, Exception] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: list[str] = field(default_factory=list)

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = f"{request.url.scheme}://{request.url.netloc.decode()}"
        self.seen.append((url, request.url.path))
        if url in self.frozen or (url in self.silent and request.url.path != ALIVE_PATH):
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled.append(f"{url}{request.url.path}")
                raise
        if url in self.broken:
            raise self.broken[url]
        if request.url.path == ALIVE_PATH:
            return httpx.Response(404)
        self.requests.append(request)
        self.bodies.append(Body())
        return httpx.Response(self.statuses.get(url, 200), headers={"from": url}, stream=self.bodies[-1])

    def asked(self, path: str = "/nodes") -> list[str]:
        return [url for url, seen in self.seen if seen == path]


def replicas(servers: Servers, *urls: str) -> ReplicaTransport:
    return ReplicaTransport(servers, urls, patience=0.01)


async def call(transport: httpx.AsyncBaseTransport, path: str = "/nodes", *, read: bool = True, **options: Any) -> str:
    request = httpx.Request(
        "GET" if read else "POST", f"{SERVICE}{path}", extensions=dict(READ) if read else {}, **options
    )
    response = await transport.handle_async_request(request)
    return response.headers["from"]


async def until(holds: Callable[[], Any]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for belongs to others, who set no event
        await asyncio.sleep(0.001)


async def test_without_replicas_a_call_goes_where_it_says() -> None:
    servers = Servers()
    assert await call(replicas(servers)) == SERVICE
    assert await call(replicas(servers, A)) == A


async def test_a_replica_with_an_address_of_version_6() -> None:
    servers = Servers()
    assert await call(replicas(servers, "http://[fd00::7]:6820", B)) == "http://[fd00::7]:6820"


async def test_calls_stay_with_one_replica_that_answers() -> None:
    servers = Servers()
    transport = replicas(servers, A, B)
    assert [await call(transport) for _ in range(3)] == [A, A, A]
    assert await call(transport, read=False) == A


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ConnectTimeout("nobody")])
async def test_one_that_is_gone_is_passed_over(error: Exception, *, read: bool) -> None:
    servers = Servers(broken={A: error})
    transport = replicas(servers, A, B)
    assert await call(transport, read=read) == B
    assert list(transport.urls) == [B, A]
    assert await call(transport, read=read) == B
    assert servers.asked() == [A, B, B]


async def test_a_body_is_sent_to_the_next_one_too() -> None:
    servers = Servers(broken={A: httpx.ConnectError("refused")})
    assert await call(replicas(servers, A, B), read=False, content=b"{}") == B
    (request,) = servers.requests
    assert await request.aread() == b"{}"
    assert request.headers["host"] == "10.96.0.9:6820"


async def test_a_read_is_answered_by_another_if_one_hangs() -> None:
    servers = Servers(frozen={A})
    transport = replicas(servers, A, B)
    assert await call(transport) == B
    assert list(transport.urls) == [B, A]
    assert servers.cancelled.count(f"{A}/nodes") == 1
    assert await call(transport) == B
    assert servers.asked() == [A, B, B]


async def test_one_that_waits_for_slurmctld_keeps_the_call() -> None:
    servers = Servers(silent={A})
    transport = replicas(servers, A, B)
    answer = asyncio.create_task(call(transport))
    await until(lambda: servers.asked(ALIVE_PATH).count(A) > 2)
    servers.go_on.set()
    assert await answer == A
    assert servers.asked() == [A]
    assert list(transport.urls) == [A, B]


async def test_a_write_that_may_have_arrived_is_not_sent_again() -> None:
    servers = Servers(frozen={A})
    transport = replicas(servers, A, B)
    answer = asyncio.create_task(call(transport, read=False))
    await until(lambda: transport.urls == (B, A))
    # What follows goes to the other one already.
    assert await call(transport, read=False) == B
    servers.go_on.set()
    assert await answer == A
    assert servers.asked() == [A, B]


@pytest.mark.parametrize("error", [httpx.ReadError("reset"), httpx.RemoteProtocolError("ended")])
async def test_a_broken_connection_moves_reads_and_ends_writes(error: Exception) -> None:
    servers = Servers(broken={A: error})
    with pytest.raises(type(error)):
        await call(replicas(servers, A, B), read=False)
    assert servers.asked() == [A]
    assert await call(replicas(servers, A, B)) == B


async def test_if_none_answers_the_last_error_is_that_of_the_call() -> None:
    servers = Servers(broken={A: httpx.ConnectError("a"), B: httpx.ReadError("b")})
    with pytest.raises(httpx.ReadError, match="b"):
        await call(replicas(servers, A, B))
    with pytest.raises(httpx.ConnectError, match="a"):
        # The one that was tried last before is tried last again.
        await call(replicas(servers, B, A), read=True)


async def test_what_one_says_of_slurmctld_is_an_answer() -> None:
    servers = Servers(statuses={A: 502})
    transport = replicas(servers, A, B)
    assert await call(transport) == A
    # Should it be this one's own fault, the other one shows it.
    assert await call(transport) == B


async def test_an_error_of_slurm_does_not_bring_back_one_that_hangs() -> None:
    servers = Servers(frozen={A}, statuses={B: 500})
    transport = replicas(servers, A, B)
    for _ in range(3):
        assert await call(transport) == B
    assert servers.asked() == [A, B, B, B]
    assert list(transport.urls) == [B, A]


async def test_a_replica_that_answers_again_is_as_good_as_others() -> None:
    servers = Servers(frozen={A})
    transport = replicas(servers, A, B)
    assert await call(transport) == B
    servers.frozen = {B}
    assert await call(transport) == A
    assert list(transport.urls) == [A, B]


async def test_no_more_than_some_have_the_same_read() -> None:
    servers = Servers(frozen={A, B, C, D})
    transport = replicas(servers, A, B, C, D)
    answer = asyncio.create_task(call(transport))
    await until(lambda: len(transport.urls) == 4 and transport.urls[0] == D)
    await until(lambda: len(servers.asked()) == AT_A_TIME)
    answer.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await answer
    assert servers.asked() == [A, B, C]
    assert sorted(one for one in servers.cancelled if one.endswith("/nodes")) == [f"{one}/nodes" for one in (A, B, C)]
    # The next call begins with the one that has not been tried.
    servers.frozen = {A, B, C}
    assert await call(transport) == D


async def test_answers_that_nobody_takes_are_closed() -> None:
    servers = Servers(frozen={A, B})
    transport = replicas(servers, A, B, C)
    answer = asyncio.create_task(call(transport))
    await until(lambda: len(servers.asked()) == 3)
    servers.go_on.set()
    assert await answer in {A, B, C}
    await until(lambda: sum(not one.closed for one in servers.bodies) == 1)


async def test_new_replicas_come_after_those_that_are_known() -> None:
    servers = Servers(frozen={A})
    transport = replicas(servers, A, B)
    assert await call(transport) == B
    transport.use((A, B, C))
    assert list(transport.urls) == [B, C, A]
    # Its pod has been replaced, or is ready again.
    transport.use((B, C))
    transport.use((A, B, C))
    assert list(transport.urls) == [B, C, A]
    transport.use((C, A))
    assert list(transport.urls) == [C, A]
    transport.use(())
    assert await call(transport) == SERVICE


async def test_a_bug_is_not_tried_again() -> None:
    servers = Servers(broken={A: ValueError("a bug")})
    with pytest.raises(ValueError, match="a bug"):
        await call(replicas(servers, A, B))
    assert servers.asked() == [A]


async def test_the_fence_is_in_front_of_all_replicas() -> None:
    class Gate:
        def closed_because(self) -> str | None:
            return "late"

    servers = Servers()
    fenced = FencedTransport(replicas(servers, A, B), Gate(), ("here", "slurm"))
    with pytest.raises(Fenced):
        await call(fenced, read=False)
    assert not servers.seen
    assert await call(fenced) == A
    await fenced.aclose()
