"""Jobs that had ended and that slurmctld runs again after a crash are cancelled; all others are left alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_operator.kube.errors import Fenced, Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.slurmjob import ended_jobs
from slinky_operator.slurmjob.ended_jobs import SAVED
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.stages.submitted import CLUSTER_GONE
from slinky_operator.slurmjob.polling import queues
from tests.support.slurm_jobs import until
from tests.unit.slurmjob.stories.test_external import DENIED, external_world, is_over
from tests.unit.slurmjob.stories.test_lost import again, forget
from tests.unit.slurmjob.worlds import JobWorld

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with external_world() as one:
        yield one


async def has_ended(world: JobWorld, name: str = "hello") -> int:
    """Let the work of a job without a script end."""
    world.job(name, script=None, external={})
    number = await world.submitted(name)
    await world.until(lambda: world.status(name).get("state") == "Running")
    world.job(name, external={"ended": {"exitCode": 0}})
    await world.until(lambda: is_over(world, name) and "finalizers" in str(world.kube.objects))
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", name]["metadata"].get("finalizers"))
    await world.step(name)
    return number


def bring_back(world: JobWorld, number: int, state: str = "RUNNING", **values: Any) -> None:
    """Let slurmctld wake up with a state of a moment ago."""
    world.slurm.world.set_job_state(number, state, end_time=None, **values)


def lives(world: JobWorld, number: int) -> bool:
    return not world.slurm.world.jobs[number].is_finished


async def stays(world: JobWorld, number: int) -> None:
    """Wait until the list of jobs has been read again, and look whether the job is left alone."""
    watch = world.queues.get("cluster-1")
    assert watch is not None
    seen = watch.entry.client.job_watch
    polls = seen.status.polls
    await until(lambda: seen.status.polls > polls + 5)
    assert lives(world, number)
    assert "EndedJobCancelled" not in world.events.reasons()


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SUSPENDED"])
async def test_one_whose_work_has_ended_is_cancelled_when_it_is_back(world: JobWorld, state: str) -> None:
    number = await has_ended(world)
    status = world.status()
    bring_back(world, number, state)
    await until(lambda: not lives(world, number))
    await until(lambda: "EndedJobCancelled" in world.events.reasons())
    (told,) = [one for one in world.events.told if one[1] == "EndedJobCancelled"]
    assert f"job {number} had ended" in told[2]
    await world.step()
    assert world.status() == status
    # Should it come once more, it goes once more.
    bring_back(world, number, state)
    await until(lambda: not lives(world, number))


async def test_one_whose_cluster_was_gone_for_long_is_left_alone(world: JobWorld) -> None:
    """Its pods may run on: nothing has said that they ended."""
    world.job(script=None, external={}, ttlSecondsAfterFinished=1)
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    cluster = world.kube.objects["clusters", "ns", "slurm"]
    await world.clients.close_all()
    world.kube.forget(CLUSTERS, cluster)
    await world.step()
    world.ahead += CLUSTER_GONE + timedelta(seconds=1)
    await world.until(lambda: world.condition("Finished")[1] == "ClusterGone")
    world.ahead += timedelta(days=8)
    for _ in range(3):
        await world.step()
    assert world.exists()
    world.kube.put(CLUSTERS, cluster)
    await world.start()
    # For another one the list is read again.
    world.job("other", script=None, external={})
    _ = await world.submitted("other")
    await stays(world, number)


async def test_one_whose_slurmjob_is_gone_by_then_is_cancelled(world: JobWorld) -> None:
    number = await has_ended(world)
    world.delete()
    assert not world.exists()
    bring_back(world, number)
    await until(lambda: not lives(world, number))
    await until(lambda: "EndedJobCancelled" in world.events.reasons())


async def test_one_with_a_script_that_was_deleted_is_cancelled(world: JobWorld) -> None:
    world.slurm.add_node("w-1")
    world.job()
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    world.delete()
    await world.until(lambda: not world.exists())
    bring_back(world, number)
    await until(lambda: not lives(world, number))


async def test_one_with_a_script_that_the_annotation_has_cancelled_is_cancelled(world: JobWorld) -> None:
    world.slurm.add_node("w-1")
    world.job()
    number = await world.submitted()
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    await world.step()
    bring_back(world, number)
    await until(lambda: not lives(world, number))


async def test_one_with_a_script_that_has_ended_by_itself_may_be_requeued(world: JobWorld) -> None:
    world.slurm.add_node("w-1")
    # Another keeps the list of jobs from being left.
    world.job("other")
    world.job()
    number = await world.submitted()
    world.slurm.world.exit_job(number, 3)
    await world.until(lambda: is_over(world))
    await world.step()
    bring_back(world, number)
    await stays(world, number)


async def test_one_that_was_to_be_kept_stays(world: JobWorld) -> None:
    world.slurm.add_node("w-1")
    world.job("other")
    world.job(cancelPolicy="Keep")
    number = await world.submitted()
    world.delete()
    await world.until(lambda: not world.exists())
    await stays(world, number)


@pytest.mark.parametrize("what", ["user", "mark", "attempt"])
async def test_what_is_not_that_job_is_left_alone(world: JobWorld, what: str) -> None:
    """Of another user, of another SlurmJob under a number that was given again, or of an attempt yet to come."""
    world.job("other", script=None, external={})
    number = await has_ended(world)
    uid = "uid-team-hello"
    others: dict[str, Any] = {
        "user": {"user": "mallory"},
        "mark": {"extra": Mark("uid-of-nobody", 0).text},
        "attempt": {"extra": Mark(uid, 1).text},
    }
    bring_back(world, number, **others[what])
    await stays(world, number)


async def test_a_job_of_the_user_that_was_given_the_mark_is_left_alone(world: JobWorld) -> None:
    number = await has_ended(world)
    world.job("other", script=None, external={})
    other = await world.submitted("other")
    await world.until(lambda: world.status("other").get("state") == "Running")
    world.slurm.world.set_job_state(other, "RUNNING", extra=world.slurm.world.jobs[number].extra)
    await stays(world, other)


async def test_what_the_list_shows_is_read_afresh_before_it_is_cancelled(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await has_ended(world)
    world.job("other", script=None, external={})
    queue = world.queues.get("cluster-1")
    assert queue is not None
    real = queue.entry.client.job_parts

    async def parts(*given: Any, **options: Any) -> Any:
        # In between the number is that of another job.
        world.slurm.world.set_job_state(number, "RUNNING", extra=Mark("uid-of-nobody", 0).text)
        return await real(*given, **options)

    monkeypatch.setattr(queue.entry.client, "job_parts", parts)
    bring_back(world, number)
    await until(lambda: "nobody" in world.slurm.world.jobs[number].extra)
    await stays(world, number)


async def test_an_operator_that_has_just_begun_cancels_it(world: JobWorld) -> None:
    number = await has_ended(world)
    await world.kill()
    bring_back(world, number)
    # Nobody needs the list but for this.
    await world.step()
    await until(lambda: not lives(world, number))


async def test_a_refused_cancellation_is_tried_again(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_jobs.Cancelling.__init__, "__defaults__", (0.01,))
    await world.kill()
    number = await has_ended(world)
    world.slurm.faults.add(r"DELETE /slurm/\S+/job/\d+", times=2, status=500, body=DENIED)
    bring_back(world, number)
    await until(lambda: not lives(world, number))
    assert world.events.reasons().count("EndedJobCancelled") <= 1


async def test_a_cancellation_is_tried_again_after_a_lapse_of_the_lease(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_jobs.Cancelling.__init__, "__defaults__", (0.01,))
    await world.kill()
    number = await has_ended(world)
    real, lapses = ended_jobs.Cancelling._cancel, list[int]()

    async def cancel(cancelling: ended_jobs.Cancelling, one: int) -> None:
        if not lapses:
            lapses.append(one)
            raise Fenced(Target("DELETE", "job"), "the lease may have lapsed")
        await real(cancelling, one)

    monkeypatch.setattr(ended_jobs.Cancelling, "_cancel", cancel)
    bring_back(world, number)
    await until(lambda: not lives(world, number))
    assert lapses == [number]


async def test_a_lost_job_that_comes_back_beside_the_next_is_cancelled(world: JobWorld) -> None:
    world.job(script=None, external={})
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    old = world.slurm.world.jobs[number]
    forget(world, number)
    later = await again(world, number)
    world.slurm.world.jobs[number] = old
    world.slurm.world._jobs_changed(old.nodes)
    await until(lambda: not lives(world, number))
    assert lives(world, later)


async def test_nothing_is_asked_once_slurm_has_written_the_end(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "CHECK_S", 0.05)
    monkeypatch.setattr(ended_jobs, "SAVED", timedelta(0))
    await world.kill()
    await has_ended(world)
    await until(lambda: not world.queues._queues)
    await world.step()
    assert not world.queues._queues
    asked = len(world.slurm.calls("get_jobs"))
    await asyncio.sleep(0.1)
    assert len(world.slurm.calls("get_jobs")) == asked


def test_what_is_remembered_has_a_bound_and_an_end() -> None:
    ended = ended_jobs.EndedJobs(lambda _: (), None)  # type: ignore[arg-type]
    now = datetime.now(UTC)

    def gone(number: int) -> Object:
        about = {"uid": str(number), "deletionTimestamp": "2026-01-01T00:00:00Z"}
        return {"metadata": about, "spec": {}, "status": {"jobId": number + 1}}

    for number in range(ended_jobs.MOST + 10):
        assert ended.note("cluster", gone(number), now)
    assert len(ended._noted["cluster"].by_uid) == ended_jobs.MOST
    ended.looked("cluster", now)
    assert ended.is_waiting("cluster")
    ended.looked("cluster", now + SAVED)
    assert not ended.is_waiting("cluster")
    assert not ended.note("cluster", gone(1), now)
