"""Time limits, the circuit, concurrency and closing, with a fake server that does not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from slurm_client import JobSpec, MintedToken, ReservationSpec, SlurmClient, errors
from slurm_client.connection.circuit import Circuit
from slurm_client.connection.session import RetryPolicy
from slurm_client.testing import FakeSlurmrestd
from tests.support.listener import listening
from tests.unit.slurm_client.clients import KEY, circuit_of, client


async def test_a_server_that_never_answers_is_given_up_in_time(fake: FakeSlurmrestd) -> None:
    async with client(fake, timeout=3600) as slurm:
        await slurm.connect()
        fake.faults.hang()
        with pytest.raises(errors.Timeout) as late:
            await slurm.nodes(timeout=0.2)
        assert str(late.value).endswith(f" s [GET {fake.url}/slurm/{slurm.api_version}/nodes/]")
        with pytest.raises(errors.Timeout) as late:
            await slurm.node("w-0", timeout=0.2)
        assert str(late.value).endswith(f" s [GET {fake.url}/slurm/{slurm.api_version}/node/w-0]")


async def test_a_server_that_never_answers_the_first_question_says_what_was_asked_for(fake: FakeSlurmrestd) -> None:
    async with client(fake, timeout=3600) as slurm:
        fake.faults.hang()
        with pytest.raises(errors.Timeout, match=rf"\[negotiation for get_nodes on {fake.url}\]"):
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
            ended.set()

    async with listening(drip) as port:
        async with SlurmClient(f"http://127.0.0.1:{port}", "token", timeout=3.0) as slurm:
            with pytest.raises(errors.Timeout):
                await slurm.connect()
        await ended.wait()


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


async def test_no_call_waits_for_the_first_answer_longer_than_it_was_told(fake: FakeSlurmrestd) -> None:
    async with client(fake, timeout=3600) as slurm:
        fake.faults.hang()
        for call in (
            slurm.nodes(5, timeout=0.1),
            slurm.submit_job(JobSpec(script="x"), timeout=0.1),
            slurm.cancel_job("7_1", timeout=0.1),
            slurm.update_partition("all", timeout=0.1),
            slurm.create_reservation(ReservationSpec(name="r"), timeout=0.1),
            slurm.request("GET", "/slurm/{version}/nodes/", timeout=0.1),
        ):
            with pytest.raises(errors.Timeout):
                await call
