"""What `cancel_jobs` says became of each job, of which slurmrestd tells the failures only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.testing import FakeSlurmrestd
from tests.unit.slurm_client.clients import KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slurm_client.models import JobResult


def told(results: Sequence[JobResult]) -> list[tuple[str, int | None]]:
    return [(result.id, result.error.number if result.error else None) for result in results]


async def test_each_job_that_was_named_has_a_result(fake: FakeSlurmrestd) -> None:
    async with SlurmClient(fake.url, MintedToken(KEY, "slurm")) as slurm:
        jobs = [fake.add_job(nodes=[], state="PENDING") for _ in range(2)]
        before = slurm.calls
        results = await slurm.cancel_jobs([jobs[0].id, 999_999, jobs[1].id, jobs[0].id])
        # One to agree on a data parser, one for the jobs: nothing is looked up.
        assert slurm.calls <= before + 2
        assert told(results) == [(str(jobs[0].id), None), (str(jobs[1].id), None), ("999999", 2017)]
        assert told(await slurm.cancel_jobs([jobs[0].id])) == [(str(jobs[0].id), 2021)]


async def test_each_job_that_a_filter_means_has_a_result(fake: FakeSlurmrestd) -> None:
    async with SlurmClient(fake.url, MintedToken(KEY, "slurm")) as slurm:
        waits = fake.add_job(nodes=[], state="PENDING", user="alice", account="a", name="x")
        runs = fake.add_job(nodes=["w-0"], user="alice", account="b", name="y")
        other = fake.add_job(nodes=["w-0"], user="bob", account="a", name="x")
        ended = fake.add_job(nodes=["w-0"], user="alice", state="FAILED")
        assert told(await slurm.cancel_jobs(user="alice", states=["pending"])) == [(str(waits.id), None)]
        # Named and filtered: those that are both.
        assert told(await slurm.cancel_jobs([runs.id, other.id], user="alice")) == [(str(runs.id), None)]
        assert await slurm.cancel_jobs(user="carol") == ()
        assert told(await slurm.cancel_jobs(nodes=["w-0"])) == [(str(other.id), None)]
        assert fake.jobs[ended.id].state.base == "FAILED"


async def test_of_an_array_the_tasks_that_were_refused_are_named(fake: FakeSlurmrestd) -> None:
    async with SlurmClient(fake.url, MintedToken(KEY, "slurm")) as slurm:
        done = fake.add_job(nodes=["w-0"], array_job_id=70, array_task_id=0, state="COMPLETED")
        fake.add_job(nodes=["w-0"], array_job_id=70, array_task_id=1)
        results = told(await slurm.cancel_jobs(["70_1"]))
        assert results == [("70_1", None)]
        assert (str(done.id), 2021) in told(await slurm.cancel_jobs([70]))


async def test_jobs_of_others_are_refused_to_users(fake: FakeSlurmrestd) -> None:
    mine = fake.add_job(nodes=[], state="PENDING", user="alice")
    theirs = fake.add_job(nodes=["w-0"], user="bob")
    async with SlurmClient(fake.url, MintedToken(KEY, "alice")) as slurm:
        assert told(await slurm.cancel_jobs([mine.id, theirs.id])) == [(str(mine.id), None), (str(theirs.id), 2002)]
        for refused in (
            slurm.cancel_job(theirs.id),
            slurm.hold_job(theirs.id),
            slurm.requeue_job(theirs.id),
        ):
            with pytest.raises(errors.PermissionDenied):
                await refused
        (requeued,) = await slurm.requeue_jobs([theirs.id])
        assert requeued.error is not None
        assert requeued.error.number == 2002
    assert fake.jobs[theirs.id].is_running
