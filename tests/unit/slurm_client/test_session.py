"""Calls through real HTTP to a fake server that misbehaves."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_client import CallableToken, MintedToken, SlurmClient, errors
from slurm_client.circuit import Circuit
from slurm_client.models import JobSpec
from slurm_client.session import RetryPolicy
from slurm_client.testing import FakeSlurmrestd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY = b"k" * 32
SOON = RetryPolicy(attempts=3, first_pause=0.001, longest_pause=0.002)


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd(key=KEY) as server:
        for number in range(3):
            server.add_node(f"w-{number}")
        yield server


@asynccontextmanager
async def client(fake: FakeSlurmrestd, **options: Any) -> AsyncIterator[SlurmClient]:
    options.setdefault("retry", SOON)
    options.setdefault("circuit", Circuit(threshold=0))
    async with SlurmClient(fake.url, options.pop("token", MintedToken(KEY)), **options) as slurm:
        yield slurm


def circuit_of(slurm: SlurmClient) -> str:
    return slurm.circuit.name


def parser_of(slurm: SlurmClient) -> str | None:
    return slurm.api_version


# negotiation


async def test_negotiation_asks_from_the_newest_downwards_once() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake) as slurm:
        assert parser_of(slurm) is None
        await asyncio.gather(*(slurm.nodes() for _ in range(5)))
        assert parser_of(slurm) == "v0.0.42"
        assert len([request for request in fake.requests if request.path.endswith("/ping/")]) == 4


async def test_a_server_that_is_upgraded_is_asked_again() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake) as slurm:
        await slurm.nodes()
        fake.upgrade("26.05.5")
        await slurm.nodes()
        await slurm.nodes()
        assert (slurm.api_version, slurm.slurm_version) == ("v0.0.45", "26.05.5")


async def test_a_server_that_drops_the_parser_is_asked_again() -> None:
    async with FakeSlurmrestd(release="24.11.5", versions=["v0.0.40"]) as fake, client(fake) as slurm:
        fake.add_node("w-0")
        assert await slurm.connect() == "v0.0.40"
        fake.versions = ("v0.0.42", "v0.0.43")
        assert len(await slurm.nodes()) == 1
        assert slurm.api_version == "v0.0.43"


async def test_a_pinned_parser_is_not_given_up() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake, api_version="v0.0.41") as slurm:
        await slurm.nodes()
        fake.upgrade("26.05.5")
        with pytest.raises(errors.NotSupported):
            await slurm.nodes()
    with pytest.raises(ValueError, match=r"v0\.0\.39"):
        SlurmClient("http://localhost", "token", api_version="v0.0.39")


async def test_a_server_without_a_common_parser_is_not_supported(fake: FakeSlurmrestd) -> None:
    fake.versions = ("v0.0.38",)
    async with client(fake) as slurm:
        with pytest.raises(errors.NotSupported):
            await slurm.connect()


async def test_negotiation_works_while_slurmctld_is_away(fake: FakeSlurmrestd) -> None:
    fake.faults.controller_down()
    fake.controller_up = False
    async with client(fake) as slurm:
        assert await slurm.connect() == "v0.0.45"
        (ping,) = await slurm.ping()
        assert not ping.responding
        with pytest.raises(errors.ControllerDown):
            await slurm.nodes()


async def test_what_a_parser_lacks_is_refused_before_it_is_sent(fake: FakeSlurmrestd) -> None:
    async with client(fake, api_version="v0.0.42") as slurm:
        await slurm.connect()
        sent = slurm.calls
        with pytest.raises(errors.NotSupported) as refused:
            await slurm.create_node("NodeName=x State=CLOUD")
        assert refused.value.available_in == ("v0.0.44", "v0.0.45")
        with pytest.raises(errors.NotSupported, match="memory_update_delay"):
            await slurm.submit_job(JobSpec(script="#!/bin/sh", other={"memory_update_delay": 3}))
        assert slurm.calls == sent


async def test_an_old_server_without_bulk_updates_gets_single_ones() -> None:
    async with FakeSlurmrestd(release="24.05.4") as fake, client(fake) as slurm:
        for number in range(5):
            fake.add_node(f"w-{number}")
        await slurm.drain_nodes(fake.nodes, "reason")
        assert all(node.is_drain for node in fake.nodes.values())
        assert len(fake.calls("post_node")) == 5
        with pytest.raises(errors.NotFound):
            await slurm.undrain_nodes(["a-unknown", *fake.nodes])
        assert not any(node.is_drain for node in fake.nodes.values())


# tokens


async def test_a_refused_token_is_renewed_once(fake: FakeSlurmrestd) -> None:
    tokens = iter(["garbage", jwt.encode({"sun": "root", "iat": 1, "exp": 4_000_000_000}, KEY)])
    async with client(fake, token=CallableToken(lambda: next(tokens), keep=timedelta(hours=1))) as slurm:
        assert len(await slurm.nodes()) == 3
        assert len(fake.calls("get_nodes")) == 2


async def test_a_write_with_a_refused_token_is_repeated_too(fake: FakeSlurmrestd) -> None:
    tokens = iter(["garbage", jwt.encode({"sun": "root", "iat": 1, "exp": 4_000_000_000}, KEY)])
    async with client(fake, token=CallableToken(lambda: next(tokens), keep=timedelta(hours=1))) as slurm:
        await slurm.drain_nodes(["w-0"], "reason")
        assert fake.nodes["w-0"].reason_set_by == "root"


async def test_a_token_that_cannot_be_renewed_is_unauthorized_after_one_try(fake: FakeSlurmrestd) -> None:
    async with client(fake, token="garbage") as slurm:
        with pytest.raises(errors.Unauthorized):
            await slurm.nodes()
        assert len(fake.calls("get_nodes")) == 1
    async with client(fake, token=CallableToken(lambda: "garbage too")) as slurm:
        with pytest.raises(errors.Unauthorized):
            await slurm.nodes()


async def test_plain_text_401_is_unauthorized(fake: FakeSlurmrestd) -> None:
    fake.faults.add("/nodes/", status=401, body="Authentication failure", content_type="text/plain", times=None)
    async with client(fake) as slurm:
        with pytest.raises(errors.Unauthorized, match="Authentication failure"):
            await slurm.nodes()


async def test_the_user_name_header_is_sent(fake: FakeSlurmrestd) -> None:
    async with client(fake, user_name="alice") as slurm:
        job = await slurm.submit_job(JobSpec(script="#!/bin/sh\n"))
        assert (await slurm.job(job.id)).user == "alice"


# repetition


async def test_reads_are_repeated_after_a_broken_connection(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.disconnect("/nodes/", times=2)
        assert len(await slurm.nodes()) == 3
        assert len(fake.calls("get_nodes")) == 3


async def test_repetition_ends(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.disconnect("/nodes/", times=None)
        with pytest.raises(errors.Unreachable) as gone:
            await slurm.nodes()
        assert gone.value.sent
        assert len(fake.calls("get_nodes")) == 3


async def test_writes_that_were_sent_are_never_repeated(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        for call in (
            slurm.drain_nodes(["w-0"], "reason"),
            # So many are not asked for first.
            slurm.delete_nodes([f"w-{number}" for number in range(9)]),
            slurm.submit_job(JobSpec(script="#!/bin/sh\n")),
            slurm.reconfigure(),
            slurm.requeue_job(1),
        ):
            before = len(fake.requests)
            fault = fake.faults.add("", disconnect=True, times=None)
            with pytest.raises(errors.Unreachable) as gone:
                await call
            assert gone.value.sent
            assert len(fake.requests) == before + 1
            fake.faults.remove(fault)


async def test_a_refused_connection_is_not_sent_and_is_tried_again(fake: FakeSlurmrestd) -> None:
    async with client(fake, retry=RetryPolicy(attempts=50, first_pause=0.01, longest_pause=0.05)) as slurm:
        await slurm.connect()
        await fake.stop()
        before = slurm.calls
        write = asyncio.create_task(slurm.drain_nodes(["w-0"], "reason"))
        while slurm.calls < before + 2:  # noqa: ASYNC110 - that a call was refused is seen by the next one
            await asyncio.sleep(0.001)
        await fake.start()
        await write
        assert fake.nodes["w-0"].is_drain
    async with SlurmClient("http://127.0.0.1:1", "token", retry=SOON) as slurm:
        with pytest.raises(errors.Unreachable) as gone:
            await slurm.connect()
        assert not gone.value.sent


async def test_a_slow_502_is_not_asked_for_again(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.controller_down(delay=0.05)
        with pytest.raises(errors.ControllerDown) as down:
            await slurm.nodes()
        assert (down.value.status, down.value.number) == (502, 1800)
        assert len(fake.calls("get_nodes")) == 1


# silence


async def test_a_server_that_never_answers_is_given_up_in_time(fake: FakeSlurmrestd) -> None:
    async with client(fake, timeout=3600) as slurm:
        await slurm.connect()
        fake.faults.hang()
        with pytest.raises(errors.Timeout) as late:
            await slurm.nodes(timeout=0.2)
        assert str(late.value).endswith(f" s [GET /slurm/{slurm.api_version}/nodes/]")
        with pytest.raises(errors.Timeout) as late:
            await slurm.node("w-0", timeout=0.2)
        assert str(late.value).endswith(f" s [GET /slurm/{slurm.api_version}/node/w-0]")


async def test_a_server_that_never_answers_the_first_question_says_what_was_asked_for(fake: FakeSlurmrestd) -> None:
    async with client(fake, timeout=3600) as slurm:
        fake.faults.hang()
        with pytest.raises(errors.Timeout, match=r"\[negotiation for get_nodes\]"):
            await slurm.nodes(timeout=0.2)


async def test_a_server_that_drips_is_given_up_in_time() -> None:
    ended = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            writer.close()
            ended.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with SlurmClient(f"http://127.0.0.1:{port}", "token", timeout=0.3) as slurm:
        with pytest.raises(errors.Timeout):
            await slurm.connect()
    await ended.wait()
    server.close()
    await server.wait_closed()


async def test_one_hanging_server_delays_no_other(fake: FakeSlurmrestd) -> None:
    async with FakeSlurmrestd(key=KEY) as other, client(fake, timeout=3600) as stuck, client(other) as free:
        await stuck.connect()
        fake.faults.hang()
        waiting = [asyncio.create_task(stuck.nodes()) for _ in range(20)]
        await free.nodes()
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_the_circuit_opens_and_closes_again(fake: FakeSlurmrestd) -> None:
    now = 0.0
    circuit = Circuit(threshold=2, first_pause=10.0, longest_pause=10.0, clock=lambda: now)
    async with client(fake, circuit=circuit, retry=RetryPolicy(attempts=1)) as slurm:
        await slurm.connect()
        fake.faults.controller_down()
        for _ in range(2):
            with pytest.raises(errors.ControllerDown):
                await slurm.nodes()
        assert circuit_of(slurm) == "open"
        assert isinstance(slurm.circuit.error, errors.ControllerDown)
        sent = len(fake.requests)
        with pytest.raises(errors.CircuitOpen):
            await slurm.nodes()
        assert len(fake.requests) == sent
        fake.faults.clear()
        now = 10.0
        assert circuit_of(slurm) == "half-open"
        await slurm.nodes()
        assert circuit_of(slurm) == "closed"


async def test_a_request_that_fails_counts_once(fake: FakeSlurmrestd) -> None:
    async with client(fake, circuit=Circuit(threshold=5), retry=RetryPolicy(attempts=1)) as slurm:
        await slurm.connect()
        fake.faults.disconnect("/nodes/", times=None)
        for failures in (1, 2):
            with pytest.raises(errors.Unreachable):
                await slurm.nodes()
            assert slurm.circuit.failures == failures
    async with SlurmClient("http://127.0.0.1:1", "token", retry=RetryPolicy(attempts=1)) as slurm:
        with pytest.raises(errors.Unreachable):
            await slurm.connect()
        assert slurm.circuit.failures == 1


async def test_refusals_do_not_open_the_circuit(fake: FakeSlurmrestd) -> None:
    async with client(fake, circuit=Circuit(threshold=1)) as slurm:
        for _ in range(3):
            with pytest.raises(errors.NotFound):
                await slurm.node("nosuch")
        assert slurm.circuit.name == "closed"


async def test_requests_at_the_same_time_are_bounded(fake: FakeSlurmrestd) -> None:
    at_once = most = 0
    all_are_under_way = asyncio.Event()
    real = fake._answer

    async def held(*arguments: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if at_once == 3:
            all_are_under_way.set()
        # Nobody gets an answer before as many are waiting for one as may: a fourth would be seen here.
        await all_are_under_way.wait()
        try:
            return await real(*arguments)
        finally:
            at_once -= 1

    async with client(fake, max_concurrency=3) as slurm:
        await slurm.connect()
        fake._answer = held  # type: ignore[method-assign, assignment]
        await asyncio.gather(*(slurm.node(f"w-{number % 3}") for number in range(30)))
    assert most == 3


async def test_a_closed_client_says_so(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.nodes()
    with pytest.raises(errors.ClientClosed, match="closed") as gone:
        await slurm.nodes()
    assert not gone.value.sent


async def test_calls_under_way_hear_that_the_client_was_closed_wherever_they_wait(fake: FakeSlurmrestd) -> None:
    slurm = SlurmClient(fake.url, MintedToken(KEY), timeout=3600.0, max_concurrency=2)
    await slurm.connect()
    fake.faults.hang()
    # Two wait for an answer, the others for their turn.
    calls = [asyncio.create_task(slurm.nodes()) for _ in range(5)]
    while slurm.calls < 3:  # noqa: ASYNC110 - the fake sets no event
        await asyncio.sleep(0.005)
    await slurm.close()
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one) for one in found] == [errors.ClientClosed] * 5
    assert not any(task.cancelling() for task in calls)


async def test_negotiation_hears_that_the_client_was_closed(fake: FakeSlurmrestd) -> None:
    slurm = SlurmClient(fake.url, MintedToken(KEY), timeout=3600.0)
    fake.faults.hang()
    calls = [asyncio.create_task(slurm.connect()), asyncio.create_task(slurm.node("w-0"))]
    while not slurm.calls:  # noqa: ASYNC110 - the fake sets no event
        await asyncio.sleep(0.005)
    await slurm.close()
    found = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one) for one in found] == [errors.ClientClosed] * 2


async def test_a_cancelled_call_is_cancelled(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.hang()
        call = asyncio.create_task(slurm.nodes())
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


# answers that are none


async def test_a_server_that_dies_in_the_middle_of_an_answer(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.add("/nodes/", truncate=0.5)
        assert len(await slurm.nodes()) == 3
        fake.faults.add("/nodes/", truncate=0.5, times=None)
        with pytest.raises(errors.Unreachable):
            await slurm.nodes()


async def test_a_cut_body_is_not_a_short_list(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        fake.faults.add("/nodes/", cut=0.9)
        with pytest.raises(errors.Truncated):
            await slurm.nodes()


@pytest.mark.parametrize("body", ["{}", '{"nodes": {}}', '{"nodes": 3}', '{"errors": null}', "", "null", "[]", "ok"])
async def test_a_good_answer_without_the_list_is_no_empty_cluster(fake: FakeSlurmrestd, body: str) -> None:
    fake.faults.add("/nodes/", body=body)
    async with client(fake) as slurm:
        with pytest.raises(errors.DecodeError):
            await slurm.nodes()


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("default backend - 404", "text/plain"),
        ("<html><title>404 Not Found</title></html>", "text/html"),
        ("", "text/plain"),
        ('{"kind": "Status", "reason": "NotFound", "code": 404}', "application/json"),
        ('{"errors": []}', "application/json"),
    ],
)
async def test_a_404_of_a_proxy_is_not_the_absence_of_a_node(
    fake: FakeSlurmrestd, body: str, content_type: str
) -> None:
    async with client(fake) as slurm:
        await slurm.connect()
        fake.faults.add("/(node|job|partition)/", status=404, body=body, content_type=content_type, times=None)
        for call in (slurm.node("w-0"), slurm.job(1), slurm.partition("all"), slurm.delete_node("w-0")):
            with pytest.raises(errors.ServerError):
                await call


async def test_an_error_with_status_200_is_an_error(fake: FakeSlurmrestd) -> None:
    fake.faults.add("/nodes/", body={"nodes": [], "errors": [{"error_number": 1800, "description": "away"}]})
    async with client(fake) as slurm:
        with pytest.raises(errors.ControllerDown):
            await slurm.nodes()


async def test_nodes_changed_while_partitions_are_not_is_a_500_that_means_changed() -> None:
    async with FakeSlurmrestd(release="24.11.5") as fake, client(fake) as slurm:
        fake.add_node("w-0")
        fake.world.partitions_changed = 0
        before = int(time.time()) - 1
        fake.update_node("w-0", comment="new")
        listing = await slurm.nodes(before)
        assert listing is not None
        assert listing[0].comment == "new"


@pytest.mark.parametrize("name", ["", "a,b", "a/b", "w-[0-3]", "a b", "a?x=1", "a\n"])
async def test_a_name_that_would_become_something_else_in_the_url_is_refused(fake: FakeSlurmrestd, name: str) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.InvalidRequest):
            await slurm.node(name)
        with pytest.raises(errors.InvalidRequest):
            await slurm.delete_node(name)


async def test_nothing_is_sent_for_no_names(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.drain_nodes([], "reason")
        assert await slurm.jobs_on_nodes([]) == ()
        assert not fake.requests


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    body=st.one_of(
        st.binary(max_size=60),
        st.sampled_from(
            [
                b'{"nodes":null}',
                b'{"nodes":[{"name":"n","state":null}],"errors":null}',
                b'{"nodes":[{"name":"n","cpus":1e400,"weight":' + b"9" * 400 + b"}]}",
                b'{"jobs":[{"job_id":-1}],"pings":3,"statistics":[],"partitions":{}}',
                b'{"errors":[{"error_number":"x"}]}',
                b'{"errors":{"a":1}}',
                b'{"warnings":[1,null,"w"],"nodes":[]}',
                b"\xff\xfe{",
            ]
        ),
    ),
    status=st.sampled_from([200, 204, 206, 301, 304, 400, 401, 403, 404, 405, 409, 422, 500, 502, 503, 504, 511, 599]),
    content_type=st.sampled_from(["application/json", "text/plain", "text/html; charset=x", ""]),
)
async def test_whatever_is_answered_only_our_errors_come_out(body: bytes, status: int, content_type: str) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, content=body, headers={"content-type": content_type} if content_type else {})

    slurm = SlurmClient(
        "http://slurm", "token", transport=httpx.MockTransport(answer), api_version="v0.0.45", retry=SOON
    )
    slurm._session._negotiation.version = "v0.0.45"
    async with slurm:
        for call in (
            slurm.ping(),
            slurm.nodes(),
            slurm.nodes(1),
            slurm.node("n"),
            slurm.update_nodes(["a", "b"], state="DRAIN"),
            slurm.delete_node("n"),
            slurm.jobs(1),
            slurm.job(1),
            slurm.job_states(),
            slurm.cancel_job(1),
            slurm.cancel_jobs([1]),
            slurm.submit_job(JobSpec(script="x")),
            slurm.update_job(1, JobSpec(hold=True)),
            slurm.requeue_job(1),
            slurm.job_resources(1),
            slurm.partitions(),
            slurm.partition("p"),
            slurm.reservations(),
            slurm.diag(),
            slurm.conf(),
            slurm.licenses(),
            slurm.shares(),
            slurm.reconfigure(),
        ):
            try:
                await call
            except errors.SlurmError as error:
                assert not type(error).__name__.startswith("_")  # noqa: PT017 - an answer may be good, too
                str(error)
