"""`slurm.db` on real slurmdbds of both releases and on the fake, in each data parser: history, and slurmdbd itself."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from slurm_client import errors
from slurm_client.models import INFINITE, JobSpec
from tests.integration.slurm_client.accounting.clusters import JOBS
from tests.integration.slurm_client.targets import until

if TYPE_CHECKING:
    from tests.integration.slurm_client.accounting.clusters import AccountingCluster, RealCluster

pytestmark = pytest.mark.long(230)

HOUR = timedelta(hours=1)

_serial = itertools.count(1)


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


@pytest.mark.parametrize("name", JOBS)
async def test_how_a_job_ended(accounting: AccountingCluster, version: str, name: str) -> None:
    async with accounting.client(version) as slurm:
        job = await slurm.db.job(accounting.jobs[name])
    assert (job.id, job.name, job.state.base) == (accounting.jobs[name], name, JOBS[name])
    assert (job.user, job.account, job.partition, job.cluster) == ("root", "root", "all", accounting.cluster)
    assert job.node_list in {"w-0", "w-1"}
    assert job.node_count == 1
    assert job.submit_time is not None
    assert job.start_time is not None
    assert job.submit_time <= job.start_time
    assert (job.end_time is None) == (name == "running")
    assert job.tres_allocated["cpu"] >= 1
    ended = job.exit_code
    assert ended is not None
    assert ended.return_code == {"failed": 3, "signalled": None}.get(name, 0)
    assert ended.signal == (9 if name == "signalled" else None)
    assert (job.killed_by == "root") == (name == "cancelled")
    assert (job.comment == "a comment") == (name == "failed")
    assert job.steps[0].id == f"{job.id}.batch"
    assert job.steps[0].state.base == {
        "cancelled": "CANCELLED",
        "timed-out": "CANCELLED",
        "signalled": "CANCELLED",
    }.get(name, JOBS[name])


async def test_only_the_job_with_a_limit_has_one(accounting: AccountingCluster, version: str) -> None:
    async with accounting.client(version) as slurm:
        assert (await slurm.db.job(accounting.jobs["running"])).time_limit is INFINITE


async def test_tasks_of_an_array(accounting: AccountingCluster, version: str) -> None:
    array = accounting.jobs["array"]
    async with accounting.client(version) as slurm:
        tasks = await slurm.db.job_records(array)
        one = await slurm.db.job(f"{array}_1")
    assert {(job.array_job_id, job.array_task_id, job.state.base) for job in tasks} == {
        (array, 0, "COMPLETED"),
        (array, 1, "FAILED"),
    }
    assert one.array_task_id == 1
    assert one.exit_code is not None
    assert one.exit_code.return_code == 1


async def test_a_job_that_never_was(accounting: AccountingCluster, version: str) -> None:
    async with accounting.client(version) as slurm:
        with pytest.raises(errors.NotFound):
            await slurm.db.job(999_999)
        assert await slurm.db.job_records(999_999) == ()


async def test_jobs_by_filter(accounting: AccountingCluster, version: str) -> None:
    ours = set(accounting.jobs)
    async with accounting.client(version) as slurm:
        since, last = now() - HOUR, now() + HOUR

        async def names(**filters: object) -> set[str]:
            found = await slurm.db.jobs(since, last, **filters)  # type: ignore[arg-type]
            return {job.name for job in found} & ours

        assert await names() == ours
        assert await names(names=["failed", "completed"]) == {"failed", "completed"}
        assert await names(states=["FAILED"]) == {"failed", "signalled", "array"}
        assert await names(states=["TIMEOUT", "CANCELLED"]) == {"timed-out", "cancelled"}
        assert await names(users=["root"]) == ours
        assert await names(accounts=["nobodys"]) == set()
        assert await names(partitions=["all"]) == ours
        assert await slurm.db.jobs(since - 100 * HOUR, since - 99 * HOUR) == ()
        assert all(job.steps == () for job in await slurm.db.jobs(since, last, steps=False))


async def test_history_has_each_job_once_whatever_the_windows(accounting: AccountingCluster, version: str) -> None:
    async with accounting.client(version) as slurm:
        last = now() + timedelta(minutes=1)
        since = last - HOUR
        whole = Counter([job.id async for job in slurm.db.history(since, last, step=HOUR, steps=False)])
        parts = Counter([job.id async for job in slurm.db.history(since, last, step=timedelta(minutes=7), steps=False)])
    assert parts == whole
    assert set(accounting.jobs.values()) <= set(whole)
    assert set(whole.values()) == {1}


async def test_comments_of_a_job_that_has_ended(accounting: AccountingCluster, version: str) -> None:
    job_id, text = accounting.jobs["completed"], f"seen {next(_serial)}"
    async with accounting.client(version) as slurm:
        if version < "v0.0.44":
            with pytest.raises(errors.NotSupported):
                await slurm.db.update_job(job_id, admin_comment=text)
            return
        assert await slurm.db.update_job(job_id, admin_comment=text) == (job_id,)
        assert await slurm.db.update_job(job_id, extra=text) == (job_id,)
        job = await slurm.db.job(job_id)
        assert (job.admin_comment, job.extra, job.comment) == (text, text, "")
        with pytest.raises(errors.NotFound):
            await slurm.db.update_job(999_999, extra=text)


async def test_comments_of_many_jobs_in_one_call(accounting: AccountingCluster, version: str) -> None:
    text, jobs = f"together {next(_serial)}", accounting.jobs
    async with accounting.client(version) as slurm:
        if version < "v0.0.44":
            with pytest.raises(errors.NotSupported):
                await slurm.db.update_jobs([jobs["failed"]], extra=text)
            return
        wanted: list[int | str] = [jobs["completed"], jobs["failed"], f"{jobs['array']}_1", 999_999]
        changed = await slurm.db.update_jobs(wanted, extra=text)
        assert {jobs["completed"], jobs["failed"]} < set(changed)
        assert len(changed) == 3
        assert await slurm.db.update_jobs([999_998, 999_999], extra="none") == ()
        # slurmdbd would take it for all jobs.
        assert await slurm.db.update_jobs([], extra="all") == ()
        found = {job.name: job.extra for job in await slurm.db.jobs(now() - HOUR, now() + HOUR) if job.extra == text}
        assert set(found) == {"completed", "failed", "array"}
        assert (await slurm.db.job(f"{jobs['array']}_0")).extra != text
        assert (await slurm.db.job(jobs["cancelled"])).extra not in {text, "all"}


async def test_what_slurmdbd_says_of_itself(accounting: AccountingCluster, version: str) -> None:
    async with accounting.client(version) as slurm:
        if version >= "v0.0.42":
            (ping,) = await slurm.db.ping()
            assert ping.responding
        else:
            with pytest.raises(errors.NotSupported):
                await slurm.db.ping()
        assert (await slurm.db.diag()).since
        assert {"cpu", "mem", "node"} <= {each.type for each in await slurm.db.tres()}
        assert (await slurm.db.config())["qos"]


async def test_clusters(accounting: AccountingCluster, version: str) -> None:
    name = f"made{next(_serial)}"
    async with accounting.client(version) as slurm:
        own = await slurm.db.cluster(accounting.cluster)
        assert own.controller_port > 0
        await slurm.db.create_cluster(name)
        assert {name, accounting.cluster} <= {each.name for each in await slurm.db.clusters()}
        await slurm.db.delete_cluster(name)
        with pytest.raises(errors.NotFound):
            await slurm.db.cluster(name)


async def test_slurmctld_goes_on_without_slurmdbd_and_tells_it_later(
    accounting: AccountingCluster, version: str
) -> None:
    name = f"meanwhile-{next(_serial)}"
    async with accounting.client(version) as slurm:
        await accounting.stop_slurmdbd()
        try:
            for call in (slurm.db.diag, slurm.db.clusters, slurm.db.tres, slurm.db.config):
                with pytest.raises(errors.DatabaseDown) as caught:
                    await call()
                assert caught.value.sent is False
            with pytest.raises(errors.DatabaseDown):
                await slurm.db.job(accounting.jobs["failed"])
            with pytest.raises(errors.DatabaseDown):
                await slurm.db.create_cluster("unmade")
            job_id = await accounting.run_job(name)
            assert (await slurm.job(job_id)).state.base == "COMPLETED"
        finally:
            await accounting.start_slurmdbd()

        async def told() -> bool:
            found = await slurm.db.job_records(job_id)
            return [job.state.base for job in found] == ["COMPLETED"]

        await until(told)
        assert (await slurm.db.job(job_id)).name == name
        assert "unmade" not in {each.name for each in await slurm.db.clusters()}


async def test_a_token_that_is_refused_is_no_slurmdbd_that_is_down(accounting: AccountingCluster, version: str) -> None:
    async with accounting.client(version) as slurm:
        await slurm.db.diag()
    kept, accounting.key = accounting.key, b"another key of thirty-two bytes.."
    try:
        async with accounting.client(version) as slurm:
            with pytest.raises(errors.Unauthorized):
                await asyncio.wait_for(slurm.db.clusters(), 60)
    finally:
        accounting.key = kept


@pytest.mark.parametrize("series", ["24.11", "26.05"])
async def test_with_slurmdbd_who_ends_a_job_of_another_is_refused_and_its_owner_is_not(
    series: str, request: pytest.FixtureRequest
) -> None:
    cluster: RealCluster = request.getfixturevalue(f"accounting_{series.replace('.', '_')}")
    async with cluster.client(None) as slurm, cluster.client(None, "daemon") as daemon:
        job = await slurm.submit_job(JobSpec(script="#!/bin/sh\n", hold=True))
        for call in (daemon.cancel_job(job.id), slurm.as_user("daemon").cancel_job(job.id)):
            with pytest.raises(errors.PermissionDenied):
                await call
        await slurm.cancel_job(job.id)

        async def cancelled() -> bool:
            return (await slurm.job(job.id)).state.base == "CANCELLED"

        await until(cancelled)
