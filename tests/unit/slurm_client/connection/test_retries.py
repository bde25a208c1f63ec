"""Which calls are repeated when a fake server breaks connections, and how often."""

from __future__ import annotations

import asyncio

import pytest

from slurm_client import SlurmClient, errors
from slurm_client.connection.session import RetryPolicy
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import SOON, client


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
            # They are not asked for first.
            slurm.delete_nodes(["w-0"], are_nodes=True),
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
