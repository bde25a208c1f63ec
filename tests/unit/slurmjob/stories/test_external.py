"""Jobs without a script: what they are given, how their end is reported, and what a crash of slurmctld changes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.slurmjob import kind
from slinky_operator.reconcile.text import stamp
from slinky_operator.slurmjob.execute import external as execute
from slinky_operator.slurmjob.model.slurm_records import allocations, marks, records
from slinky_operator.slurmjob.model.stages import external
from slurm_client import INFINITE
from tests.unit.slurmjob.stories.test_faults import killed_at
from tests.unit.slurmjob.worlds import JobWorld, job_world

ACCOUNTING: dict[str, Any] = {"accounting": {}}
DENIED = {"errors": [{"error_number": 2002, "error": "Access/permission denied", "description": "no", "source": ""}]}


@asynccontextmanager
async def external_world() -> AsyncIterator[JobWorld]:
    """A Slurm whose nodes have no slurmd."""
    async with job_world() as one:
        for name in list(one.slurm.world.nodes):
            one.slurm.world.remove_node(name)
        one.slurm.add_node("k-1", cpus=4, state="IDLE+EXTERNAL", gres="gpu:a100:4")
        one.slurm.add_node("k-0", cpus=8, state="IDLE+EXTERNAL", gres="gpu:a100:4")
        yield one


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with external_world() as one:
        yield one


def says(world: JobWorld, name: str = "hello") -> tuple[str, str]:
    status = world.status(name)
    return status["state"], status["reason"]


def is_over(world: JobWorld, name: str = "hello") -> bool:
    return world.condition("Finished", name)[0] == "True"


def create(world: JobWorld, name: str = "hello", **spec: Any) -> None:
    world.job(name, script=None, external={}, **spec)


async def runs(world: JobWorld, **spec: Any) -> int:
    create(world, **spec)
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    return number


def refuse(world: JobWorld, path: str) -> None:
    world.slurm.faults.add(path, times=None, status=500, body=DENIED)


def asked(world: JobWorld) -> int:
    return len(world.slurm.calls("get_job"))


async def test_it_is_given_nodes_and_says_so_when_it_runs(world: JobWorld) -> None:
    seen: list[tuple[Any, Any]] = []
    world.kube.before_status = lambda status: seen.append((status.get("state"), status.get("allocation")))
    await runs(world, tasks=3, cpusPerTask=2, parameters={"memory_per_cpu": 100, "tres_per_task": "gres/gpu=1"})
    assert world.status()["allocation"] == [
        {"node": "k-1", "cpus": 4, "memory": 400, "gres": ["gpu:a100:2(IDX:0-1)"]},
        {"node": "k-0", "cpus": 2, "memory": 200, "gres": ["gpu:a100:1(IDX:0)"]},
    ]
    # A program that waits for Running finds it there.
    assert [allocation is not None for state, allocation in seen if state == "Running"] == [True]
    before = asked(world)
    for _ in range(3):
        await world.step()
    assert asked(world) == before == 1
    (sent,) = world.slurm.calls("post_job_submit")
    assert sent.body is not None
    assert "EXTERNAL_JOB" in sent.body["job"]["flags"]
    assert not {"script", "environment", "current_working_directory"} & {*sent.body, *sent.body["job"]}


async def test_it_says_when_slurm_will_end_it_and_that_a_preemption_with_a_grace_time_is_earlier(
    world: JobWorld,
) -> None:
    number = await runs(world, time="60")
    start = world.slurm.world.jobs[number].start_time
    assert start is not None
    limit, grace = start + timedelta(hours=1), start + timedelta(seconds=30)
    world.slurm.world.set_job_state(number, "RUNNING", end_time=limit)
    await world.until(lambda: world.status().get("deadline") == stamp(limit))
    world.slurm.world.set_job_state(number, "RUNNING", end_time=grace, preempt_time=start)
    await world.until(lambda: world.status().get("deadline") == stamp(grace))
    world.slurm.world.time_out(number)
    await world.until(lambda: is_over(world))
    assert "deadline" not in world.status()


async def test_one_without_a_limit_has_no_deadline(world: JobWorld) -> None:
    number = await runs(world)
    job = world.slurm.world.jobs[number]
    later = job.start_time and job.start_time + timedelta(days=365)
    world.slurm.world.set_job_state(number, "RUNNING", end_time=later, time_limit=INFINITE)
    for _ in range(3):
        await world.step()
    assert "deadline" not in world.status()


async def test_it_is_not_running_before_slurm_has_said_what_it_was_given(world: JobWorld) -> None:
    refuse(world, r"GET /slurm/\S+/job/\d+")
    create(world)
    await world.submitted()
    await world.until(lambda: world.status().get("reason") == "Starting")
    assert world.status()["state"] == "Pending"
    assert "reads what it was given" in world.condition("Running")[2]
    before = asked(world)
    for _ in range(5):
        await world.step()
    assert asked(world) == before
    world.slurm.faults.clear()
    world.ahead += timedelta(seconds=6)
    await world.until(lambda: world.status().get("state") == "Running")
    assert world.status()["allocation"]


async def test_a_number_without_the_mark_is_another_job(world: JobWorld) -> None:
    create(world)
    number = await world.submitted()
    mark, shown = marks.Mark("uid-team-hello", 0), records.of_queue([job := world.slurm.world.jobs[number]])
    assert shown is not None
    assert allocations.is_of([job], mark, "alice", shown)
    for wrong in (
        replace(job, extra="slurmjob.slinky.slurm.net/uid=other.0"),
        replace(job, user="bob"),
        replace(job, start_time=job.start_time and job.start_time + timedelta(seconds=1)),
        replace(job, state=type(job.state)("RUNNING", frozenset({"CONFIGURING"}))),
        replace(job, state=type(job.state)("PENDING", frozenset())),
        replace(job, het_job_id=number + 1),
    ):
        assert not allocations.is_of([wrong], mark, "alice", shown)


@pytest.mark.parametrize(("code", "shown"), [(0, ("Succeeded", "Completed")), (3, ("Failed", "NonZeroExitCode"))])
async def test_its_end_is_that_of_its_work(world: JobWorld, code: int, shown: tuple[str, str]) -> None:
    number = await runs(world)
    world.job(external={"ended": {"exitCode": code}})
    await world.until(lambda: is_over(world))
    assert says(world) == shown
    assert world.status()["exitCode"] == code
    assert world.slurm.world.jobs[number].state.base == "CANCELLED"
    assert world.status()["allocation"]
    assert f"ended with exit code {code}" in world.condition("Finished")[2]
    words = f"job {number} was cancelled, since its work has ended (spec.external.ended)"
    assert world.events.told.count(("Normal", "JobCancelled", words)) == 1
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers"))


async def test_what_came_first_is_told(world: JobWorld) -> None:
    number = await runs(world, time="1")
    world.slurm.world.time_out(number)
    world.job(external={"ended": {"exitCode": 0}})
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "Timeout")


async def test_a_cancellation_by_others_is_one(world: JobWorld) -> None:
    number = await runs(world)
    world.slurm.world.cancel_job(number)
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "Cancelled")
    world.job(external={"ended": {"exitCode": 0}})
    for _ in range(3):
        await world.step()
    assert says(world) == ("Failed", "Cancelled")


@pytest.mark.parametrize("code", [0, 7])
async def test_what_has_ended_before_is_never_submitted(world: JobWorld, code: int) -> None:
    world.job(script=None, external={"ended": {"exitCode": code}})
    await world.until(lambda: is_over(world))
    assert says(world) == (("Failed", "NonZeroExitCode") if code else ("Succeeded", "Completed"))
    assert world.status()["exitCode"] == code
    assert world.slurm.calls("post_job_submit") == []


async def test_a_job_that_waits_ends_with_its_work(world: JobWorld) -> None:
    create(world, tasks=100)
    number = await world.submitted()
    world.job(external={"ended": {"exitCode": 2}})
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "NonZeroExitCode")
    assert world.slurm.world.jobs[number].state.base == "CANCELLED"
    assert world.status().get("allocation") is None


async def test_another_start_that_nobody_saw_is_read(world: JobWorld) -> None:
    number = await runs(world)
    job = world.slurm.world.jobs[number]
    later = job.start_time and job.start_time + timedelta(seconds=5)
    world.slurm.world.set_job_state(number, "RUNNING", start_time=later)
    await world.until(lambda: asked(world) == 2)
    await world.until(lambda: world.status()["state"] == "Running")


async def test_one_that_slurmctld_has_lost_ends_as_its_work_if_that_is_known(world: JobWorld) -> None:
    create(world, tasks=100)
    world.slurm.world.forget_job(await world.submitted())
    await world.until(lambda: is_over(world))
    assert says(world) == ("Unknown", "EndNotSeen")
    create(world, "other")
    number = await world.submitted("other")
    await world.until(lambda: world.status("other").get("state") == "Running")
    world.slurm.world.forget_job(number)
    world.job("other", external={"ended": {"exitCode": 4}})
    await world.until(lambda: is_over(world, "other"))
    assert says(world, "other") == ("Failed", "NonZeroExitCode")
    assert world.status("other")["exitCode"] == 4
    assert world.slurm.calls("delete_job") == []


async def test_one_that_slurmctld_has_forgotten_before_its_answer_came_is_submitted_again(world: JobWorld) -> None:
    """It was no work: only its nodes count, and these nobody was told of. A job with a script is not repeated then."""
    create(world)
    await killed_at(world, "jobId")
    (first,) = world.slurm.world.jobs
    world.slurm.world.forget_job(first)
    world.ahead += timedelta(minutes=30)
    assert await world.submitted() != first
    await world.until(lambda: world.status().get("state") == "Running")


async def test_a_number_that_was_given_to_another_job_is_not_cancelled(world: JobWorld) -> None:
    number = await runs(world)
    queue = world.queues.get("cluster-1")
    assert queue is not None
    ours = world.slurm.world.jobs[number]
    # The list that the operator has is older than the crash.
    refuse(world, r"GET /slurm/\S+/jobs/")
    world.slurm.world.jobs[number] = replace(ours, extra="", user="bob", name="another")
    world.job(external={"ended": {"exitCode": 0}})
    calls = asked(world)
    await world.until(lambda: asked(world) > calls)
    for _ in range(3):
        await world.step()
    assert world.slurm.calls("delete_job") == []
    assert world.slurm.world.jobs[number].is_running
    assert "JobCancelled" not in world.events.reasons()


# components

DRIVER: dict[str, Any] = {"tasks": 1, "cpusPerTask": 4, "parameters": {"memory_per_cpu": 100}}
WORKERS: dict[str, Any] = {"tasks": 3, "parameters": {"memory_per_cpu": 10, "tres_per_task": "gres/gpu=1"}}


def parts(world: JobWorld, number: int) -> list[Any]:
    return [job for job in world.slurm.world.jobs.values() if job.het_job_id == number]


async def runs_in_components(world: JobWorld, *components: dict[str, Any], **spec: Any) -> int:
    world.job(script=None, external={"components": list(components or (DRIVER, WORKERS))}, **spec)
    number = await world.submitted()
    await world.until(lambda: world.status().get("state") == "Running")
    return number


async def test_components_are_one_job_and_each_says_what_it_was_given(world: JobWorld) -> None:
    number = await runs_in_components(world, parameters={"nice": 3, "memory_per_cpu": 1, "licenses": "l:1"}, time="10")
    assert world.status()["allocation"] == [
        {"component": 0, "node": "k-1", "cpus": 4, "memory": 400, "gres": []},
        {"component": 1, "node": "k-0", "cpus": 3, "memory": 30, "gres": ["gpu:a100:3(IDX:0-2)"]},
    ]
    assert world.status()["nodes"] == "k-1,k-0"
    (sent,) = world.slurm.calls("post_job_submit")
    assert sent.body is not None
    jobs = sent.body["jobs"]
    assert [(job["tasks"], job["cpus_per_task"], job["nice"]) for job in jobs] == [(1, 4, 3), (3, 1, 3)]
    # Counted once, not for each component.
    assert ["licenses" in job for job in jobs] == [True, False]
    assert {job["extra"] for job in jobs} == {"slurmjob.slinky.slurm.net/uid=uid-team-hello.0"}
    world.job(external={"components": [DRIVER, WORKERS], "ended": {"exitCode": 0}})
    await world.until(lambda: is_over(world))
    assert says(world) == ("Succeeded", "Completed")
    assert {str(job.state) for job in parts(world, number)} == {"CANCELLED"}


async def test_a_component_that_ends_alone_ends_the_job(world: JobWorld) -> None:
    number = await runs_in_components(world)
    _, workers = parts(world, number)
    world.slurm.world.finish_job(workers.id, "NODE_FAIL")
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "NodeFail")
    assert [str(job.state) for job in parts(world, number)] == ["CANCELLED", "NODE_FAIL"]
    assert "ComponentEnded" in world.events.reasons()


async def test_an_answer_that_is_lost_leads_to_one_job_of_all_components(world: JobWorld) -> None:
    world.slurm.faults.add(r"POST /slurm/\S+/job/submit", times=1, truncate=0.0)
    number = await runs_in_components(world)
    assert len(parts(world, number)) == len(world.slurm.world.jobs) == 2
    assert world.status()["jobId"] == number


async def test_only_the_first_component_waits_for_other_jobs(world: JobWorld) -> None:
    await runs(world)
    world.job(
        "next", script=None, external={"components": [DRIVER, WORKERS]}, dependsOn=[{"name": "hello", "type": "after"}]
    )
    number = await world.submitted("next")
    await world.until(lambda: world.status("next").get("state") == "Running")
    sent = world.slurm.calls("post_job_submit")[-1].body
    assert sent is not None
    assert ["dependency" in job for job in sent["jobs"]] == [True, False]
    assert number in world.slurm.world.jobs


@pytest.mark.parametrize(
    ("components", "field"),
    [
        ([DRIVER, {"memory": "much"}], "spec.external.components[1].memory"),
        ([DRIVER, {"parameters": {"nosuch": 1}}], "spec.external.components[1].parameters.nosuch"),
        ([{"parameters": {"dependency": "after:1"}}, DRIVER], "spec.external.components[0].parameters.dependency"),
        (
            [{"parameters": {"kill_on_node_fail": False}}, {}],
            "spec.external.components[0].parameters.kill_on_node_fail",
        ),
    ],
)
async def test_what_is_wrong_with_a_component_is_told_with_its_path(
    world: JobWorld, components: list[dict[str, Any]], field: str
) -> None:
    world.job(script=None, external={"components": components})
    await world.until(lambda: world.condition("Submitted")[1] == "InvalidSpec")
    assert field in world.condition("Submitted")[2]


async def test_a_component_asks_for_no_more_than_is_granted(world: JobWorld) -> None:
    world.cluster(jobs={"tenants": [{"namespaces": ["team"], "user": "alice", "partitions": ["all"]}]})
    world.job(script=None, external={"components": [DRIVER, {"partition": "secret"}]})
    await world.until(lambda: world.condition("Submitted")[1] == "JobsNotAllowed")
    assert "spec.external.components[1].partition: 'secret' is not granted" in world.condition("Submitted")[2]


async def test_a_dry_run_shows_all_components(world: JobWorld) -> None:
    world.job(script=None, external={"components": [DRIVER, WORKERS]}, dryRun=True)
    await world.until(lambda: is_over(world))
    assert len(json.loads(world.status()["request"]["body"])["jobs"]) == 2
    assert world.slurm.world.jobs == {}


async def test_more_nodes_than_a_status_holds_are_refused(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocations, "MAX_ALLOCATION", 1)
    create(world, tasks=6, cpusPerTask=2)
    await world.submitted()
    await world.until(lambda: is_over(world))
    assert says(world) == ("Failed", "Cancelled")
    assert (
        f"Slurm gave it 2 nodes, and a job without a script may have {kind.MAX_ALLOCATION}"
        in (world.condition("Finished")[2])
    )
    assert "AllocationTooLarge" in world.events.reasons()
    assert world.status().get("allocation") is None


@pytest.mark.parametrize("release", ["24.11.5", "25.11.6", "26.05.2"])
@pytest.mark.parametrize("is_dry", [False, True])
async def test_a_slurm_that_is_too_old_is_named(is_dry: bool, release: str) -> None:
    async with job_world(release=release) as world:
        create(world, dryRun=is_dry)
        await world.until(lambda: world.condition("Submitted")[1] == "SubmissionRefused")
        assert "a job without a script (spec.external) needs Slurm 26.05.3 or newer" in world.condition("Submitted")[2]
        assert world.slurm.calls("post_job_submit") == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"script": "#!/bin/sh\n"}, "spec.script"),
        ({"env": [{"name": "A"}]}, "spec.env"),
        ({"workingDirectory": "/data"}, "spec.workingDirectory"),
        ({"requeue": True}, "spec.requeue"),
        ({"parameters": {"kill_warning_signal": "USR1"}}, "spec.parameters.kill_warning_signal"),
        ({"parameters": {"flags": ["STEPMGR_ENABLED"]}}, "spec.parameters.flags"),
    ],
)
async def test_what_means_nothing_to_it_is_refused(world: JobWorld, spec: dict[str, Any], field: str) -> None:
    world.job(**{"script": None, "external": {}, **spec})
    await world.until(lambda: world.condition("Submitted")[1] == "InvalidSpec")
    assert field in world.condition("Submitted")[2]
    assert world.slurm.calls("post_job_submit") == []


async def test_others_wait_for_the_end_of_its_work(world: JobWorld) -> None:
    await runs(world)
    world.slurm.add_node("w-0", cpus=8)
    world.job("next", dependsOn=[{"name": "hello"}])
    world.job("never", dependsOn=[{"name": "hello", "type": "afternotok"}])
    await world.until(lambda: world.condition("Submitted", "next")[1] == "DependencyNotFinished")
    world.job(external={"ended": {"exitCode": 0}})
    await world.until(lambda: world.status("next").get("jobId"))
    await world.until(lambda: world.condition("Submitted", "never")[1] == "DependencyNeverSatisfied")


# accounting


async def test_accounting_has_the_end_of_its_work(world: JobWorld) -> None:
    world.cluster(**ACCOUNTING)
    number = await runs(world)
    world.job(external={"ended": {"exitCode": 3, "comment": "pod a: OOMKilled"}})
    await world.until(lambda: world.status().get("recorded"))
    record = await _client(world).db.job(number)
    assert record.derived_exit_code is not None
    assert (record.derived_exit_code.return_code, record.comment) == (3, "pod a: OOMKilled")
    calls = len(world.slurm.calls("db_post_job"))
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers"))
    for _ in range(3):
        await world.step()
    assert len(world.slurm.calls("db_post_job")) == calls == 1


async def test_accounting_is_told_again_until_it_knows_the_job(world: JobWorld) -> None:
    world.cluster(**ACCOUNTING)
    await runs(world)
    refuse(world, r"GET /slurmdb/\S+/job/\d+")
    world.job(external={"ended": {"exitCode": 3}})
    await world.until(lambda: is_over(world))
    await world.until(lambda: world.slurm.calls("db_get_job"))
    calls = len(world.slurm.calls("db_get_job"))
    for _ in range(5):
        await world.step()
    assert len(world.slurm.calls("db_get_job")) == calls
    assert world.kube.objects["slurmjobs", "team", "hello"]["metadata"]["finalizers"]
    world.slurm.faults.clear()
    world.ahead += timedelta(seconds=execute.PAUSES_S[-1])
    await world.until(lambda: world.status().get("recorded"))


async def test_the_operator_gives_up_at_last_and_says_so(world: JobWorld) -> None:
    world.cluster(**ACCOUNTING)
    number = await runs(world)
    refuse(world, r"GET /slurmdb/\S+/job/\d+")
    world.job(external={"ended": {"exitCode": 3}})
    await world.until(lambda: is_over(world))
    await world.until(lambda: world.slurm.calls("db_get_job"))
    world.ahead += external.RECORDED
    await world.until(lambda: world.status().get("recorded") is False)
    (told,) = [message for _, reason, message in world.events.told if reason == "EndNotRecorded"]
    assert f"the exit code 3 of job {number} is not in Slurm's accounting" in told
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers"))


async def test_the_record_of_another_job_with_its_number_is_left_alone(world: JobWorld) -> None:
    world.cluster(**ACCOUNTING)
    number = await runs(world)
    refuse(world, r"GET /slurmdb/\S+/job/\d+")
    world.job(external={"ended": {"exitCode": 3}})
    await world.until(lambda: world.slurm.calls("db_get_job"))
    world.slurm.world.jobs[number] = replace(world.slurm.world.jobs[number], extra="another")
    world.slurm.faults.clear()
    world.ahead += external.RECORDED
    await world.until(lambda: world.status().get("recorded") is False)
    assert world.slurm.calls("db_post_job") == []
    (told,) = [message for _, reason, message in world.events.told if reason == "EndNotRecorded"]
    assert "is another job" in told
    # It would change the record of the other job.
    assert "sacctmgr" not in told


async def test_a_number_that_slurmctld_has_given_again_is_not_waited_for(world: JobWorld) -> None:
    world.cluster(**ACCOUNTING)
    number = await runs(world)
    refuse(world, r"GET /slurmdb/\S+/job/\d+")
    world.job(external={"ended": {"exitCode": 3}})
    await world.until(lambda: world.slurm.calls("db_get_job"))
    found = world.slurm.world.jobs[number]
    assert found.submit_time is not None
    later = found.submit_time + timedelta(seconds=21)
    world.slurm.world.jobs[number] = replace(found, extra="another", submit_time=later)
    world.slurm.faults.clear()
    world.ahead += timedelta(seconds=execute.PAUSES_S[0])
    await world.until(lambda: world.status().get("recorded") is False)
    assert world.slurm.calls("db_post_job") == []
    (told,) = [message for _, reason, message in world.events.told if reason == "EndNotRecorded"]
    assert "is another job" in told
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers"))


async def is_not_recorded(world: JobWorld, pauses: Sequence[float]) -> Callable[[], bool]:
    """The end of a job is refused by accounting before each of these pauses; returns whether it is tried once more."""
    world.cluster(**ACCOUNTING)
    await runs(world)
    refuse(world, r"GET /slurmdb/\S+/job/\d+")
    world.job(external={"ended": {"exitCode": 3}})
    await world.until(lambda: is_over(world))
    asked = 0

    def is_asked_again() -> bool:
        return len(world.slurm.calls("db_get_job")) > asked

    for pause in pauses:
        await world.until(is_asked_again)
        asked = len(world.slurm.calls("db_get_job"))
        world.ahead += timedelta(seconds=pause)
    return is_asked_again


async def test_an_object_that_is_deleted_waits_no_longer_when_many_attempts_have_failed(world: JobWorld) -> None:
    is_asked_again = await is_not_recorded(world, execute.PAUSES_S)
    await world.until(is_asked_again)
    world.delete()
    await world.step()
    assert world.exists()
    world.ahead += external.RECORDED_DELETING
    for _ in range(4):
        await world.step()
    assert not world.exists()


async def test_an_attempt_that_fails_after_the_deletion_puts_the_last_one_off_no_further(world: JobWorld) -> None:
    is_asked_again = await is_not_recorded(world, execute.PAUSES_S[:-1])
    world.delete()
    again = None
    while not is_asked_again():
        again = (await world.step()).requeue_after
    assert again is not None
    assert again <= external.RECORDED_DELETING.total_seconds()


async def test_an_object_that_is_deleted_waits_for_accounting_a_little(world: JobWorld) -> None:
    world.cluster(**ACCOUNTING)
    number = await runs(world)
    refuse(world, r"GET /slurmdb/\S+/job/\d+")
    world.job(external={"ended": {"exitCode": 3}})
    await world.step()
    world.delete()
    await world.until(lambda: world.slurm.calls("db_get_job"))
    assert world.exists()
    world.slurm.faults.clear()
    world.ahead += timedelta(seconds=20)
    await world.until(lambda: not world.exists())
    record = await _client(world).db.job(number)
    assert record.derived_exit_code is not None
    assert record.derived_exit_code.return_code == 3


async def test_without_accounting_nothing_is_told(world: JobWorld) -> None:
    await runs(world)
    world.job(external={"ended": {"exitCode": 3}})
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers"))
    assert world.status().get("recorded") is None
    assert world.slurm.calls("db_get_job") == []


async def test_jobs_that_ended_before_there_was_accounting_are_let_be(world: JobWorld) -> None:
    await runs(world)
    world.job(external={"ended": {"exitCode": 3}})
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers"))
    world.ahead += external.RECORDED
    world.cluster(**ACCOUNTING)
    for _ in range(3):
        await world.step()
    assert world.slurm.calls("db_get_job") == []


async def test_the_end_of_work_that_slurm_has_ended_is_recorded_too(world: JobWorld) -> None:
    world.cluster(**ACCOUNTING)
    number = await runs(world, time="1")
    world.slurm.world.time_out(number)
    await world.until(lambda: is_over(world))
    await world.until(lambda: not world.kube.objects["slurmjobs", "team", "hello"]["metadata"].get("finalizers"))
    world.job(external={"ended": {"exitCode": 143}})
    await world.until(lambda: world.status().get("recorded"))
    assert says(world) == ("Failed", "Timeout")


def _client(world: JobWorld) -> Any:
    entry = world.clients.get("cluster-1")
    assert entry is not None
    return entry.client
