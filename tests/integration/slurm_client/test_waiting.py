"""Waiting for real jobs: arrays, heterogeneous jobs, jobs that slurmctld has forgotten, with slurmdbd and without."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hack.images.rootfs import ensure, ensure_mariadb
from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.models import JobSpec
from tests.support.accounting_host import AccountingHost
from tests.support.mariadb_host import MariadbHost
from tests.support.slurm_host import SlurmHost

if TYPE_CHECKING:
    from collections.abc import Iterator

FORGETFUL = "MinJobAge=2"


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster with two nodes, as a heterogeneous job needs; only the backfill scheduler starts such a job."""
    series: str = request.param
    with SlurmHost(ensure(series), extra_conf="SchedulerParameters=bf_interval=1") as slurm:
        slurm.add_node("w-0", cpus=4)
        slurm.add_node("w-1", cpus=4)
        yield slurm


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def forgetful(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A cluster without accounting that forgets jobs soon."""
    series: str = request.param
    with SlurmHost(ensure(series), extra_conf=FORGETFUL) as slurm:
        slurm.add_node("w-0", cpus=4)
        yield slurm


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def accounting(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """The same with slurmdbd."""
    series: str = request.param
    with (
        MariadbHost(ensure_mariadb()) as mariadb,
        AccountingHost(ensure(series), extra_conf=FORGETFUL, database=mariadb.database("waiting")) as slurm,
    ):
        slurm.add_node("w-0", cpus=4)
        yield slurm


def client(host: SlurmHost) -> SlurmClient:
    return SlurmClient(host.url, MintedToken(host.jwt_key, "root"))


def forget(host: SlurmHost, job: int) -> None:
    """Wait until slurmctld has forgotten a job."""
    host.wait_for(lambda: not host.job_state(job), f"job {job} is forgotten", timeout=180)


async def test_the_exit_code_of_a_job(host: SlurmHost) -> None:
    async with client(host) as slurm:
        good = await slurm.submit_job(JobSpec(script="#!/bin/sh\nexit 0\n"))
        bad = await slurm.submit_job(JobSpec(script="#!/bin/sh\nexit 3\n"))
        assert (await slurm.wait_job(good.id, first_pause=0.1, longest_pause=0.5)).succeeded
        failed = await slurm.wait_job(bad.id, first_pause=0.1, longest_pause=0.5)
        assert not failed.succeeded
        assert failed.ends[0].state.base == "FAILED"


async def test_all_tasks_and_components(host: SlurmHost) -> None:
    array = host.sbatch("exit $((SLURM_ARRAY_TASK_ID == 2))", "--array=0-3%2")
    out = host.run("sbatch", "--parsable", "-n1", "-o", "/dev/null", ":", "-n1", stdin="#!/bin/sh\nexit 0\n").stdout
    het = int(out.split(";")[0])
    async with client(host) as slurm:
        tasks, components = await asyncio.gather(
            slurm.wait_job(array, first_pause=0.1, longest_pause=0.3),
            slurm.wait_job(het, first_pause=0.1, longest_pause=0.3),
        )
        assert [str(end.id) for end in tasks.ends] == [f"{array}_{index}" for index in range(4)]
        assert [str(end.id) for end in tasks.failed] == [f"{array}_2"]
        assert [str(end.id) for end in components.ends] == [f"{het}+0", f"{het}+1"]
        assert components.succeeded


async def test_tasks_of_a_held_array_are_told_apart(host: SlurmHost) -> None:
    array = host.sbatch("true", "--array=1-9:4%2", "--hold", "--comment=found again")
    async with client(host) as slurm:
        assert [task.array_task_id for task in await slurm.job_tasks(array)] == [1, 5, 9]
        assert {job.id for job in await slurm.find_jobs(comment="found again")} == {array}
        with pytest.raises(errors.NotFinished) as late:
            await slurm.wait_job(array, timeout=0.2, first_pause=0.1)
        assert late.value.parts == tuple(f"{array}_{index}" for index in (1, 5, 9))
        await slurm.cancel_job(array)
        assert not (await slurm.wait_job(array, first_pause=0.1, longest_pause=0.3)).succeeded


async def test_without_accounting_the_end_of_a_forgotten_job_is_unknown(forgetful: SlurmHost) -> None:
    job = forgetful.sbatch("exit 0")
    await asyncio.to_thread(forget, forgetful, job)
    async with client(forgetful) as slurm:
        with pytest.raises(errors.EndUnknown) as unknown:
            await slurm.wait_job(job)
        assert unknown.value.parts == (str(job),)


async def test_slurmdbd_knows_how_forgotten_jobs_ended(accounting: SlurmHost) -> None:
    good, bad = accounting.sbatch("exit 0"), accounting.sbatch("exit 3")
    array = accounting.sbatch("exit $SLURM_ARRAY_TASK_ID", "--array=0-1")
    for job in (good, bad, array):
        await asyncio.to_thread(forget, accounting, job)
    async with client(accounting) as slurm:
        assert (await slurm.wait_job(good)).succeeded
        failed = await slurm.wait_job(bad)
        assert failed.ends[0].exit_code is not None
        assert (failed.ends[0].state.base, failed.ends[0].exit_code.return_code) == ("FAILED", 3)
        tasks = await slurm.wait_job(array)
        assert [(str(end.id), end.succeeded) for end in tasks.ends] == [(f"{array}_0", True), (f"{array}_1", False)]
        assert [str(end.id) for end in (await slurm.wait_job(f"{array}_1")).ends] == [f"{array}_1"]
        with pytest.raises(errors.EndUnknown):
            await slurm.wait_job(999_999)
