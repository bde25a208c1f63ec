"""Calls without an answer that reach slurmctld after their job was looked for: one job goes on, the others end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import SlurmJob
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model.slurm_records import marks
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.stages import late_calls
from slinky_operator.slurmjob.model.stages.late_calls import LONG, MARGIN, SETTLED
from slurm_client import errors
from slurm_client.models import Job, JobState
from tests.support.slurm_jobs import Killed
from tests.unit.slurmjob.worlds import JobWorld, job_world

SECOND = timedelta(seconds=1)


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


@dataclass
class LateCalls:
    """Submissions that wait in slurmrestd, which has given no answer."""

    world: JobWorld
    real: Any
    calls: list[tuple[str, Any]] = field(default_factory=list)
    is_away: bool = True

    async def submit(self, client: Any, user: str, key: Any, job: Any) -> Any:
        if not self.is_away:
            return await self.real(client, user, key, job)
        self.calls.append((user, job))
        raise errors.Timeout("no answer")

    async def arrive(self) -> int:
        """Let the oldest call reach slurmctld; return the number of its job."""
        entry = self.world.clients.get("cluster-1")
        assert entry is not None
        user, job = self.calls.pop(0)
        submitted = await self.real(entry.client, user, None, job)
        return int(submitted.id)


@pytest.fixture
def late(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> LateCalls:
    calls = LateCalls(world, slurm_calls.submit)
    monkeypatch.setattr(slurm_calls, "submit", calls.submit)
    return calls


async def submitted_again(world: JobWorld, late: LateCalls, **spec: Any) -> int:
    """Lose the answer to a submission, and wait until another has led to a job."""
    world.job(**spec)
    await world.until(lambda: late.calls)
    late.is_away = False
    world.ahead += SETTLED + SECOND
    return await world.submitted()


def states(world: JobWorld) -> dict[int, str]:
    return {job.id: job.state.base for job in world.in_slurm()}


async def passes(world: JobWorld, count: int = 30) -> None:
    for _ in range(count):
        await world.step()
        await asyncio.sleep(0.005)


async def test_the_second_job_is_cancelled_and_the_noted_one_goes_on(world: JobWorld, late: LateCalls) -> None:
    number = await submitted_again(world, late)
    second = await late.arrive()
    await world.until(lambda: states(world)[second] == "CANCELLED")
    await world.until(lambda: world.status()["state"] == "Running")
    assert (states(world)[number], world.status()["jobId"]) == ("RUNNING", number)
    (told,) = [words for _, reason, words in world.events.told if reason == "LateJobCancelled"]
    assert f"job {second} was cancelled" in told
    assert f"the SlurmJob has job {number}" in told
    world.delete()
    world.ahead += 2 * MARGIN
    await world.until(lambda: not world.exists())
    assert set(states(world).values()) == {"CANCELLED"}


async def test_the_second_job_is_cancelled_whatever_the_clock_of_the_api_server_says(
    world: JobWorld, late: LateCalls
) -> None:
    number = await submitted_again(world, late)
    found = world.kube.objects["slurmjobs", "team", "hello"]
    created = (world.now() + timedelta(minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    world.kube.put(SLURMJOBS, {**found, "metadata": {**found["metadata"], "creationTimestamp": created}})
    second = await late.arrive()
    await world.until(lambda: states(world)[second] == "CANCELLED")
    assert world.status()["jobId"] == number


@pytest.mark.parametrize(("before", "counts"), [(9, True), (11, False)])
def test_what_was_submitted_before_any_call_is_no_second_job(before: int, counts: bool) -> None:
    """By slurmctld's time, which is that of the job that counts; no clock of others is asked where they are ahead."""
    submitted = datetime(2026, 1, 1, 12, tzinfo=UTC)
    ahead = (submitted + timedelta(hours=1)).isoformat()
    job = SlurmJob.model_validate(
        {
            "metadata": {"name": "hello", "namespace": "team", "uid": "u", "creationTimestamp": ahead},
            "spec": {"clusterName": "slurm", "script": "#!/bin/sh"},
            "status": {
                "jobId": 7,
                "submitTime": submitted.isoformat(),
                "submission": {"attempt": 1, "startedAt": ahead, "unansweredAt": ahead, "name": "hello"},
            },
        }
    )
    at = submitted - timedelta(minutes=before)
    record = Job(id=6, state=JobState("RUNNING"), submit_time=at, extra=Mark("u", 0).text)
    assert bool(late_calls.second_jobs([record], job, None, LONG)) is counts


