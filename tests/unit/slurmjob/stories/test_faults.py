"""What goes wrong between two writes, in the client and while nobody looks; each of these once led to a wrong end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.slurmjob.ended_jobs import EndedJobs
from slinky_operator.slurmjob.execute import slurm_calls
from slinky_operator.slurmjob.model import dependencies
from slinky_operator.slurmjob.model.plan import HISTORY_AWAY_S
from slinky_operator.slurmjob.model.slurm_records import reading, records
from slinky_operator.slurmjob.model.slurm_records.marks import Mark
from slinky_operator.slurmjob.model.snapshot import History
from slinky_operator.slurmjob.model.stages.late_calls import SETTLED
from slinky_operator.slurmjob.model.stages.obstacles import OBSTACLE_S
from slinky_operator.slurmjob.model.stages.submitted import CLUSTER_GONE, HISTORY_PATIENCE
from slinky_operator.slurmjob.polling import queues
from slurm_client import errors
from slurm_client.watch import SYNCED, Event
from tests.support.slurm_jobs import Events, Killed, until
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


def submissions(world: JobWorld) -> int:
    return len([one for one in world.slurm.requests if one.path.endswith("submit")])


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


async def test_a_client_that_is_closed_may_have_submitted(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    real = slurm_calls.submit

    async def closed(*arguments: Any) -> Any:
        _ = await real(*arguments)
        raise errors.ClientClosed("the client is closed")

    monkeypatch.setattr(slurm_calls, "submit", closed)
    world.job()
    await world.until(lambda: world.status().get("jobId") or world.events.reasons())
    assert "SubmissionRefused" not in world.events.reasons()
    await world.submitted()
    assert len(world.in_slurm()) == 1


async def test_what_was_not_sent_is_no_refusal(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(*_: Any) -> Any:
        raise errors.CircuitOpen("not tried")

    world.job()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", down)
        await world.until(lambda: world.condition("Submitted")[0])
    assert world.condition("Submitted")[1] == "SlurmUnreachable"
    assert "submission" not in world.status()
    world.ahead += timedelta(seconds=10)
    await world.submitted()
    assert len(world.in_slurm()) == 1


async def test_a_submission_that_begins_slowly_waits_until_nobody_else_makes_it(world: JobWorld) -> None:
    def slow(status: dict[str, Any]) -> None:
        if status.get("submission"):
            world.ahead += timedelta(seconds=30)
            world.kube.before_status = None

    world.kube.before_status = slow
    world.job()
    await world.until(lambda: world.condition("Submitted")[1] == "Submitting")
    assert submissions(world) == 0
    world.ahead += SETTLED
    await world.submitted()
    assert submissions(world) == 1


async def test_a_hold_of_an_operator_that_ended_is_released(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.job("first", nodes=4)
    await world.until(lambda: world.status("first").get("state") == "Running")
    world.job(nodes=4)
    await world.until(lambda: world.status().get("state") == "Pending")
    world.job(suspend=True)
    real = slurm_calls.hold

    async def killed(*arguments: Any, **options: Any) -> None:
        await real(*arguments, **options)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "hold", killed)
        with pytest.raises(Killed):
            await world.until(lambda: False)
    await world.kill()
    world.job(suspend=False)
    await world.until(lambda: world.status()["reason"] != "Held" and not world.status().get("held"))
    assert [job.hold for job in world.in_slurm()] == [False, False]


async def test_what_an_administrator_holds_is_not_released_again_and_again(world: JobWorld) -> None:
    world.job("first", nodes=4)
    await world.until(lambda: world.status("first").get("state") == "Running")
    world.job(nodes=4)
    await world.until(lambda: world.status().get("state") == "Pending")
    world.job(suspend=True)
    await world.until(lambda: world.status().get("held"))
    number = world.status()["jobId"]
    world.slurm.world.jobs[number] = replace(world.slurm.world.jobs[number], state_reason="JobHeldAdmin")
    await world.until(lambda: world.status().get("slurmReason") == "JobHeldAdmin")
    world.job(suspend=False)
    before = len(world.slurm.requests)
    for _ in range(3):
        result = await world.step()
        assert result.requeue_after is None
    assert [one.path for one in world.slurm.requests[before:] if one.method == "POST"] == []


async def test_a_lost_job_is_found_in_the_history_whatever_its_name(world: JobWorld) -> None:
    world.cluster(accounting={})
    world.job(script="#!/bin/sh\n#SBATCH --job-name=a,b\nsleep 1\n")
    await killed_at(world, "jobId")
    (job,) = world.in_slurm()
    world.slurm.world.exit_job(job.id)
    world.slurm.world.clock.advance(1000)
    world.ahead += 2 * SETTLED
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert world.status()["jobId"] == job.id
    assert submissions(world) == 1


async def test_slurmdbd_has_time_to_hear_of_a_job(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    async def killed(*_: Any) -> None:
        raise Killed

    world.cluster(accounting={})
    world.job()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "submit", killed)
        with pytest.raises(Killed):
            await world.until(lambda: False)
    await world.kill()
    world.ahead += 2 * SETTLED
    asked = lambda: [one for one in world.slurm.requests if "/slurmdb/" in one.path]  # noqa: E731 - asked twice
    await world.until(asked)
    for _ in range(3):
        await world.step()
    assert submissions(world) == 0
    world.ahead += HISTORY_PATIENCE
    await world.submitted()
    assert submissions(world) == 1


async def test_a_slurmdbd_that_is_away_is_named_and_has_time_to_hear_of_the_end(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> Any:
        raise errors.DatabaseDown("Unable to connect to database")

    async def knows_nothing(*_: Any) -> History:
        return History()

    world.cluster(accounting={})
    world.job()
    number = await world.submitted()
    await world.clients.close_all()
    world.slurm.world.exit_job(number, 7)
    world.slurm.world.clock.advance(1000)
    await world.start()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "history", away)
        await world.until(lambda: world.condition("Submitted")[1] == "AccountingDown")
        assert f"slurmctld has forgotten job {number}, and slurmdbd" in world.condition("Submitted")[2]
        assert "slurmdbd" in world.status()["summary"]
        world.ahead += 2 * HISTORY_PATIENCE
        result = await world.step()
        assert result.requeue_after == HISTORY_AWAY_S
        patched.setattr(slurm_calls, "history", knows_nothing)
        for _ in range(3):
            await world.step()
    assert world.condition("Finished")[0] == "False"
    assert world.events.reasons().count("AccountingDown") == 1
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert (world.status()["reason"], world.status()["exitCode"]) == ("NonZeroExitCode", 7)
    assert world.condition("Submitted")[1] == "Submitted"


async def test_a_slurmdbd_that_was_away_is_not_named_beside_an_end_that_nobody_saw(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> Any:
        raise errors.DatabaseDown("Unable to connect to database")

    async def knows_nothing(*_: Any) -> History:
        return History()

    world.cluster(accounting={})
    world.job()
    number = await world.submitted()
    await world.clients.close_all()
    world.slurm.world.exit_job(number)
    world.slurm.world.clock.advance(1000)
    await world.start()
    with monkeypatch.context() as patched:
        patched.setattr(slurm_calls, "history", away)
        await world.until(lambda: world.condition("Submitted")[1] == "AccountingDown")
    monkeypatch.setattr(slurm_calls, "history", knows_nothing)
    for _ in range(3):
        await world.step()
    world.ahead += HISTORY_PATIENCE
    await world.until(lambda: world.condition("Finished")[0] == "True")
    assert world.condition("Finished")[1] == "EndNotSeen"
    assert world.condition("Submitted") == ("True", "Submitted", f"Slurm had accepted it as job {number}")


async def test_what_may_be_in_slurm_is_not_said_to_be_missing_while_slurm_is_away(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: Any) -> Any:
        raise errors.Timeout("no answer")

    monkeypatch.setattr(slurm_calls, "submit", lost)
    world.job()
    await world.until(lambda: world.status().get("submission"))
    await world.clients.close_all()
    await world.until(lambda: world.condition("Submitted")[1] == "ClusterNotReady")
    assert world.condition("Submitted")[0] == "Unknown"
    world.job(clusterName="gone")
    await world.until(lambda: world.condition("Submitted")[1] == "ClusterNotFound")
    assert world.condition("Submitted")[0] == "Unknown"


@pytest.mark.parametrize("status", [408, 409, 425, 429])
@pytest.mark.parametrize("body", ["<html></html>", {"errors": [{"error": "too many"}]}])
async def test_a_proxy_that_gives_up_is_no_refusal_of_slurms(world: JobWorld, status: int, body: Any) -> None:
    kind = "text/html" if isinstance(body, str) else "application/json"
    world.slurm.faults.add("job/submit", status=status, body=body, content_type=kind, late=True)
    world.job()
    await world.submitted()
    assert "SubmissionRefused" not in world.events.reasons()
    assert submissions(world) == len(world.slurm.world.jobs) == 1


@pytest.mark.parametrize("status", [400, 403, 413])
async def test_a_proxy_that_turns_a_call_away_is_a_refusal(world: JobWorld, status: int) -> None:
    world.slurm.faults.add("job/submit", status=status, body="<html></html>", content_type="text/html")
    world.job()
    await world.until(lambda: world.condition("Submitted")[1] == "SubmissionRefused")
    assert world.condition("Submitted")[0] == "False"
    world.ahead += timedelta(seconds=11)
    await world.submitted()
    assert submissions(world) == 2


async def test_jobs_of_a_cluster_that_is_gone_end_after_a_while(world: JobWorld) -> None:
    world.job(ttlSecondsAfterFinished=60)
    world.job("failed", backoffLimit=2)
    world.job("waits", clusterName="other")
    number, failed = await world.submitted(), await world.submitted("failed")
    await world.until(lambda: world.status()["state"] == world.status("failed")["state"] == "Running")
    world.job("failed", suspend=True)  # So that nothing is submitted after its failure.
    world.slurm.world.exit_job(failed, 3)
    await world.until(lambda: world.status("failed")["submission"].get("failure"))
    await world.clients.close_all()
    world.kube.forget(CLUSTERS, world.kube.objects["clusters", "ns", "slurm"])
    await world.until(lambda: world.condition("Submitted")[1] == "ClusterNotFound")
    assert world.condition("Running")[0] == "True"
    world.ahead += CLUSTER_GONE - timedelta(seconds=30)
    for name in ("hello", "failed", "waits"):
        await world.step(name)
    assert world.condition("Finished")[0] == "False"
    world.ahead += timedelta(seconds=31)
    await world.until(lambda: world.condition("Finished")[0] == world.condition("Finished", "failed")[0] == "True")
    assert (world.status()["state"], world.condition("Finished")[1]) == ("Unknown", "ClusterGone")
    assert f"the end of job {number} is not known" in world.condition("Finished")[2]
    assert (world.status("failed")["state"], world.status("failed")["exitCode"]) == ("Failed", 3)
    assert world.condition("Finished", "waits")[0] == "False"
    world.ahead += timedelta(seconds=61)
    await world.until(lambda: not world.exists())


async def test_a_cluster_of_a_namespace_that_is_not_watched_is_not_taken_for_gone(world: JobWorld) -> None:
    """The operator was given fewer namespaces: the job runs, and could not be cancelled if its object went."""
    world.job()
    number = await world.submitted()
    await world.until(lambda: world.status()["state"] == "Running")
    await world.clients.close_all()
    world.kube.forget(CLUSTERS, world.kube.objects["clusters", "ns", "slurm"])
    world.watched = ("team",)
    await world.start()
    await world.until(lambda: world.condition("Submitted")[1] == "ClusterNotReady")
    assert "Cluster ns/slurm is in a namespace that this operator does not watch" in world.condition("Submitted")[2]
    world.ahead += CLUSTER_GONE + timedelta(seconds=1)
    for _ in range(3):
        await world.step()
    assert world.condition("Finished")[0] == "False"
    world.delete()
    for _ in range(3):
        await world.step()
    assert world.exists()
    assert world.slurm.world.jobs[number].state.base == "RUNNING"
    await world.clients.close_all()
    world.watched = ()
    world.cluster()
    await world.start()
    await world.until(lambda: not world.exists())
    assert world.slurm.world.jobs[number].state.base == "CANCELLED"


async def test_a_cluster_that_is_created_again_soon_has_its_jobs(world: JobWorld) -> None:
    world.job()
    _ = await world.submitted()
    cluster = world.kube.objects["clusters", "ns", "slurm"]
    world.kube.forget(CLUSTERS, cluster)
    await world.until(lambda: world.condition("Submitted")[1] == "ClusterNotFound")
    world.kube.put(CLUSTERS, cluster)
    await world.until(lambda: world.condition("Submitted")[1] == "Submitted")
    world.kube.forget(CLUSTERS, world.kube.objects["clusters", "ns", "slurm"])
    world.ahead += CLUSTER_GONE
    await world.until(lambda: world.condition("Submitted")[1] == "ClusterNotFound")
    assert world.condition("Finished")[0] == "False"


async def test_without_slurm_passes_are_rare(world: JobWorld) -> None:
    """An event ends the waiting: thousands of jobs do not look every few seconds."""
    world.job(clusterName="other")
    world.job("more")
    await world.clients.close_all()
    for name in ("hello", "more"):
        result = await world.step(name)
        assert result.requeue_after == OBSTACLE_S


async def test_jobs_that_go_while_the_list_is_not_followed_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "AGAIN_S", 0.0)
    over = SimpleNamespace(is_finished=True)
    gone, stays = (SimpleNamespace(id=number, extra=Mark(f"uid-{number}", 0).text, state=over) for number in (1, 2))
    lists = [[gone, stays], [stays]]

    class Reader:
        """Gives one list, and then an error; the second one waits."""

        def __init__(self, jobs: list[Any]) -> None:
            self._jobs = jobs

        def pending(self) -> int:
            return 0

        async def __aiter__(self) -> AsyncIterator[Any]:
            for job in self._jobs:
                yield Event(str(job.id), None, job)
            yield SYNCED
            if lists:
                raise RuntimeError("the watch broke")
            await asyncio.Event().wait()

    @asynccontextmanager
    async def reader(**_: Any) -> AsyncIterator[Reader]:
        yield Reader(lists.pop(0))

    watch = SimpleNamespace(reader=reader, status=SimpleNamespace(age=None))
    entry = SimpleNamespace(client=SimpleNamespace(job_watch=watch), closed=False)
    told: list[str] = []
    ended = EndedJobs(lambda _: (), Events())
    followed = queues.Queues(cast("queues.Clients", SimpleNamespace(get=lambda _: entry)), lambda _: True, ended)
    followed.subscribe(told.append)
    queue = followed.get("cluster-1")
    assert queue is not None
    assert queue.task is not None
    await until(lambda: not lists and queue.is_complete)
    queue.task.cancel()
    assert sorted(told) == ["uid-1", "uid-1", "uid-2", "uid-2"]


def test_no_loop_is_looked_for_behind_jobs_that_slurm_has() -> None:
    def job(number: int) -> Object:
        spec = {"dependsOn": [{"name": f"job-{number - 1}"}]} if number else {}
        return {"metadata": {"name": f"job-{number}"}, "spec": spec, "status": {"jobId": number + 1}}

    looked: list[str] = []

    def find(name: str) -> Object:
        looked.append(name)
        return job(int(name.removeprefix("job-")))

    assert dependencies.resolve({**job(500), "status": {}}, find) == dependencies.Ready("afterok:500")
    assert looked == ["job-499"]


async def test_what_is_gone_is_forgotten_without_a_look_at_all_others(world: JobWorld) -> None:
    world.job(cancelPolicy="Keep")
    await world.submitted()
    found = world.kube.objects["slurmjobs", "team", "hello"]
    assert labels.FINALIZER_SLURMJOB in found["metadata"]["finalizers"]
    world.kube.forget(world.reconciler.resource, found)

    class Empty:
        """A cache that nobody may go through."""

        def get(self, *_: str) -> None:
            return None

    world.reconciler.objects = Empty()  # type: ignore[assignment]
    assert (await world.step()).requeue_after is None


async def test_the_records_of_a_large_array_are_counted_in_a_thread(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []
    real = records.of_queue

    def counted(*arguments: Any) -> Any:
        threads.append(threading.current_thread() is not threading.main_thread())
        return real(*arguments)

    monkeypatch.setattr(reading, "MANY_RECORDS", 2)
    monkeypatch.setattr(records, "of_queue", counted)
    world.job(array="0-2")
    await world.until(lambda: (world.status().get("array") or {}).get("running") == 3)
    assert True in threads
