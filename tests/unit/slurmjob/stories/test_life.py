"""The life of a SlurmJob: submitted once as its user, shown, ended, deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from slinky_operator.slurmjob.model.slurm_records import marks
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


async def test_it_is_submitted_as_the_user_of_its_namespace(world: JobWorld) -> None:
    world.job(partition="all", time="10")
    number = await world.submitted()
    (job,) = world.in_slurm()
    assert (job.id, job.user, job.name, job.partition) == (number, "alice", "hello", "all")
    assert marks.read(job.extra) == marks.Mark("uid-team-hello", 0)
    await world.until(lambda: world.status().get("state") == "Running")
    assert world.condition("Submitted")[0] == world.condition("Running")[0] == "True"
    assert world.status()["user"] == "alice"
    assert world.status()["nodes"]
    assert "JobSubmitted" in world.events.reasons()


async def test_its_end_is_shown_and_its_finalizer_goes(world: JobWorld) -> None:
    world.job()
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    world.slurm.world.exit_job(number, 3)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    status = world.status()
    assert (status["state"], status["reason"], status["exitCode"]) == ("Failed", "NonZeroExitCode", 3)
    assert status["endTime"]
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers"))
    assert world.events.reasons().count("JobEnded") == 1
    assert len(world.in_slurm()) == 1


async def test_a_deleted_one_is_cancelled_first(world: JobWorld) -> None:
    world.job()
    number = await world.submitted()
    world.delete()
    await world.step()
    assert world.exists()
    await world.until(lambda: not world.exists())
    (job,) = world.in_slurm()
    assert (job.id, job.state.base) == (number, "CANCELLED")


async def test_with_keep_the_job_runs_on(world: JobWorld) -> None:
    world.job(cancelPolicy="Keep")
    await world.submitted()
    world.delete()
    await world.until(lambda: not world.exists())
    (job,) = world.in_slurm()
    assert job.state.base in {"RUNNING", "PENDING"}


async def test_a_suspended_one_is_submitted_when_it_no_longer_is(world: JobWorld) -> None:
    world.job(suspend=True)
    await world.until(lambda: world.condition("Submitted")[1] == "Suspended")
    assert world.in_slurm() == []
    world.job(suspend=False)
    await world.submitted()


async def test_a_waiting_job_is_held_and_released(world: JobWorld) -> None:
    world.job("first", nodes=4)
    world.job(nodes=4)
    await world.submitted("first")
    await world.until(lambda: world.status("first").get("state") == "Running")
    await world.submitted()
    await world.until(lambda: world.status().get("state") == "Pending")
    world.job(suspend=True)
    await world.until(lambda: world.status().get("held"))
    (job,) = [one for one in world.in_slurm() if one.name == "hello"]
    await world.until(lambda: world.status()["reason"] == "Held")
    world.job(suspend=False)
    await world.until(lambda: world.status()["reason"] != "Held" and not world.status().get("held"))
    assert job.user == "alice"


async def test_a_failed_one_is_submitted_again_as_often_as_it_may(world: JobWorld) -> None:
    world.job(backoffLimit=1)
    first = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    world.slurm.world.exit_job(first, 1)
    await world.until(lambda: world.status().get("jobId") not in {None, first})
    second = world.status()["jobId"]
    assert world.status()["failedAttempts"] == [first]
    await world.until(lambda: world.status().get("state") == "Running")
    world.slurm.world.exit_job(second, 1)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert [marks.read(job.extra).attempt for job in world.in_slurm()] == [0, 1]  # type: ignore[union-attr]


async def test_one_that_has_ended_goes_after_its_time(world: JobWorld) -> None:
    world.job(ttlSecondsAfterFinished=0)
    number = await world.submitted()
    world.slurm.world.exit_job(number)
    await world.until(lambda: not world.exists())


async def test_the_end_comes_from_slurmdbd_when_slurmctld_has_forgotten(world: JobWorld) -> None:
    world.cluster(accounting={})
    world.job()
    number = await world.submitted()
    await world.clients.close_all()
    world.slurm.world.exit_job(number, 7)
    world.slurm.world.clock.advance(1000)
    await world.start()
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.status()["reason"], world.status()["exitCode"]) == ("NonZeroExitCode", 7)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("BOOT_FAIL", "BootFail"),
        ("DEADLINE", "Deadline"),
        ("NODE_FAIL", "NodeFail"),
        ("OUT_OF_MEMORY", "OutOfMemory"),
        ("PREEMPTED", "Preempted"),
        ("TIMEOUT", "Timeout"),
    ],
)
async def test_each_end_of_slurms_is_the_reason(world: JobWorld, word: str, reason: str) -> None:
    """Without cgroups, no real Slurm says OUT_OF_MEMORY."""
    world.job()
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    world.slurm.world.exit_job(number, 1)
    ended = world.slurm.world.jobs[number]
    world.slurm.world.jobs[number] = replace(ended, state=replace(ended.state, base=word))
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.status()["state"], world.status()["reason"]) == ("Failed", reason)


async def test_without_history_it_is_said_that_the_end_was_not_seen(world: JobWorld) -> None:
    world.job()
    number = await world.submitted()
    await world.clients.close_all()
    world.slurm.world.exit_job(number)
    world.slurm.world.clock.advance(1000)
    await world.start()
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.status()["state"], world.status()["reason"]) == ("Unknown", "EndNotSeen")


async def test_an_array_is_one_job_with_counts(world: JobWorld) -> None:
    world.job(array="0-2")
    number = await world.submitted()
    await world.until(lambda: (world.status().get("array") or {}).get("running") == 3)
    for job in world.in_slurm():
        world.slurm.world.exit_job(job.id, 2 if job.array_task_id == 1 else 0)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    status = world.status()
    assert status["jobId"] == number
    assert (status["array"]["succeeded"], status["array"]["failed"], status["state"]) == (2, 1, "Failed")
    assert status["exitCode"] == 2


async def test_one_waits_for_another(world: JobWorld) -> None:
    world.job("second", dependsOn=[{"name": "hello"}])
    await world.until(lambda: world.condition("Submitted", "second")[1] == "DependencyNotSubmitted")
    world.job()
    number = await world.submitted()
    await world.submitted("second")
    (job,) = [one for one in world.in_slurm() if one.name == "second"]
    assert f"afterok:{number}" in job.dependency


async def test_a_loop_is_named(world: JobWorld) -> None:
    world.job("a", dependsOn=[{"name": "b"}])
    world.job("b", dependsOn=[{"name": "c"}])
    world.job("c", dependsOn=[{"name": "a"}])
    await world.until(lambda: all(world.condition("Submitted", name)[1] == "DependencyLoop" for name in "abc"))
    assert "a -> b -> c -> a" in world.condition("Submitted", "a")[2]
    assert world.in_slurm() == []
