"""Jobs of other users on real Slurm: by root's token with the user's name, and by the user's own token."""

from __future__ import annotations

import pytest

from hack.images.rootfs import ensure
from slurm_client import MintedToken, SlurmClient
from slurm_client.models import JobSpec
from tests.support.slurm_host import SlurmHost

SPEC = JobSpec(script="#!/bin/sh\n", hold=True)


@pytest.mark.parametrize("series", ["24.11", "26.05"])
async def test_jobs_belong_to_the_user_that_the_client_is_for(series: str) -> None:
    with SlurmHost(ensure(series)) as host:
        host.add_node("w-0")
        async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
            for daemon in (slurm.as_user("daemon"), slurm.as_user("daemon", MintedToken(host.jwt_key, "daemon"))):
                job = await daemon.submit_job(SPEC)
                assert (await slurm.job(job.id)).user == "daemon"
                await daemon.cancel_job(job.id)
                assert not (await slurm.wait_job(job.id, first_pause=0.1)).succeeded
            mine = await slurm.submit_job(SPEC)
            assert (await slurm.job(mine.id)).user == "root"
