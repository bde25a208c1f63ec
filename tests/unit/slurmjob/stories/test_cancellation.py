"""Cancellation by annotation: the job ends, or is never submitted, and its object stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_operator.kube.objects import Object
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model.stages import holds_and_cancels
from slinky_operator.slurmjob.model.stages.late_calls import MARGIN, SETTLED
from slinky_operator.slurmjob.polling import young_jobs
from slurm_client import errors
from slurm_client.models import Job
from tests.support.slurm_jobs import Killed, until
from tests.unit.slurmjob.worlds import JobWorld, job_world

PAUSE = timedelta(hours=1)
WORDS = "the job was cancelled before it was submitted, as annotation slurmjob.slinky.slurm.net/cancel asks"


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


def submissions(world: JobWorld) -> int:
    return len(world.slurm.calls("post_job_submit"))


def is_over(world: JobWorld, name: str = "hello") -> bool:
    return world.condition("Finished", name)[0] == "True"


def says(world: JobWorld, name: str = "hello") -> tuple[str, str]:
    status = world.status(name)
    return status["state"], status["reason"]


async def runs(world: JobWorld, **spec: Any) -> int:
    world.job(**spec)
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    return number


async def killed_at(world: JobWorld, field: str) -> None:
    """Run passes until the operator ends right before it writes a field of the status, and start another."""

    def before(status: dict[str, Any]) -> None:
        if status.get(field):
            raise Killed

    world.kube.before_status = before
    with pytest.raises(Killed):
        await world.until(lambda: False)
    world.kube.before_status = None
    await world.kill()


async def killed_before_slurm_is_asked(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", killed)
        with pytest.raises(Killed):
            await world.until(lambda: False)
    await world.kill()


async def never_submitted(world: JobWorld, name: str = "hello") -> None:
    """Wait for the end of a job that Slurm never had."""
    await world.until(lambda: is_over(world, name))
    assert says(world, name) == ("Failed", "Cancelled")
    for kind, value in {"Submitted": "False", "Running": "False", "Finished": "True"}.items():
        assert world.condition(kind, name)[:2] == (value, "Cancelled")
    assert "jobId" not in world.status(name)
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", name]["metadata"].get("finalizers"))


async def test_a_job_that_runs_is_cancelled_and_its_object_stays(world: JobWorld) -> None:
    number = await runs(world)
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    (job,) = world.in_slurm()
    assert (job.id, job.state.base) == (number, "CANCELLED")
    status = world.status()
    assert (says(world), status["jobId"], bool(status["nodes"])) == (("Failed", "Cancelled"), number, True)
    assert world.condition("Submitted")[0] == "True"
    words = f"job {number} was cancelled, as annotation slurmjob.slinky.slurm.net/cancel asks"
    told = ("Normal", "JobCancelled", words)
    assert world.events.told.count(told) == world.events.reasons().count("JobEnded") == 1
    calls = len(world.slurm.requests)
    for _ in range(3):
        await world.step()
    assert len(world.slurm.requests) == calls
    assert world.exists()


@pytest.mark.parametrize("array", [None, "0-2"])
async def test_among_many_jobs_a_cancellation_costs_no_list_of_all_but_that_of_an_array(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch, array: str | None
) -> None:
    number = await runs(world, **({"array": array} if array else {}))
    monkeypatch.setattr(young_jobs, "MANY", 1)
    queue = world.queues.get("cluster-1")
    assert queue is not None
    watch = queue.entry.client.job_watch
    pokes: list[None] = []
    looks: list[str] = []
    look = watch.refresh
    monkeypatch.setattr(watch, "poke", lambda: pokes.append(None))

    async def refresh(*keys: str) -> dict[str, Job | None]:
        looks.extend(keys)
        return await look(*keys)

    monkeypatch.setattr(watch, "refresh", refresh)
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    await until(lambda: pokes or looks)
    assert (bool(pokes), set(looks)) == ((True, set()) if array else (False, {str(number)}))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"suspend": True},
        {"script": "no script\n"},
        {"user": "bob"},
        {"dependsOn": [{"name": "other"}]},
        {"clusterName": "none"},
        {"backoffLimit": 3},
        {"dryRun": True},
    ],
    ids=lambda spec: next(iter(spec), "ready"),
)
async def test_what_is_not_submitted_yet_never_is(world: JobWorld, spec: dict[str, Any]) -> None:
    world.job(**spec)
    world.annotate(cancel="true")
    await never_submitted(world)
    for _ in range(3):
        await world.step()
    assert world.condition("Finished")[2] == world.status()["summary"] == WORDS
    assert world.events.told == [("Normal", "JobCancelled", WORDS)]
    world.annotate(cancel="false")
    world.job(suspend=False)
    for _ in range(3):
        await world.step()
    assert submissions(world) == 0


async def test_what_waits_is_cancelled_without_slurm(world: JobWorld) -> None:
    await world.clients.close("cluster-1")
    world.job()
    await world.until(lambda: world.condition("Submitted")[1] == "ClusterNotReady")
    world.annotate(cancel="true")
    await never_submitted(world)


@pytest.mark.parametrize("value", ["false", "True", "yes", ""])
async def test_any_other_value_does_nothing(world: JobWorld, value: str) -> None:
    world.job()
    world.annotate(cancel=value)
    await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    assert world.in_slurm()[0].state.base == "RUNNING"


async def test_the_annotation_alone_wakes_the_operator(world: JobWorld) -> None:
    number = await runs(world)
    async with world.working():
        world.annotate(cancel="true")
        await until(lambda: is_over(world))
    assert world.slurm.world.jobs[number].state.base == "CANCELLED"


@pytest.mark.parametrize("spec", [{"nodes": 4}, {"nodes": 4, "cancelPolicy": "Keep"}])
async def test_what_waits_in_the_queue_is_cancelled_held_or_not(world: JobWorld, spec: dict[str, Any]) -> None:
    world.job("first", nodes=4)
    await world.until(lambda: world.status("first").get("state") == "Running")
    world.job(**spec)
    await world.submitted()
    world.job(suspend=True)
    await world.until(lambda: world.status()["reason"] == "Held")
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "Cancelled")
    assert "held" not in world.status()


async def test_a_submission_that_has_arrived_is_found_and_cancelled(world: JobWorld) -> None:
    world.job()
    await killed_at(world, "jobId")
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    (job,) = world.in_slurm()
    assert (job.state.base, world.status()["jobId"], submissions(world)) == ("CANCELLED", job.id, 1)


async def test_a_submission_that_never_arrived_is_not_repeated(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.job()
    await killed_before_slurm_is_asked(world, monkeypatch)
    world.annotate(cancel="true")
    await world.until(lambda: world.condition("Submitted")[1] == "Submitting")
    assert not is_over(world)
    world.ahead += SETTLED + MARGIN
    await never_submitted(world)
    assert submissions(world) == 0


async def test_what_may_have_been_forgotten_ends_without_a_claim(world: JobWorld) -> None:
    world.job()
    await killed_at(world, "jobId")
    del world.slurm.world.jobs[world.in_slurm()[0].id]
    world.ahead += timedelta(hours=1)
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionUnknown")
    await world.clients.close("cluster-1")
    world.annotate(cancel="true")
    await world.until(lambda: "will be cancelled once Slurm answers" in world.status()["summary"])
    await world.start()
    await world.until(lambda: is_over(world))
    assert says(world) == ("Unknown", "SubmissionUnknown")
    assert world.condition("Submitted")[:2] == ("Unknown", "SubmissionUnknown")
    assert submissions(world) == 1


class Behind:
    """A cache that shows an object as it was."""

    def __init__(self, obj: Object) -> None:
        self._obj = obj

    def get(self, *_: str) -> Object:
        return self._obj


async def test_a_cache_that_does_not_show_the_annotation_yet_submits_nothing(world: JobWorld) -> None:
    world.job()
    await world.step()
    stale = world.kube.objects["slurmjobs", "team", "hello"]
    world.annotate(cancel="true")
    cache = world.reconciler.objects
    world.reconciler.objects = Behind(stale)  # type: ignore[assignment]
    for _ in range(3):
        await world.step()
    assert submissions(world) == 0
    world.reconciler.objects = cache
    await never_submitted(world)


async def test_a_cache_that_does_not_show_the_submission_yet_ends_nothing(world: JobWorld) -> None:
    world.job()
    await world.step()
    world.annotate(cancel="true")
    stale = world.kube.objects["slurmjobs", "team", "hello"]
    world.annotate(cancel="false")
    number = await world.submitted()
    await world.kill()
    cache = world.reconciler.objects
    world.reconciler.objects = Behind(stale)  # type: ignore[assignment]
    for _ in range(3):
        await world.step()
    assert (world.status()["jobId"], is_over(world)) == (number, False)
    assert "JobCancelled" not in world.events.reasons()
    world.reconciler.objects = cache
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    assert world.in_slurm()[0].state.base == "CANCELLED"


async def test_none_follows_by_backoff_limit(world: JobWorld) -> None:
    number = await runs(world, backoffLimit=3)
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    assert (says(world), world.status()["jobId"], submissions(world)) == (("Failed", "Cancelled"), number, 1)


async def test_between_two_submissions_the_failure_is_the_end(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: Any) -> Any:
        raise errors.InvalidRequest("Invalid account")

    number = await runs(world, backoffLimit=1)
    world.slurm.world.exit_job(number, 3)
    monkeypatch.setattr(slurm_calls, "submit", refused)
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionRefused")
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    assert (says(world), world.status()["jobId"]) == (("Failed", "NonZeroExitCode"), number)
    assert submissions(world) == 1


async def test_a_second_submission_that_never_arrived_is_not_repeated(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await runs(world, backoffLimit=1)
    world.slurm.world.exit_job(number, 3)
    await killed_before_slurm_is_asked(world, monkeypatch)
    world.annotate(cancel="true")
    world.ahead += SETTLED + MARGIN
    await never_submitted(world)
    assert "before it was submitted again" in world.status()["summary"]
    assert world.status()["failedAttempts"] == [number]
    assert submissions(world) == 1


async def test_a_namespace_without_its_tenant_can_cancel(world: JobWorld) -> None:
    await runs(world)
    world.tenants = []
    world.cluster()
    world.annotate(cancel="true")
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "Cancelled")


async def test_without_an_answer_it_is_cancelled_once_there_is_one(world: JobWorld) -> None:
    await runs(world)
    await world.clients.close("cluster-1")
    world.annotate(cancel="true")
    await world.until(lambda: "will be cancelled once Slurm answers" in world.status()["summary"])
    assert world.condition("Submitted")[1] == "ClusterNotReady"
    assert (world.status()["state"], is_over(world)) == ("Running", False)
    await world.start()
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "Cancelled")


async def test_the_end_may_come_from_slurmdbd(world: JobWorld) -> None:
    world.cluster(accounting={})
    number = await runs(world)
    world.annotate(cancel="true")
    await killed_at(world, "endTime")
    await world.clients.close_all()
    assert world.slurm.world.jobs[number].state.base == "CANCELLED"
    world.slurm.world.clock.advance(1000)
    await world.start()
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "Cancelled")
    assert [one for one in world.slurm.requests if "/slurmdb/" in one.path]


async def test_a_refused_cancellation_is_shown_and_tried_again(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: Any) -> None:
        calls.append(1)
        raise errors.PermissionDenied("Access/permission denied")

    calls: list[int] = []
    number = await runs(world)
    world.annotate(cancel="true")
    with monkeypatch.context() as patched:
        patched.setattr(holds_and_cancels, "REFUSED_S", (PAUSE.total_seconds(),))
        patched.setattr(slurm_calls, "cancel", refused)
        await world.until(lambda: world.condition("Submitted")[1] == "CancelRefused")
        message = f"Slurm did not cancel job {number}; the operator tries again: Access/permission denied"
        assert ("Warning", "CancelRefused", message) in world.events.told
        for _ in range(3):
            await world.step()
        assert len(calls) == 1
    world.ahead += PAUSE
    await world.until(lambda: is_over(world))


async def test_it_may_be_withdrawn_while_slurm_does_not_answer(world: JobWorld) -> None:
    await runs(world)
    await world.clients.close("cluster-1")
    world.annotate(cancel="true")
    await world.until(lambda: "will be cancelled once Slurm answers" in world.status()["summary"])
    world.annotate(cancel="false")
    await world.start()
    await world.until(lambda: world.condition("Submitted")[1] == "Submitted")
    assert world.in_slurm()[0].state.base == "RUNNING"


async def test_it_counts_more_than_a_policy_to_keep_the_job(world: JobWorld) -> None:
    await runs(world, cancelPolicy="Keep")
    await world.clients.close("cluster-1")
    world.annotate(cancel="true")
    world.delete()
    for _ in range(3):
        await world.step()
    assert world.exists()
    await world.start()
    await world.until(lambda: not world.exists())
    assert world.in_slurm()[0].state.base == "CANCELLED"


@pytest.mark.parametrize("spec", [{}, {"suspend": True}, {"backoffLimit": 2}], ids=str)
async def test_the_operator_ends_before_each_write(world: JobWorld, spec: dict[str, Any]) -> None:
    world.job(**spec)
    if not spec.get("suspend"):
        await world.submitted()
    world.annotate(cancel="true")
    count = 0

    def before(_: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        if count % 2:
            raise Killed

    world.kube.before_status = before
    while not is_over(world):
        try:
            await world.until(lambda: is_over(world))
        except Killed:
            await world.kill()
    assert says(world) == ("Failed", "Cancelled")
    assert submissions(world) == (0 if spec.get("suspend") else 1)
    assert count > 1


async def test_it_is_deleted_after_its_time(world: JobWorld) -> None:
    world.job(suspend=True, ttlSecondsAfterFinished=0)
    world.annotate(cancel="true")
    await world.until(lambda: not world.exists())


async def test_results_of_a_job_that_never_ran(world: JobWorld) -> None:
    world.job(suspend=True, results=[{"volume": {"persistentVolumeClaim": {"claimName": "out"}}, "path": "/out"}])
    world.annotate(cancel="true")
    await never_submitted(world)
    assert world.condition("ResultsCollected")[:2] == ("True", "NothingToCopy")


@pytest.mark.parametrize("is_forgotten", [False, True])
async def test_tasks_that_have_not_been_started_are_counted(world: JobWorld, *, is_forgotten: bool) -> None:
    """They have one record, in slurmctld as in slurmdbd."""
    world.cluster(accounting={})
    world.job(array="0-5%2")
    await world.until(lambda: (world.status().get("array") or {}).get("running") == 2)
    assert world.status()["array"]["pending"] == 4
    world.annotate(cancel="true")
    if is_forgotten:
        await killed_at(world, "endTime")
        await world.clients.close_all()
        world.slurm.world.clock.advance(1000)
        await world.start()
    await world.until(lambda: is_over(world))
    assert world.status()["array"] == {"pending": 0, "running": 0, "succeeded": 0, "failed": 6}


@pytest.mark.parametrize("how", ["deleted", "cancelled", "held"])
async def test_a_number_that_slurmctld_has_given_to_somebody_else_gets_no_order(world: JobWorld, how: str) -> None:
    """slurmctld has lost the job, and the list that the operator has is older than that."""
    world.slurm.world.nodes.clear()
    world.job()
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Pending")
    world.slurm.world.clock.advance(10)
    lists = len(world.slurm.calls("get_jobs"))
    await until(lambda: len(world.slurm.calls("get_jobs")) > lists + 2)
    # Slurm counts in seconds, and from now on it answers that nothing has changed since its last list.
    ours = world.slurm.world.jobs[number]
    world.slurm.world.jobs[number] = replace(ours, extra="", user="bob", name="another")
    match how:
        case "deleted":
            world.delete()
        case "cancelled":
            world.annotate(cancel="true")
        case _:
            world.job(suspend=True)
    before = len(world.slurm.calls("get_job"))
    await world.until(lambda: len(world.slurm.calls("get_job")) > before)
    for _ in range(3):
        await world.step()
    assert world.slurm.calls("delete_job") == []
    assert world.slurm.calls("post_job") == []
    assert world.slurm.world.jobs[number].user == "bob"
    assert not world.slurm.world.jobs[number].is_finished
