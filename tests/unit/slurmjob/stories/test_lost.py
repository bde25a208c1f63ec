"""Jobs without a script that slurmctld has lost after they had started: their nodes are asked for again, once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.slurmjob.kind import JobAllocation, SlurmJob
from slinky_operator.jobs.translation import Submission
from slinky_operator.reconcile.text import stamp
from slinky_operator.slurmjob.execute import submission as execute
from slinky_operator.slurmjob.model import requests
from slinky_operator.slurmjob.model.slurm_records import allocations
from slinky_operator.slurmjob.model.slurm_records.allocations import Share
from slurm_client import JobSpec
from slurm_client.models import Job
from tests.support.slurm_jobs import Killed
from tests.unit.slurmjob.stories.test_external import DRIVER, WORKERS, external_world, is_over, says
from tests.unit.slurmjob.worlds import JobWorld

GANG: dict[str, Any] = {"tasks": 3, "cpusPerTask": 2, "parameters": {"tres_per_task": "gres/gpu=1", "licenses": "l:1"}}
"""Two tasks on k-1, which has 4 CPUs, and one on k-0."""

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with external_world() as one:
        yield one


async def runs(world: JobWorld, external: dict[str, Any] | None = None, **spec: Any) -> int:
    world.job(script=None, external=external or {}, **spec)
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    return number


def forget_start(world: JobWorld, number: int, **values: Any) -> None:
    """Let slurmctld wake up with a state in which the job waits."""
    for job in [one for one in world.slurm.world.jobs.values() if number in {one.id, one.het_job_id}]:
        kept = {"nodes": (), "node_list": "", "start_time": None, "gres_detail": (), **values}
        old = world.slurm.world.jobs[job.id]
        world.slurm.world.set_job_state(job.id, "PENDING", **kept)
        world.slurm.world._jobs_changed(old.nodes)


def forget(world: JobWorld, number: int) -> None:
    """Let slurmctld wake up without the job."""
    for job in [one for one in world.slurm.world.jobs.values() if number in {one.id, one.het_job_id}]:
        world.slurm.world.forget_job(job.id)
        world.slurm.world._jobs_changed(job.nodes)


def living(world: JobWorld) -> list[Job]:
    return [job for job in world.slurm.world.jobs.values() if not job.is_finished]


async def again(world: JobWorld, number: int) -> int:
    """Wait until another job of the SlurmJob runs, and return its number."""
    await world.until(lambda: world.status().get("jobId") not in {None, number})
    await world.until(lambda: world.status().get("state") == "Running")
    return int(world.status()["jobId"])


def places(world: JobWorld) -> list[tuple[str, int]]:
    return [(one["node"], one["cpus"]) for one in world.status()["allocation"]]


@pytest.mark.parametrize("is_gone", [False, True], ids=["start", "job"])
async def test_a_lost_job_is_submitted_again_for_its_nodes_with_as_many_tasks_on_each(
    world: JobWorld, is_gone: bool
) -> None:
    number = await runs(world, **GANG)
    before = places(world)
    assert before == [("k-1", 4), ("k-0", 2)]
    if is_gone:
        forget(world, number)
    else:
        forget_start(world, number, hold=True, priority=0)
    found = await again(world, number)
    assert places(world) == before
    sent = world.slurm.calls("post_job_submit")[-1].body
    assert sent is not None
    assert "jobs" in sent
    asked = [
        (job["required_nodes"], job["nodes"], job["tasks"], job["tasks_per_node"], "licenses" in job)
        for job in sent["jobs"]
    ]
    assert asked == [(["k-1"], "1", 2, 2, True), (["k-0"], "1", 1, 1, False)]
    assert [job["minimum_cpus"] for job in sent["jobs"]] == [4, 2]
    assert {one.het_job_id for one in living(world)} == {found}
    assert world.status()["failedAttempts"] == [number]
    assert world.status()["submission"]["again"]
    assert "JobLost" in world.events.reasons()
    # It is not asked for a third time.
    for _ in range(5):
        await world.step()
    assert len(world.slurm.calls("post_job_submit")) == 2
    world.job(external={"ended": {"exitCode": 0}})
    await world.until(lambda: is_over(world))
    assert says(world) == ("Succeeded", "Completed")
    assert living(world) == []


async def test_one_that_started_elsewhere_comes_back_to_its_nodes(world: JobWorld) -> None:
    number = await runs(world)
    start = world.slurm.world.jobs[number].start_time
    assert places(world) == [("k-1", 1)]
    world.slurm.update_node("k-1", state="DRAIN", reason="x")
    forget_start(world, number)
    world.slurm.world.schedule()
    later = (start or world.slurm.world.now) + timedelta(seconds=5)
    world.slurm.world.set_job_state(number, "RUNNING", start_time=later)
    assert world.slurm.world.jobs[number].nodes == ("k-0",)
    await world.until(lambda: world.slurm.world.jobs[number].is_finished)
    assert places(world) == [("k-1", 1)]
    await world.until(lambda: world.status().get("jobId") not in {None, number})
    await world.until(lambda: world.status()["state"] == "Pending")
    assert places(world) == [("k-1", 1)]
    world.slurm.update_node("k-1", state="IDLE")
    world.slurm.world.schedule()
    await world.until(lambda: world.status()["state"] == "Running")
    assert places(world) == [("k-1", 1)]


async def test_one_that_started_again_where_it_was_goes_on(world: JobWorld) -> None:
    number = await runs(world, **GANG)
    before = world.status()["allocation"]
    job = world.slurm.world.jobs[number]
    later = job.start_time and job.start_time + timedelta(seconds=5)
    world.slurm.world.set_job_state(number, "RUNNING", start_time=later)
    await world.until(lambda: world.status()["startTime"] == later.strftime("%Y-%m-%dT%H:%M:%SZ") if later else False)
    assert world.status()["allocation"] == before
    assert world.slurm.calls("delete_job") == []
    assert world.status()["jobId"] == number


async def test_while_another_job_has_the_room_it_waits_and_says_so(world: JobWorld) -> None:
    number = await runs(world, tasks=4)
    assert places(world) == [("k-1", 4)]
    forget(world, number)
    other = world.slurm.world.submit(
        {"flags": ["EXTERNAL_JOB"], "tasks": 1, "cpus_per_task": 1, "required_nodes": ["k-1"]}, "bob", has_script=False
    )
    world.slurm.world.set_job_state(other.id, "RUNNING", nodes=("k-1",))
    await world.until(lambda: world.status().get("jobId") not in {None, number})
    await world.until(lambda: world.status().get("slurmReason") == "Resources")
    assert says(world)[0] == "Pending"
    assert places(world) == [("k-1", 4)]
    assert not is_over(world)
    world.slurm.world.finish_job(other.id)
    await world.until(lambda: world.status()["state"] == "Running")


async def test_components_keep_their_nodes(world: JobWorld) -> None:
    number = await runs(world, {"components": [DRIVER, WORKERS]})
    before = world.status()["allocation"]
    forget(world, number)
    _ = await again(world, number)
    assert world.status()["allocation"] == before


async def test_a_node_that_is_gone_is_waited_for(world: JobWorld) -> None:
    number = await runs(world)
    forget(world, number)
    words = "Batch job submission failed"
    body = {"errors": [{"error_number": 2018, "error": "Invalid node name", "description": words, "source": ""}]}
    world.slurm.faults.add(r"POST /slurm/\S+/job/submit", times=None, status=422, body=body)
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionRefused")
    assert not is_over(world)
    assert places(world) == [("k-1", 1)]
    world.slurm.faults.clear()
    world.ahead += timedelta(hours=2)
    _ = await again(world, number)


async def test_a_job_that_waits_for_a_node_and_is_ended_with_it_is_asked_for_again(world: JobWorld) -> None:
    number = await runs(world, tasks=4)
    forget(world, number)
    world.slurm.update_node("k-1", state="DRAIN", reason="x")
    await world.until(lambda: world.status().get("jobId") not in {None, number})
    second = int(world.status()["jobId"])
    world.slurm.world.finish_job(second, "NODE_FAIL")
    world.slurm.update_node("k-1", state="IDLE")
    _ = await again(world, second)
    assert places(world) == [("k-1", 4)]


async def test_one_that_is_cancelled_while_it_waits_is_over(world: JobWorld) -> None:
    number = await runs(world, tasks=4)
    forget(world, number)
    world.slurm.update_node("k-1", state="DRAIN", reason="x")
    await world.until(lambda: world.status().get("jobId") not in {None, number})
    world.slurm.world.cancel_job(int(world.status()["jobId"]))
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "Cancelled")


@pytest.mark.parametrize("code", [0, 4])
async def test_work_that_ends_before_it_is_asked_for_again_ends_the_job(world: JobWorld, code: int) -> None:
    number = await runs(world)
    world.job(suspend=True)
    await world.step()
    forget(world, number)
    await world.until(lambda: world.status()["reason"] == "JobLost")
    world.job(external={"ended": {"exitCode": code}})
    await world.until(lambda: is_over(world))
    assert world.status()["exitCode"] == code
    assert len(world.slurm.calls("post_job_submit")) == 1


@pytest.mark.parametrize("last", range(1, 6))
async def test_an_operator_that_ends_at_any_write_leads_to_one_job(world: JobWorld, last: int) -> None:
    number = await runs(world, **GANG)
    forget_start(world, number, hold=True, priority=0)
    writes = 0

    def dies(_: Any) -> None:
        nonlocal writes
        writes += 1
        if writes == last:
            raise Killed

    world.kube.before_status = dies
    try:
        _ = await again(world, number)
    except Killed:
        world.kube.before_status = lambda _: None
        await world.kill()
        _ = await again(world, number)
    assert len({one.het_job_id for one in living(world)}) == 1
    assert places(world) == [("k-1", 4), ("k-0", 2)]


async def test_an_answer_that_is_lost_leads_to_one_job(world: JobWorld) -> None:
    number = await runs(world, **GANG)
    forget(world, number)
    world.slurm.faults.add(r"POST /slurm/\S+/job/submit", times=1, truncate=0.0)
    _ = await again(world, number)
    assert len({one.het_job_id for one in living(world)}) == 1


def test_tasks_are_counted_where_they_are() -> None:
    given = [
        JobAllocation(node="a", cpus=4),
        JobAllocation(node="b", cpus=2),
        JobAllocation(node="c", cpus=4),
        JobAllocation(node="d", cpus=8, component=1),
    ]
    assert allocations.shares(given, [(2, 5), (4, 1)]) == (
        Share(0, 2, ("a", "c")),
        Share(0, 1, ("b",)),
        Share(1, 1, ("d",)),
    )
    # A whole node for one task; nothing for a node that no task is on.
    assert allocations.shares(given[:2], [(1, 3)]) == (Share(0, 3, ("a",)),)
    assert allocations.shares(given[:2], [(2, None)]) == (Share(0, 2, ("a",)), Share(0, 1, ("b",)))


def test_the_numbers_of_lost_jobs_are_bounded() -> None:
    assert execute.MOST_FAILED <= 101


@pytest.mark.parametrize(
    ("limit", "raised", "passed", "left"),
    [(60, 0, 20, 40), (60, 60, 20, 100), (60, -50, 20, 40), (60, 0, 90, 1), (None, 0, 20, None)],
    ids=["rest", "raised", "preempted", "over", "none"],
)
async def test_what_is_lost_gets_the_rest_of_its_time(
    world: JobWorld, limit: int | None, raised: int, passed: int, left: int | None
) -> None:
    number = await runs(world, time=str(limit) if limit is not None else None)
    start = world.slurm.world.jobs[number].start_time
    assert start is not None
    if limit is not None:
        end = start + timedelta(minutes=limit + raised)
        world.slurm.world.set_job_state(number, "RUNNING", end_time=end)
        await world.until(lambda: world.status().get("deadline") == stamp(end))
    forget(world, number)
    world.slurm.world.clock.advance(60 * passed)
    # The operator's own clock does not matter.
    world.ahead += timedelta(minutes=7)
    _ = await again(world, number)
    sent = world.slurm.calls("post_job_submit")[-1].body
    assert sent is not None
    assert sent["job"].get("time_limit", {}).get("number") == left


def test_a_job_is_not_asked_for_more_than_its_limit_however_clocks_differ() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    given = [{"component": 0, "node": "k-1", "cpus": 1}]
    job = SlurmJob.model_validate(
        {
            "metadata": {"name": "hello", "namespace": "team", "uid": "u"},
            "spec": {"clusterName": "slurm", "external": {}},
            "status": {"startTime": stamp(now), "allocation": given},
        }
    )
    asked = Submission(JobSpec(time_limit=timedelta(hours=1)), (), ())
    (wanted,) = requests.wanted_again(job, asked, 1, now - timedelta(minutes=10))
    assert wanted.time_limit == timedelta(hours=1)


async def test_nothing_is_begun_while_slurm_does_not_tell_its_time(world: JobWorld) -> None:
    number = await runs(world, **GANG)
    forget(world, number)
    world.slurm.faults.add(r"GET /slurm/\S+/diag", status=500)
    await world.until(lambda: "does not tell its time" in world.condition("Submitted")[2])
    assert len(world.slurm.calls("post_job_submit")) == 1
    world.slurm.faults.clear()
    _ = await again(world, number)
