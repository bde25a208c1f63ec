"""A user ends the job of somebody else on real Slurm without accounting: the others get answers again."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import subprocess
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from typing_extensions import override

from hack.images.rootfs import ensure
from slinky_operator.slurm.pod_templates.controller_process import HUNG, WORDS, first_process
from slurm_client import MintedToken, SlurmClient
from slurm_client.errors import SlurmError
from slurm_client.models import JobSpec
from tests.support.daemons import DaemonError
from tests.support.slurm_host import SlurmHost
from tests.support.slurm_series import OLDER_IN_FULL

T = TypeVar("T")

PATIENCE = 150

SLEEP = JobSpec(script="#!/bin/sh\nexec sleep 600\n", working_directory="/")


class Followed(SlurmHost):
    """A slurmctld below the first process of its pod, which asks it more often than there."""

    @override
    def start_slurmctld(self) -> None:
        self.spawn("slurmctld", ["sh", "-c", first_process(pause=1, patience=8).replace("$$", "$")])
        self.wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False).stdout, "slurmctld answers")

    def start_again(self) -> str:
        """Do as the kubelet does when a container has ended of itself; returns what the container said last."""
        daemon = self.daemons["slurmctld"]
        try:
            code = daemon.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise DaemonError(f"nobody has ended slurmctld\n{self.logs()}") from None
        assert code == HUNG, self.logs()
        self.stop("slurmctld", kill=True)
        self.start_slurmctld()
        return daemon.log.read_text(errors="replace")


def end_as_another(host: SlurmHost, version: str, job: int) -> None:
    """End a job as another user, by a call of slurmrestd's own that no client checks."""
    call = http.client.HTTPConnection("127.0.0.1", host.rest_port, timeout=60)
    headers = {"X-SLURM-USER-TOKEN": host.token("daemon")}
    with contextlib.closing(call), contextlib.suppress(OSError, http.client.HTTPException):
        call.request("DELETE", f"/slurm/{version}/job/{job}", headers=headers)
        call.getresponse().read()


async def answered(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until there is an answer: slurmrestd's threads may still wait for the slurmctld that was."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await ask()
            except SlurmError:
                await asyncio.sleep(0.5)


@pytest.mark.parametrize("series", OLDER_IN_FULL)
async def test_a_user_who_ends_the_job_of_somebody_else_stops_the_others_for_a_moment_only(series: str) -> None:
    with Followed(ensure(series), extra_conf="SlurmctldLogFile=/var/spool/slurmctld/log\n") as host:
        host.add_node("w-0")
        async with SlurmClient(host.url, MintedToken(host.jwt_key, "root")) as slurm:
            running = await slurm.submit_job(SLEEP)
            await asyncio.to_thread(host.wait_for, lambda: host.job_state(running.id) == "RUNNING", "the job runs")
            waiting = await slurm.submit_job(JobSpec(script="#!/bin/sh\n", hold=True, name="keeps-its-place"))
            await asyncio.to_thread(host.wait_for, lambda: host.has_saved("keeps-its-place"), "the job is saved")
            await asyncio.to_thread(end_as_another, host, str(slurm.api_version), waiting.id)
            said = await asyncio.to_thread(host.start_again)
            assert WORDS in said
            assert [node.name for node in (await answered(slurm.nodes)).items] == ["w-0"]
            jobs = {job.id: job.state.base for job in await answered(slurm.all_jobs)}
            assert jobs == {running.id: "RUNNING", waiting.id: "PENDING"}
            await answered(lambda: slurm.cancel_job(running.id))
