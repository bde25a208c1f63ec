"""Exactly one job for one SlurmJob, whatever ends the operator, and whatever Slurm answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from slinky_operator.kube.objects import Object
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model.slurm_records import marks
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.stages.late_calls import SETTLED
from slurm_client import errors
from tests.support.slurm_jobs import Killed
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


class Behind:
    """A cache that shows an object as it was."""

    def __init__(self, obj: Object) -> None:
        self._obj = obj

    def get(self, *_: str) -> Object:
        return self._obj


async def killed_at(world: JobWorld, which: Any) -> None:
    """Run passes until the operator ends right before the status that `which` picks, and start another."""

    def before(status: dict[str, Any]) -> None:
        if which(status):
            raise Killed

    world.kube.before_status = before
    with pytest.raises(Killed):
        await world.until(lambda: False)
    world.kube.before_status = None
    await world.kill()


async def test_killed_between_the_submission_and_its_number(world: JobWorld) -> None:
    names = {f"job-{number}" for number in range(15)}
    for name in names:
        world.job(name)
    for _ in names:
        # One that was submitted before, and is found meanwhile, ends nothing.
        await killed_at(world, lambda status: "answeredAt" in (status.get("submission") or {}))
    assert len(world.in_slurm()) == len(names)
    world.ahead += 2 * SETTLED
    await world.until(lambda: all(world.status(name).get("jobId") for name in names))
    assert sorted(job.name for job in world.in_slurm()) == sorted(names)


async def test_killed_before_slurm_was_asked(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def killed(*_: Any) -> None:
        raise Killed

    world.job()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", killed)
        with pytest.raises(Killed):
            await world.until(lambda: False)
    await world.kill()
    assert world.status()["submission"]["startedAt"]
    assert world.in_slurm() == []
    world.ahead += SETTLED + timedelta(seconds=5)
    await world.submitted()
    assert len(world.in_slurm()) == 1


async def test_an_answer_that_is_lost_is_looked_for(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    real = slurm_calls.submit

    async def unanswered(*arguments: Any) -> Any:
        _ = await real(*arguments)
        raise errors.Timeout("no answer")

    world.job()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", unanswered)
        await world.until(lambda: world.status().get("jobId"))
    assert len(world.in_slurm()) == 1


async def test_a_second_operator_that_began_is_noticed(world: JobWorld) -> None:
    """The status is begun for the version that was read: a cache that is behind leads to nothing."""
    world.job()
    await world.step()
    stale = world.kube.objects["slurmjobs", "team", "hello"]
    number = await world.submitted()
    world.jobs.remove(stale)
    before = len(world.slurm.requests)
    world.reconciler.objects = Behind(stale)  # type: ignore[assignment]
    await world.step()
    assert [one.path for one in world.slurm.requests[before:] if one.path.endswith("submit")] == []
    assert [job.id for job in world.in_slurm()] == [number]


async def test_nothing_is_submitted_before_calls_have_settled(world: JobWorld) -> None:
    world.job()
    await killed_at(world, lambda status: "jobId" in status)
    del world.slurm.world.jobs[world.in_slurm()[0].id]
    await world.until(lambda: world.condition("Submitted")[1] == "Submitting")
    assert world.in_slurm() == []
    world.ahead += SETTLED + timedelta(seconds=5)
    await world.submitted()
    assert len(world.in_slurm()) == 1


async def test_what_may_have_been_forgotten_is_not_submitted_again(world: JobWorld) -> None:
    world.job()
    await killed_at(world, lambda status: "jobId" in status)
    del world.slurm.world.jobs[world.in_slurm()[0].id]
    world.ahead += timedelta(hours=1)
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionUnknown")
    assert world.condition("Submitted")[0] == "Unknown"
    assert world.in_slurm() == []
    world.delete()
    await world.until(lambda: not world.exists())


async def test_the_clock_of_an_earlier_operator_that_was_ahead_makes_nothing_recent(world: JobWorld) -> None:
    """A job that has run may be forgotten by then, and there is no accounting that would know it."""
    ahead = timedelta(minutes=10)
    world.ahead += ahead
    world.job()
    await killed_at(world, lambda status: "jobId" in status)
    del world.slurm.world.jobs[world.in_slurm()[0].id]
    world.ahead -= ahead

    def is_listed() -> bool:
        queue = world.queues.get("cluster-1")
        return queue is not None and queue.asked_at(world.now()) is not None

    await world.until(is_listed)
    _ = await world.step()
    world.ahead += ahead + SETTLED + timedelta(seconds=5)
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionUnknown")
    assert world.in_slurm() == []


async def test_a_job_of_the_same_user_that_was_given_the_mark_is_neither_shown_nor_cancelled(world: JobWorld) -> None:
    """Two namespaces may be granted the same user, whose jobs can be changed from both."""
    world.job()
    number = await world.submitted()
    world.job("other")
    other = await world.submitted("other")
    await world.until(lambda: world.status().get("state") == world.status("other").get("state") == "Running")
    (ours,) = [job for job in world.in_slurm() if job.id == number]
    world.slurm.world.set_job_state(other, "RUNNING", extra=ours.extra)
    world.slurm.world.exit_job(number, 3)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.status()["jobId"], world.status()["exitCode"]) == (number, 3)
    world.job("third")
    third = await world.submitted("third")
    world.slurm.world.set_job_state(other, "RUNNING", extra=Mark("uid-team-third", 0).text)
    world.delete("third")
    await world.until(lambda: not world.exists("third"))
    states = {job.id: job.state.base for job in world.in_slurm()}
    assert (states[third], states[other]) == ("CANCELLED", "RUNNING")


async def test_of_two_jobs_with_the_mark_the_first_since_the_submission_is_taken(world: JobWorld) -> None:
    world.job()
    await killed_at(world, lambda status: "jobId" in status)
    (ours,) = world.in_slurm()
    early = replace(ours, id=ours.id - 1, submit_time=ours.submit_time - timedelta(minutes=1))
    late = replace(ours, id=ours.id + 1)
    for forged in (early, late):
        world.slurm.world.jobs[forged.id] = forged
    assert await world.submitted() == ours.id


async def test_what_was_not_submitted_has_no_job_whatever_its_mark(world: JobWorld) -> None:
    world.job("first")
    number = await world.submitted("first")
    world.slurm.world.set_job_state(number, "RUNNING", extra=Mark("uid-team-hello", 0).text)
    world.job(suspend=True)
    await world.until(lambda: world.condition("Submitted")[1] == "Suspended")
    assert world.status().get("jobId") is None


def test_records_of_one_job_stay_together() -> None:
    def job(**fields: Any) -> Any:
        return SimpleNamespace(**{"array_job_id": None, "het_job_id": None, "submit_time": None, **fields})

    tasks = [job(id=7, array_job_id=7), job(id=9, array_job_id=7)]
    parts = [job(id=10, het_job_id=10), job(id=11, het_job_id=10)]
    assert marks.own_records([*tasks, *parts], 7, None) == tuple(tasks)
    assert marks.own_records([*tasks, *parts], 11, None) == tuple(parts)
    assert marks.own_records([*parts, *tasks], None, None) == tuple(tasks)
    assert marks.own_records(tasks, 8, None) == marks.own_records([], None, None) == ()


async def test_the_job_of_another_user_with_the_mark_is_not_taken(world: JobWorld) -> None:
    world.job()
    await killed_at(world, lambda status: "jobId" in status)
    (job,) = world.in_slurm()
    world.slurm.world.jobs[job.id] = replace(job, user="mallory")
    await world.until(lambda: world.condition("Submitted")[1] == "Submitting")
    assert world.status().get("jobId") is None
    world.delete()
    world.ahead += 2 * SETTLED + timedelta(seconds=5)
    await world.until(lambda: not world.exists())
    assert world.in_slurm()[0].state.base != "CANCELLED"
