"""Calls with tokens that a fake server rejects, and the user that the tokens are for."""

from __future__ import annotations

from datetime import timedelta

import jwt
import pytest

from slurm_client import CallableToken, errors
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import KEY, client


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
