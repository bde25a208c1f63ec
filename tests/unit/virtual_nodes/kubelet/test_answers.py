"""The kubelet API over TLS: paths, callers, shares, and what happens to those who say or take nothing."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from urllib.parse import parse_qs

import httpx
import pytest
from typing_extensions import override

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import TOKEN_REVIEWS, Resource
from slinky_operator.slurm import naming
from slinky_operator.slurm.connection.job_output import JobOutput
from slinky_operator.virtual_nodes.arrival import PATH as PATH_OF_MARK
from slinky_operator.virtual_nodes.kubelet.answers import Limits
from slinky_operator.virtual_nodes.kubelet.listener import EACH
from slinky_operator.virtual_nodes.kubelet.output import Source, Sources
from slinky_operator.virtual_nodes.kubelet.served_pods import ServedPod
from tests.support.kubelet_callers import Api, ask, caller, kubelet_api, objects_of_slurm, until
from tests.support.memory_kube import MemoryKube

PATH = f"{naming.JOB_OUTPUT_FOLDER}/a.out"
LOGS = "/containerLogs/team/p/main"


class Reviewer(MemoryKube):
    """An API server that knows the token of one who may use every Node, and of one who may not."""

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        spec = body["spec"]
        if resource is TOKEN_REVIEWS:
            known = spec["token"] in {"admin", "user"}
            return {"status": {"authenticated": known, "user": {"username": spec["token"]}}}
        return {"status": {"allowed": spec["user"] == "admin"}}


def answer(status: int, content: bytes = b"") -> httpx.Response:
    """An answer that has not been read yet."""
    return httpx.Response(status, stream=httpx.ByteStream(content), headers={"ETag": '"1"'})


class Node:
    """A job log server with one file."""

    def __init__(self) -> None:
        self.content = b"one\n"

    def answer(self, request: httpx.Request) -> httpx.Response:
        offset = int(parse_qs(request.url.query.decode())["offset"][0])
        if offset > len(self.content):
            return answer(416, b"the file has %d bytes\n" % len(self.content))
        if offset == len(self.content):
            return answer(204)
        return answer(200, self.content[offset:])


@pytest.fixture
def node() -> Node:
    return Node()


def running(node: Node, limits: Limits | None = None) -> AbstractAsyncContextManager[Api]:
    output = JobOutput(transport=httpx.MockTransport(node.answer))
    return kubelet_api(Reviewer(), objects_of_slurm("10.0.0.1"), limits=limits, output=output)


@pytest.fixture
async def api(node: Node) -> AsyncIterator[Api]:
    async with running(node) as found:
        yield found


async def test_whoever_arrives_reads_the_mark_of_the_process_and_nothing_else(api: Api) -> None:
    api.leads[0] = False
    assert await ask(api.port, PATH_OF_MARK, caller()) == (200, '{"slurmVirtualNodes": "mark"}')
    assert (await ask(api.port, PATH_OF_MARK, caller(), method="POST"))[0] == 500
    api.leads[0] = True
    assert (await ask(api.port, f"{PATH_OF_MARK}/more", caller()))[0] == 401
    await until(lambda: not len(api.service._listener.unknown), "places are not given back")


async def test_of_followers_that_come_together_one_looks_in_a_turn_of_the_event_loop(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, loop, turn, looks = Sources.of, asyncio.get_running_loop(), 0, Counter[int]()

    def count() -> None:
        nonlocal turn
        turn += 1
        loop.call_soon(count)

    async def look(sources: Sources, found: ServedPod, container: str) -> Source:
        looks[turn] += 1
        return await of(sources, found, container)

    loop.call_soon(count)
    monkeypatch.setattr(Sources, "of", look)
    api.table.put("team", "p", PATH, state="Succeeded")
    # All have been answered with the first bytes of TLS before the first one asks.
    context = caller()
    opened = [await asyncio.open_connection("127.0.0.1", api.port, ssl=context) for _ in range(EACH // 2)]
    for _, writer in opened:
        writer.write(f"GET {LOGS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n\r\n".encode())
    answers = await asyncio.gather(*(reader.read() for reader, _ in opened))
    assert {one.split()[1] for one in answers} == {b"200"}
    assert sum(looks.values()) >= len(opened)
    assert set(looks.values()) == {1}


async def test_output_is_sent_to_those_who_may_use_the_node(api: Api) -> None:
    api.table.put("team", "p", PATH)
    assert (await ask(api.port, LOGS, caller()))[0] == 401
    assert (await ask(api.port, LOGS, caller(), token="nobody"))[0] == 401
    assert (await ask(api.port, LOGS, caller(), token="user"))[0] == 403
    status, body = await ask(api.port, LOGS, caller(), token="admin")
    assert (status, body) == (200, "4\r\none\n\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/containerLogs/team/other/main", 404, 'pod "other" in namespace "team" is on no virtual Node'),
        ("GET", "/containerLogs/team/p/other", 404, 'pod "p" has no container "other"'),
        ("POST", "/exec/team/p/main?command=sh", 501, "kubectl exec and kubectl cp cannot reach"),
        ("POST", "/attach/team/p/main", 501, "kubectl attach cannot reach"),
        ("POST", "/portForward/team/p", 501, "kubectl port-forward cannot reach"),
        ("GET", "/pods", 501, "serves the output of containers, and nothing else"),
        ("GET", "/metrics/resource", 501, "nothing else"),
        ("GET", "/", 501, "nothing else"),
        ("GET", "/containerLogs/team/..%2F..%2Fx/main", 501, "nothing else"),
        ("POST", LOGS, 405, "GET"),
        ("GET", f"{LOGS}?previous=true", 400, "previous terminated container"),
        ("GET", f"{LOGS}?timestamps=true", 400, "no time of each line"),
    ],
)
async def test_everything_else_gets_one_sentence(api: Api, method: str, path: str, status: int, words: str) -> None:
    api.table.put("team", "p", PATH)
    found, body = await ask(api.port, path, caller(), token="admin", method=method)
    assert found == status
    assert words in body
    assert body.count("\n") == 1
    assert (await ask(api.port, path, caller(), token="user", method=method))[0] == 403


async def test_a_pod_that_waits_says_what_for(api: Api) -> None:
    api.table.put("team", "p")
    status, body = await ask(api.port, LOGS, caller(), token="admin")
    assert (status, body) == (400, 'container "main" in pod "p" is waiting to start: Queued\n')


async def test_a_replica_that_does_not_lead_answers_nothing(api: Api) -> None:
    api.leads[0] = False
    status, body = await ask(api.port, LOGS, caller(), token="admin")
    assert status == 500
    assert "does not lead" in body


async def test_a_follower_sees_what_is_written_and_the_end(api: Api, node: Node) -> None:
    api.table.put("team", "p", PATH)
    shown = asyncio.create_task(ask(api.port, f"{LOGS}?follow=true", caller(), token="admin"))
    await until(lambda: len(api.answers.streams) == 1, "no output is sent")
    node.content += b"two\n"
    api.table.put("team", "p", PATH, state="Succeeded")
    assert "one\n" in (await shown)[1]
    assert "two\n" in (await shown)[1]
    assert not len(api.answers.streams)


async def test_output_that_cannot_be_read_to_its_end_is_not_taken_for_the_whole(api: Api, node: Node) -> None:
    api.table.put("team", "p", PATH)
    node.content = b"x" * 10_000_000
    before = node.answer

    def failing(request: httpx.Request) -> httpx.Response:
        if "offset=0" in str(request.url):
            return before(request)
        return answer(503, b"no answer from the file system\n")

    api.answers._output._http._transport = httpx.MockTransport(failing)
    status, body = await ask(api.port, LOGS, caller(), token="admin")
    assert status == 200
    assert "job-logs: the output after byte 131072 cannot be read: the job log server answered 503" in body
    assert not body.endswith("0\r\n\r\n")


async def test_one_namespace_has_its_share_of_outputs_and_others_theirs(node: Node) -> None:
    async with running(node, Limits(each=2, total=3)) as api:
        for namespace in ("flood", "team"):
            api.table.put(namespace, "p", PATH)
        flood = [
            asyncio.create_task(ask(api.port, "/containerLogs/flood/p/main?follow=true", caller(), token="admin"))
            for _ in range(10)
        ]
        await until(lambda: sum(one.done() for one in flood) == 8, "those beyond the share are turned away")
        assert {one.result()[0] for one in flood if one.done()} == {500}
        assert (await ask(api.port, LOGS, caller(), token="admin"))[0] == 200
        for one in flood:
            one.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        await until(lambda: not len(api.answers.streams), "places are not given back")


async def test_one_who_takes_nothing_is_dropped(node: Node) -> None:
    node.content = b"x" * 50_000_000
    async with running(node, Limits(taking=0.2)) as api:
        api.table.put("team", "p", PATH)
        _, writer = await asyncio.open_connection("127.0.0.1", api.port, ssl=caller(), limit=1024)
        writer.write(f"GET {LOGS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n\r\n".encode())
        await until(lambda: len(api.answers.streams) == 1, "nothing is sent")
        await until(lambda: not len(api.answers.streams), "it still has its place")
        writer.transport.abort()


async def test_one_address_has_few_connections_that_say_nothing(api: Api) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", api.port) for _ in range(150)]
    unknown = api.service._listener.unknown
    await until(lambda: len(unknown) == EACH, "an address has its share")
    for _, writer in silent:
        writer.close()
    await until(lambda: not len(unknown), "places are not given back")
    assert (await ask(api.port, LOGS, caller(), token="admin"))[0] == 404


async def test_one_that_asks_nothing_after_the_handshake_is_shown_out(node: Node) -> None:
    async with running(node) as api:
        api.service._listener._asking = 0.5
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port, ssl=caller())
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError, ssl.SSLError)):
            await reader.readexactly(1)
        writer.close()
        await until(lambda: not len(api.service._listener.unknown), "its place is not given back")
