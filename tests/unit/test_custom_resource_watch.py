"""The settings of kopf: credentials, and patience."""

from __future__ import annotations

import json
import ssl
import weakref
from collections.abc import Sized
from itertools import islice
from typing import Any, cast

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from slinky_operator.custom_resource_watch import (
    CHUNK,
    IDLE_S,
    LONGEST_PAUSE,
    Credentials,
    ShallowResponse,
    registry,
    settings,
)
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.runtime.garbage_collection import Sweeper


def test_a_cluster_ca_need_not_have_the_extensions_that_strict_checks_demand() -> None:
    context = Credentials(server="https://api").as_ssl_context()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_kopf_never_gives_up_on_an_api_server() -> None:
    backoffs = settings().networking.error_backoffs
    assert not isinstance(backoffs, float | int | Sized)
    for _ in range(2):
        pauses = list(islice(backoffs, 1000))
        assert len(pauses) == 1000
        assert 0 < pauses[0] <= 1
        assert all(0 < pause <= LONGEST_PAUSE for pause in pauses)


def deep(number: int) -> bytes:
    """An object with more levels than kopf's decoder reads."""
    return b'{"deep":' + b'{"a":[' * 2_000 + b"]}" * 2_000 + f',"after":{number}}}'.encode()


async def test_kopfs_session_reads_lists_and_lines_that_are_deep() -> None:
    lines = [deep(number) for number in range(3)]

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/list":
            return web.Response(body=lines[2], content_type="application/json")
        stream = web.StreamResponse()
        await stream.prepare(request)
        for line in lines:
            await stream.write(line + b"\n")
        return stream

    app = web.Application()
    app.router.add_get("/{path}", answer)
    async with TestServer(app) as server, aiohttp.ClientSession(response_class=ShallowResponse) as session:
        async with session.get(server.make_url("/list")) as found:
            assert (await found.json())["after"] == 2
        async with session.get(server.make_url("/watch")) as found:
            text = b"".join([piece async for piece in found.content.iter_chunked(7_000)])
        assert [json.loads(line)["after"] for line in text.splitlines()] == [0, 1, 2]


def test_kopf_lists_few_objects_at_a_time_and_forgets_them_soon() -> None:
    chosen = settings()
    assert chosen.watching.chunk_size == CHUNK
    assert chosen.queueing.idle_timeout == IDLE_S


async def test_the_spec_of_an_event_is_the_mirrors_alone_once_it_was_stored() -> None:
    mirror = Mirror(cast("KubeClient", None), SLURMJOBS)
    handlers = registry(cast("Connection", None), [mirror])
    (handler,) = handlers._watching.get_all_handlers()
    about = {"name": "hello", "namespace": "team", "resourceVersion": "1"}
    event = {"type": "ADDED", "object": {"metadata": about, "spec": {"script": "x"}, "status": {"state": "Running"}}}
    await cast("Any", handler.fn)(type="ADDED", event=event)
    assert event["object"] == {"metadata": about}
    assert mirror.store.items() == [{"metadata": about, "spec": {"script": "x"}, "status": {"state": "Running"}}]


def test_a_megabyte_in_a_cycle_does_not_wait_for_ten_thousand_objects() -> None:
    class Answer:
        pass

    answer: Any = Answer()
    answer.itself = answer
    gone = weakref.ref(answer)
    sweeper = Sweeper(every=3_000_000)
    del answer
    for _ in range(2):
        sweeper.dropped(1_000_000)
    sweeper.dropped(1_000_000)
    assert gone() is None