async def test_the_second_job_is_cancelled_by_its_event_alone(world: JobWorld, late: LateCalls) -> None:
    _ = await submitted_again(world, late)
    async with world.working():
        second = await late.arrive()
        while states(world)[second] != "CANCELLED":  # noqa: ASYNC110 - Slurm's state has no event
            await asyncio.sleep(0.005)


async def test_an_operator_that_was_away_finds_the_second_job(world: JobWorld, late: LateCalls) -> None:
    number = await submitted_again(world, late)
    await world.kill()
    second = await late.arrive()
    await world.until(lambda: states(world)[second] == "CANCELLED")
    assert states(world)[number] != "CANCELLED"


async def test_an_operator_that_ends_after_the_cancellation_does_no_harm(
    world: JobWorld, late: LateCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await submitted_again(world, late)
    real = slurm_calls.cancel

    async def killed(*arguments: Any) -> None:
        await real(*arguments)
        raise Killed

    second = await late.arrive()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "cancel", killed)
        with pytest.raises(Killed):
            await world.until(lambda: False)
    await world.kill()
    await world.until(lambda: world.status()["state"] == "Running")
    assert states(world) == {number: "RUNNING", second: "CANCELLED"}


async def test_a_job_that_ends_leaves_no_second_one(world: JobWorld, late: LateCalls) -> None:
    number = await submitted_again(world, late, ttlSecondsAfterFinished=0)
    await world.until(lambda: world.status()["state"] == "Running")
    world.slurm.world.exit_job(number)
    await world.until(lambda: world.condition("Finished")[0] == "True")
    await passes(world)
    second = await late.arrive()
    await world.until(lambda: states(world)[second] == "CANCELLED")
    assert (world.status()["jobId"], world.condition("Finished")[0]) == (number, "True")
    world.ahead += MARGIN
    await world.until(lambda: not world.exists())


async def test_a_deletion_waits_for_a_call_that_may_still_come(world: JobWorld, late: LateCalls) -> None:
    _ = await submitted_again(world, late)
    world.delete()
    await passes(world)
    second = await late.arrive()
    await world.until(lambda: states(world)[second] == "CANCELLED")
    assert world.exists()
    world.ahead += MARGIN
    await world.until(lambda: not world.exists())
    assert set(states(world).values()) == {"CANCELLED"}


async def test_two_late_jobs_of_an_object_that_is_deleted_are_both_cancelled(world: JobWorld, late: LateCalls) -> None:
    world.job()
    await world.until(lambda: late.calls)
    world.ahead += SETTLED + SECOND
    await world.until(lambda: len(late.calls) > 1)
    world.delete()
    numbers = {await late.arrive(), await late.arrive()}
    await world.until(lambda: states(world) == dict.fromkeys(numbers, "CANCELLED"))
    assert world.exists()
    world.ahead += 2 * SETTLED
    await world.until(lambda: not world.exists())


async def test_a_late_job_of_an_earlier_attempt_is_cancelled(world: JobWorld, late: LateCalls) -> None:
    first = await submitted_again(world, late, backoffLimit=1)
    await world.until(lambda: world.status()["state"] == "Running")
    world.slurm.world.exit_job(first, 1)
    await world.until(lambda: world.status().get("jobId") not in {None, first})
    second = await late.arrive()
    await world.until(lambda: states(world)[second] == "CANCELLED")
    await world.until(lambda: world.status()["state"] == "Running")
    assert world.status()["failedAttempts"] == [first]
    assert states(world)[world.status()["jobId"]] == "RUNNING"


