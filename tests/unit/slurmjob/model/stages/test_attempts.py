"""A failure that was seen is not lost, whatever comes between it and the next submission."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.slurmjob.execute import slurm_calls
from slurm_client import errors
from tests.support.slurm_jobs import Killed
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


async def failed(world: JobWorld, **spec: Any) -> int:
    """Let the first job fail; no other is submitted yet."""
    world.job(backoffLimit=1, **spec)
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    world.slurm.world.exit_job(number, 3)
    return number


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any) -> Any:
        raise errors.InvalidRequest("Invalid account")

    monkeypatch.setattr(slurm_calls, "submit", refused)


async def forgotten(world: JobWorld) -> None:
    """Let slurmctld forget all jobs that have ended, and start another operator."""
    await world.clients.close_all()
    world.slurm.world.clock.advance(1000)
    world.ahead += timedelta(seconds=1000)
    await world.start()


async def test_slurm_refuses_for_longer_than_it_remembers(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await failed(world)
    with monkeypatch.context() as patched:
        refuse(patched)
        await world.until(lambda: world.condition("Submitted")[1] == "SubmissionRefused")
        status = world.status()
        assert (status["state"], status["reason"], status["jobId"]) == ("Waiting", "SubmittedAgain", first)
        assert status["submission"]["failure"]["exitCode"] == 3
        assert world.condition("Finished") == (
            "False",
            "SubmittedAgain",
            f"job {first} failed and is submitted again (2 of 2): the script ended with exit code 3",
        )
        assert world.events.reasons().count("SubmittedAgain") == 1
        await forgotten(world)
        await world.until(lambda: world.events.reasons().count("SubmissionRefused") > 1)
        assert world.condition("Finished")[0] == "False"
    world.ahead += timedelta(seconds=1000)
    await world.until(lambda: world.status()["jobId"] != first)
    assert world.status()["failedAttempts"] == [first]
    assert "failure" not in world.status()["submission"]
    assert "exitCode" not in world.status()


async def test_the_failure_is_the_end_once_no_other_may_follow(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await failed(world)
    refuse(monkeypatch)
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionRefused")
    await forgotten(world)
    world.job(backoffLimit=0)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    status = world.status()
    assert (status["state"], status["reason"], status["exitCode"]) == ("Failed", "NonZeroExitCode", 3)
    assert (status["jobId"], status["summary"]) == (first, "the script ended with exit code 3")


async def test_killed_right_after_the_failure_was_noted(world: JobWorld) -> None:
    first = await failed(world)

    def before(status: dict[str, Any]) -> None:
        if (status.get("submission") or {}).get("attempt"):
            raise Killed

    world.kube.before_status = before
    with pytest.raises(Killed):
        await world.until(lambda: False)
    world.kube.before_status = None
    await world.kill()
    await world.until(lambda: world.status()["jobId"] not in {None, first})
    assert len(world.in_slurm()) == 2


async def test_none_is_submitted_while_the_job_that_had_failed_runs_again(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """slurmctld was killed before it had written the end."""
    first = await failed(world)
    with monkeypatch.context() as patched:
        refuse(patched)
        await world.until(lambda: world.condition("Submitted")[1] == "SubmissionRefused")
        world.slurm.world.set_job_state(first, "RUNNING", end_time=None, exit_code=None)
        await world.until(lambda: world.status().get("state") == "Running")
    world.ahead += timedelta(seconds=1000)
    for _ in range(5):
        await world.step()
    assert [job.id for job in world.in_slurm()] == [first]
    world.slurm.world.exit_job(first, 0)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.status()["state"], world.status()["jobId"]) == ("Succeeded", first)


async def test_none_is_submitted_while_it_is_suspended(world: JobWorld) -> None:
    first = await failed(world)
    world.job(suspend=True)
    await world.until(lambda: world.condition("Submitted")[1] == "Suspended")
    assert [job.id for job in world.in_slurm()] == [first]
    world.job(suspend=False)
    await world.until(lambda: world.status()["jobId"] != first)


async def test_a_tenant_that_is_gone_gets_no_other(world: JobWorld) -> None:
    first = await failed(world)
    world.cluster(jobs={"tenants": []})
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.status()["state"], world.status()["exitCode"]) == ("Failed", 3)
    assert [job.id for job in world.in_slurm()] == [first]


async def test_what_it_waited_for_may_be_gone(world: JobWorld) -> None:
    world.job("before")
    number = await world.submitted("before")
    world.slurm.world.exit_job(number)
    await world.until(lambda: world.status("before").get("state") == "Succeeded")
    first = await failed(world, dependsOn=[{"name": "before"}])
    world.kube.forget(SLURMJOBS, world.kube.objects["slurmjobs", "team", "before"])
    await world.until(lambda: world.status()["jobId"] not in {None, first})


async def test_tasks_that_have_failed_before_do_not_count(world: JobWorld) -> None:
    world.job(array="0-1", backoffLimit=1)
    first = await world.submitted()
    await world.until(lambda: (world.status().get("array") or {}).get("running") == 2)
    for job in world.in_slurm():
        world.slurm.world.exit_job(job.id, job.array_task_id)
    await world.until(lambda: world.status().get("jobId") not in {None, first})
    await world.until(lambda: (world.status().get("array") or {}).get("running") == 2)
    for job in world.in_slurm():
        if (job.array_job_id or job.id) != first:
            world.slurm.world.exit_job(job.id)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert world.status()["state"] == "Succeeded"
    assert world.status()["array"] == {"pending": 0, "running": 0, "succeeded": 2, "failed": 0}
