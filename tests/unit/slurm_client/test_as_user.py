"""A client for another user: its own token or name, the same connections."""

from __future__ import annotations

import pytest

from slurm_client import MintedToken, StaticToken, errors
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import KEY, client


def headers(fake: FakeSlurmrestd) -> dict[str, str]:
    return {name.lower(): value for name, value in fake.requests[-1].headers.items()}


async def test_the_token_of_the_parent_speaks_for_the_user(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        await slurm.nodes()
        calls = slurm.calls
        alice = slurm.as_user("alice")
        await alice.nodes()
        # No negotiation of its own, on the same connections.
        assert slurm.calls == alice.calls == calls + 1
        assert alice.api_version == slurm.api_version
        assert headers(fake)["x-slurm-user-name"] == "alice"
        await slurm.nodes()
        assert "x-slurm-user-name" not in headers(fake)


async def test_a_user_with_a_token_is_known_by_it(fake: FakeSlurmrestd) -> None:
    async with client(fake, user_name="operator") as slurm:
        alice = slurm.as_user("alice", MintedToken(KEY, "alice"))
        job = await alice.submit_job(JobSpec(script="#!/bin/sh\n", name="hers"))
        assert "x-slurm-user-name" not in headers(fake)
        assert (await slurm.job(job.id)).user == "alice"
        assert headers(fake)["x-slurm-user-name"] == "operator"
        with pytest.raises(errors.Unauthorized):
            await slurm.as_user("bob", "no token").nodes()
        assert len(await slurm.nodes()) == 3


async def test_closing_it_leaves_the_parent(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        async with slurm.as_user("alice") as alice:
            assert len(await alice.nodes()) == 3
        assert len(await slurm.nodes()) == 3


async def test_it_ends_with_the_parent(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        alice = slurm.as_user("alice")
        reader = alice.watch_nodes()
        assert (await anext(reader)).key == "w-0"
    with pytest.raises(errors.ClientClosed):
        await alice.nodes()
    assert [event async for event in reader if event.key not in {"w-0", "w-1", "w-2"}] == []


@pytest.mark.parametrize("name", ["", " ", "a b", "alice\r\nX: y", "-rf", "a" * 300, "älice", None, 7])
async def test_what_is_no_user_is_refused(fake: FakeSlurmrestd, name: str) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.InvalidArgument) as refused:
            slurm.as_user(name)
        assert refused.value.field == "user"
        with pytest.raises(errors.InvalidArgument):
            slurm.as_user("alice", 7)  # type: ignore[arg-type]
        assert slurm.as_user("alice@example.org", StaticToken("t")) is not None
        assert slurm.calls == 0
