"""Watches whose polls are refused: tokens that expire, rights and calls that are missing."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from slurm_client import MintedToken, errors
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.watch.watching import KEY, client, next_of, until


async def test_a_token_that_expires_under_a_watch_is_renewed(fake: FakeSlurmrestd) -> None:
    now = [time.time() - 10_000]
    token = MintedToken(KEY, lifetime=timedelta(hours=4), clock=lambda: now[0])
    fake.add_node("w-0")
    async with client(fake, token=token) as slurm, slurm.watch_nodes() as events:
        await next_of(events)
        fake.key = b"r" * 32
        await until(lambda: isinstance(slurm.node_watch.status.error, errors.Unauthorized))
        fake.key = KEY
        fake.update_node("w-0", comment="after")
        assert (await next_of(events)).new.comment == "after"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"token": "garbage"}, errors.Unauthorized),
        ({"api_version": "v0.0.40"}, errors.NotSupported),
    ],
)
async def test_a_refusal_before_the_first_list_is_raised_at_once(
    fake: FakeSlurmrestd, options: dict[str, Any], expected: type[errors.SlurmError]
) -> None:
    fake.add_node("w-0")
    async with client(fake, **options) as slurm, slurm.watch_nodes() as events:
        waiting = asyncio.create_task(slurm.node_watch.wait_synced())
        listing = asyncio.create_task(slurm.watch_nodes().initial())
        with pytest.raises(expected):
            await next_of(events)
        for others in (waiting, listing):
            with pytest.raises(expected):
                await asyncio.wait_for(others, 120)
        assert isinstance(slurm.node_watch.status.error, expected)
        # Nobody reads any more.
        polls = slurm.node_watch.status.polls
        await until(lambda: slurm.node_watch._task is None or slurm.node_watch._task.done())
        assert slurm.node_watch.status.polls == polls == 1


async def test_a_refusal_when_reading_begins_again_is_raised_at_once(fake: FakeSlurmrestd) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm:
        async with slurm.watch_nodes() as events:
            await next_of(events)
        polls = slurm.node_watch.status.polls
        fake.faults.add("/nodes/", status=401, body="no", content_type="text/plain", times=None)
        async with slurm.watch_nodes() as events:
            assert (await next_of(events)).key == "w-0"
            with pytest.raises(errors.Unauthorized):
                await next_of(events)
        assert slurm.node_watch.status.polls == polls + 1


async def test_a_token_refused_for_long_is_raised_and_one_refused_for_a_moment_is_not(
    fake: FakeSlurmrestd,
) -> None:
    fake.add_node("w-0")
    async with client(fake) as slurm, slurm.watch_nodes() as events, slurm.node_watch.reader() as patient:
        assert (await next_of(events)).key == "w-0"
        refused = fake.faults.add("/nodes/", status=401, body="no", content_type="text/plain", times=2)
        await until(lambda: slurm.node_watch.status.failures >= 1)
        fake.update_node("w-0", comment="between")
        assert (await next_of(events, lambda event: event.new is not None and event.new.comment == "between")).old
        fake.faults.remove(refused)
        fake.faults.add("/nodes/", status=401, body="no", content_type="text/plain", times=None)
        with pytest.raises(errors.Unauthorized):
            await next_of(events)
        # Another reader waits on, and sees in the status why.
        assert (await next_of(patient)).key == "w-0"
        polls = slurm.node_watch.status.polls
        await until(lambda: slurm.node_watch.status.polls > polls + 2)
        assert isinstance(slurm.node_watch.status.error, errors.Unauthorized)
        assert slurm.node_watch.objects
