"""Jobs whose submission had no answer, and of which slurmdbd has the record before it has the mark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.stages.submitted import HISTORY_PATIENCE
from slinky_operator.slurmjob.model.stages.unanswered import AGAIN_S, ASKED_FOR
from slurm_client.models import Job
from tests.unit.slurmjob.stories.test_once import killed_at
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


def submitted(world: JobWorld) -> tuple[str, str, str]:
    return world.condition("Submitted")


async def only_in_slurmdbd(world: JobWorld) -> int:
    """Lose the answer to a submission, and its job in slurmctld; slurmdbd has it without the mark."""
    world.cluster(accounting={})
    world.job()
    await killed_at(world, lambda status: "jobId" in status)
    (job,) = world.in_slurm()
    world.slurm.world.finish_job(job.id, extra="")
    world.slurm.world.forget_job(job.id)
    world.ahead += timedelta(hours=1)
    return int(job.id)


async def missed(world: JobWorld) -> None:
    """slurmctld's list is known not to have the job: from now on slurmdbd is asked."""
    memory = world.reconciler._memory
    await world.until(lambda: any(one.missing_since is not None for one in memory.values()))


def on_record(world: JobWorld) -> dict[int, Job]:
    found: Any = world.slurm.world.jobs
    history: dict[int, Job] = found.history
    return history


def marked(world: JobWorld, number: int) -> None:
    """The mark has come to slurmdbd."""
    found = on_record(world)
    found[number] = replace(found[number], extra=Mark("uid-team-hello", 0).text)


async def test_the_mark_is_waited_for(world: JobWorld) -> None:
    number = await only_in_slurmdbd(world)
    await missed(world)
    await world.until(lambda: submitted(world)[1] == "Submitting")
    for _ in range(5):
        found = await world.step()
        assert found.requeue_after
    assert submitted(world)[1] == "Submitting"
    marked(world, number)
    await world.until(lambda: world.status().get("state") == "Succeeded")
    assert world.status()["jobId"] == number


async def test_a_mark_that_comes_later_is_found_and_until_then_the_job_is_named(world: JobWorld) -> None:
    number = await only_in_slurmdbd(world)
    await missed(world)
    world.ahead += HISTORY_PATIENCE
    await world.until(lambda: submitted(world)[1] == "SubmissionUnknown")
    assert f"job_extra, or their end has not been recorded yet): {number}. " in submitted(world)[2]
    assert world.in_slurm() == []
    found = await world.step()
    assert 0 < (found.requeue_after or 0) <= AGAIN_S
    marked(world, number)
    await world.until(lambda: world.status().get("state") == "Succeeded")
    assert (world.status()["jobId"], submitted(world)[1]) == (number, "Submitted")


async def test_it_is_not_asked_for_ever(world: JobWorld) -> None:
    _ = await only_in_slurmdbd(world)
    await missed(world)
    world.ahead += HISTORY_PATIENCE
    await world.until(lambda: submitted(world)[1] == "SubmissionUnknown")
    world.ahead += ASKED_FOR
    assert (await world.step()).requeue_after is None
