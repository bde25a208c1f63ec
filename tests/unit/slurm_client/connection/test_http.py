"""Headers, proxies, Bearer tokens and servers that want no token."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from slurm_client import CallableToken, SlurmClient, errors
from slurm_client.testing import FakeSlurmrestd
from tests.support.listener import listening
from tests.unit.slurm_client.clients import client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SECRET = "secret-of-the-header"


async def test_headers_go_with_every_request(fake: FakeSlurmrestd) -> None:
    async with client(fake, headers={"X-Gateway-Key": SECRET, "Authorization": "Basic eDp5"}) as slurm:
        await slurm.nodes()
        await slurm.request("POST", "/slurm/{version}/node/w-0", body={"comment": "x"})
    assert {each.headers["X-Gateway-Key"] for each in fake.requests} == {SECRET}
    assert {each.headers["Authorization"] for each in fake.requests} == {"Basic eDp5"}
    assert all(each.headers["X-SLURM-USER-TOKEN"] for each in fake.requests)


@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({"x-slurm-user-token": SECRET}, {}),
        ({"X-SLURM-USER-NAME": SECRET}, {}),
        ({"Accept-Encoding": SECRET}, {}),
        ({"Content-Length": SECRET}, {}),
        ({"authorization": SECRET}, {"bearer": True}),
        ({"": SECRET}, {}),
        ({"a b": SECRET}, {}),
        ({"a\r\nb": SECRET}, {}),
        ({"a": f"{SECRET}\r\nX-SLURM-USER-NAME: root"}, {}),
        ({"a": f"{SECRET}ü"}, {}),
        ({"a": ""}, {}),
        ({"a": SECRET * 1000}, {}),
    ],
)
def test_headers_that_are_the_clients_own_or_none_at_all_are_refused(
    headers: dict[str, str], options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="header") as refused:
        SlurmClient("http://slurm", "t", headers=headers, **options)
    assert SECRET not in str(refused.value)


async def test_a_bearer_token_is_sent_as_such_and_renewed(fake: FakeSlurmrestd) -> None:
    tokens = iter(["first", "second"])
    token = CallableToken(lambda: next(tokens), keep=timedelta(hours=1))
    fake.faults.add("/nodes/", status=401, body="Authentication failure", content_type="text/plain")
    fake.key = None
    async with client(fake, token=token, bearer=True, api_version="v0.0.45") as slurm:
        slurm._session._negotiation.version = "v0.0.45"
        await slurm.nodes()
    assert [each.headers["Authorization"] for each in fake.requests] == ["Bearer first", "Bearer second"]
    assert not any("X-SLURM-USER-TOKEN" in each.headers for each in fake.requests)


async def test_no_token_is_sent_where_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "slurmrestd.sock"
    async with FakeSlurmrestd(unix_socket=path) as fake, SlurmClient("http://slurm", unix_socket=path) as slurm:
        with pytest.raises(errors.Unauthorized) as refused:
            await slurm.nodes()
        assert not {"X-SLURM-USER-TOKEN", "Authorization"} & set(fake.requests[0].headers)
        assert len(fake.requests) == 1
        assert str(refused.value) == (
            f"Authentication failure; this client sends no token [GET /slurm/v0.0.45/ping/ on unix:{path} -> 401]"
        )


@pytest.mark.parametrize("token", ["a\nb", "a\r\nX-SLURM-USER-NAME: root", "tökén", "a" * 10_000])
@pytest.mark.parametrize("bearer", [False, True])
async def test_a_token_that_is_no_header_is_not_repeated_in_the_error(
    fake: FakeSlurmrestd, token: str, bearer: bool
) -> None:
    async with client(fake, token=token, bearer=bearer) as slurm:
        with pytest.raises(errors.Unauthorized, match="one line of printable ASCII") as refused:
            await slurm.nodes()
        assert token not in str(refused.value)
        assert refused.value.__cause__ is None
        assert not fake.requests


# proxies


@contextlib.asynccontextmanager
async def proxy(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that gives one answer to everything, and what it was asked."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)

    async with listening(serve) as port:
        yield f"http://user:{SECRET}@127.0.0.1:{port}", seen


async def test_a_proxy_is_asked_for_the_server_with_its_own_password() -> None:
    body = b'{"pings": [{"hostname": "ctld", "responding": true}]}'
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    async with proxy(answer) as (url, seen), SlurmClient("http://slurm.example:6820", "t", proxy=url) as slurm:
        assert (await slurm.ping())[0].hostname == "ctld"
    assert seen[0].startswith(b"GET http://slurm.example:6820/slurm/v0.0.45/ping/ HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " in seen[0]


@pytest.mark.parametrize("url", ["https://slurm.example", "http://slurm.example"])
async def test_a_proxy_that_refuses_is_named_as_such_and_nothing_was_sent(url: str) -> None:
    page = b"HTTP/1.1 407 Give me <b>money</b>\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"
    async with proxy(page) as (proxy_url, _), SlurmClient(url, "t", proxy=proxy_url) as slurm:
        with pytest.raises(errors.Unreachable, match="407") as refused:
            await slurm.nodes(timeout=5)
    words = str(refused.value)
    assert SECRET not in words
    assert "money" not in words
    assert f"{url}/slurm/v0.0.45/ping/" in words
    assert not refused.value.sent


@pytest.mark.parametrize("url", ["", "proxy:3128", f"ftp://a:{SECRET}@proxy", f"socks5://a:{SECRET}@proxy", "http://"])
def test_a_useless_proxy_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="proxy") as refused:
        SlurmClient("http://slurm", "t", proxy=url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "options", [{"unix_socket": "/run/s"}, {"transport": httpx.MockTransport(lambda _: httpx.Response(200))}]
)
def test_a_proxy_goes_with_the_network_alone(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="proxy"):
        SlurmClient("http://slurm", "t", proxy="http://proxy:3128", **options)