async def test_a_refusal_after_a_lost_answer_does_not_forget_it(
    world: JobWorld, late: LateCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job()
    await world.until(lambda: late.calls)
    world.ahead += SETTLED + SECOND

    async def refused(*_: Any) -> Any:
        raise errors.InvalidRequest("no such partition")

    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", refused)
        await world.until(lambda: world.condition("Submitted")[1] == "SubmissionRefused")
    assert world.condition("Submitted")[0] == "Unknown"
    number = await late.arrive()
    assert await world.submitted() == number
    await passes(world)
    assert set(states(world)) == {number}


async def test_the_job_of_another_slurmjob_with_the_mark_is_left_alone(world: JobWorld, late: LateCalls) -> None:
    number = await submitted_again(world, late)
    world.job("other")
    other = await world.submitted("other")
    world.slurm.world.set_job_state(other, "RUNNING", extra=Mark("uid-team-hello", 0).text)
    await world.until(lambda: world.condition("Finished", "other")[1] == "EndNotSeen")
    await passes(world)
    world.delete()
    world.ahead += MARGIN
    await world.until(lambda: not world.exists())
    assert (states(world)[number], states(world)[other]) == ("CANCELLED", "RUNNING")


async def test_the_job_of_another_slurmjob_does_not_pass_for_a_lost_one(world: JobWorld, late: LateCalls) -> None:
    late.is_away = False
    world.job("other")
    other = await world.submitted("other")
    late.is_away = True
    world.job()
    await world.until(lambda: late.calls)
    world.slurm.world.set_job_state(other, "RUNNING", extra=Mark("uid-team-hello", 0).text)
    await passes(world)
    assert world.status().get("jobId") is None
    number = await late.arrive()
    assert await world.submitted() == number


async def given_again(world: JobWorld, late: LateCalls, number: int, after: float) -> None:
    """Let slurmctld lose the job of this number, and give the number to the oldest call, seconds after that job."""
    lost = world.slurm.world.jobs[number]
    world.slurm.world.forget_job(number)
    arrived = world.slurm.world.jobs.pop(await late.arrive())
    assert lost.submit_time is not None
    world.slurm.world.jobs[number] = replace(
        arrived, id=number, submit_time=lost.submit_time + timedelta(seconds=after)
    )
    world.slurm.world.set_job_state(number, "RUNNING")
    entry = world.clients.get("cluster-1")
    assert entry is not None
    while not any(one.extra == arrived.extra for one in entry.client.job_watch.objects.values() if one.id == number):  # noqa: ASYNC110
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("after", [4, 6], ids=["by the clocks perhaps the same", "later"])
async def test_a_lost_job_under_the_number_of_another_slurmjob_is_not_submitted_twice(
    world: JobWorld, late: LateCalls, after: float
) -> None:
    """slurmctld has lost its state, and nobody has seen yet that the job of the other one is gone."""
    late.is_away = False
    world.job("other")
    other = await world.submitted("other")
    late.is_away = True
    world.job()
    await world.until(lambda: late.calls)
    await given_again(world, late, other, after)
    await passes(world)
    world.ahead += SETTLED + SECOND
    is_doubtful = after < marks.TOLERANCE.total_seconds()
    shown = f"job {other} has the mark of this SlurmJob"
    while shown not in world.condition("Submitted")[2] if is_doubtful else world.status().get("jobId") is None:
        # Of the other one no pass is made yet.
        await world.step()
        await asyncio.sleep(0.005)
    await passes(world)
    await world.until(lambda: world.condition("Finished", "other")[0] == "True")
    assert await world.submitted() == other
    assert not late.calls
    assert states(world).keys() == {other}


async def test_a_second_job_under_the_number_of_a_slurmjob_that_has_ended_is_cancelled(
    world: JobWorld, late: LateCalls
) -> None:
    late.is_away = False
    world.job("other")
    other = await world.submitted("other")
    world.slurm.world.finish_job(other)
    await world.until(lambda: world.condition("Finished", "other")[0] == "True")
    late.is_away = True
    number = await submitted_again(world, late)
    await given_again(world, late, other, 6)
    await world.until(lambda: states(world)[other] == "CANCELLED")
    assert world.status()["jobId"] == number


@pytest.mark.parametrize("noted", [None, "", "soon", "2026-01-01T12:00:00", "9999-12-31T23:59:59Z"])
def test_a_time_that_nobody_can_compare_proves_nothing(noted: str | None) -> None:
    submitted = datetime(2026, 6, 1, tzinfo=UTC)
    assert not marks.is_newer(submitted, {"status": {"submitTime": noted}})
    assert not marks.is_newer(None, {"status": {"submitTime": "2026-01-01T12:00:00Z"}})
    assert marks.is_newer(submitted, {"status": {"submitTime": "2026-01-01T12:00:00Z"}})


async def test_where_calls_are_limited_nothing_is_repeated_for_minutes(world: JobWorld, late: LateCalls) -> None:
    world.cluster(extraConf="SlurmctldParameters=enable_configless,rl_enable,rl_bucket_size=2")
    world.job()
    await world.until(lambda: late.calls)
    world.ahead += LONG - timedelta(seconds=30)
    await passes(world)
    assert len(late.calls) == 1
    assert world.condition("Submitted")[:2] == ("Unknown", "Submitting")
    number = await late.arrive()
    assert await world.submitted() == number
    world.delete()
    await world.until(lambda: not world.exists())
    assert states(world) == {number: "CANCELLED"}


async def test_without_accounting_nothing_is_repeated_after_minutes_either(world: JobWorld, late: LateCalls) -> None:
    world.cluster(extraConf="SlurmctldParameters=rl_enable")
    world.job()
    await world.until(lambda: late.calls)
    world.ahead += LONG + SECOND
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionUnknown")
    assert len(late.calls) == 1
    number = await late.arrive()
    assert await world.submitted() == number


@pytest.mark.parametrize(
    ("conf", "seconds"),
    [
        ("", 45),
        ("MessageTimeout=10", 45),
        ("MessageTimeout=60", 195),
        ("SchedulerParameters=x \\\n messagetimeout = 20", 75),
        ("# rl_enable", 45),
        ("SlurmctldParameters=a,RL_ENABLE", 600),
    ],
)
def test_how_long_a_call_may_be_under_way(conf: str, seconds: int) -> None:
    metadata = {"name": "slurm", "namespace": "ns", "uid": "u"}
    cluster = Cluster.model_validate({"metadata": metadata, "spec": {"extraConf": conf}})
    assert late_calls.settled(cluster).total_seconds() == seconds


def test_of_a_slurm_elsewhere_it_is_not_known_how_long_a_call_may_be_under_way() -> None:
    metadata = {"name": "slurm", "namespace": "ns", "uid": "u"}
    spec = {"server": "http://slurm:6820", "token": {"secretRef": "token"}}
    assert late_calls.settled(Cluster.model_validate({"metadata": metadata, "spec": spec})) == LONG
    assert late_calls.settled(None) == LONG


async def test_what_a_deletion_waits_for_is_shown(world: JobWorld, late: LateCalls) -> None:
    number = await submitted_again(world, late)
    world.delete()
    await world.until(lambda: states(world)[number] == "CANCELLED")
    await world.until(lambda: "an earlier submission whose answer was lost" in world.condition("Submitted")[2])
    assert "may still reach Slurm: the SlurmJob stays until" in world.status()["summary"]
    await world.clients.close_all()
    await world.until(lambda: "looks for a second job of the SlurmJob" in world.condition("Submitted")[2])
    assert world.exists()


async def test_a_job_that_is_kept_is_not_waited_for(world: JobWorld, late: LateCalls) -> None:
    world.job(cancelPolicy="Keep")
    await world.until(lambda: late.calls)
    world.delete()
    await world.until(lambda: not world.exists())
