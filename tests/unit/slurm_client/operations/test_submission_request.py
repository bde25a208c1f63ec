"""The request of a submission that is not made: it is the one that would be sent, and carries no token."""

from __future__ import annotations

import json

import pytest

from slurm_client import JobSpec, MintedToken, SlurmClient, errors
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import KEY, client

SPEC = JobSpec(script="#!/bin/sh\necho 'grüße'\n", name="a", tasks=2, environment={"A": "b"}, extra="mark")


async def test_it_is_what_is_sent(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        shown = await slurm.submission_request(SPEC)
        assert fake.calls("post_job_submit") == []
        _ = await slurm.submit_job(SPEC)
        (sent,) = fake.calls("post_job_submit")
        assert (shown.method, shown.path) == (sent.method, sent.path) == ("POST", "/slurm/v0.0.45/job/submit")
        assert json.loads(shown.body) == sent.body
        assert str(len(shown.body.encode())) == sent.headers["Content-Length"]
        assert sent.headers["X-SLURM-USER-TOKEN"] not in repr(shown)


async def test_it_fails_as_a_submission_does(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.NotSupported):
            _ = await slurm.submission_request(JobSpec(script="x", other={"nosuch": 1}))
        with pytest.raises(errors.InvalidArgument):
            _ = await slurm.submission_request(JobSpec(script="x", other={"comment": {1, 2}}))
        assert fake.calls("post_job_submit") == []


async def test_without_a_server_there_is_none() -> None:
    async with SlurmClient("http://127.0.0.1:9", MintedToken(KEY), timeout=0.5) as slurm:
        with pytest.raises(errors.Unreachable):
            _ = await slurm.submission_request(SPEC)
