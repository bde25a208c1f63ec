"""Copies of results that fail, wait or are interrupted: what is tried again, what is given up, and what is said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slinky_api import labels
from slinky_operator.kube.errors import Forbidden, Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, SECRETS, Resource
from slinky_operator.pod_programs.joblogs.copies.orders import Report
from slurm_client.testing.slurmctld.queue import uid_of
from tests.unit.slurmjob.file_worlds import SERVED, FileWorld, collected, result
from tests.unit.slurmjob.log_worlds import node_pod

UID = uid_of("alice")
COPIED = Report("", is_final=True, files=3, size=120)
AWAY = Report("the server does not answer")
MISSING = Report("there is no run", is_final=True)


async def test_a_failure_that_stays_is_told_and_others_are_kept(files: FileWorld) -> None:
    await files.ended(results=[result(), result("/var/spool/job-output/b")])
    await files.world.until(files.names)
    files.pod_ends([MISSING, COPIED])
    await files.world.until(lambda: files.files()["results"]["isComplete"])
    assert collected(files) == ("False", "CopyFailed", "results[0]: there is no run")
    assert ("Warning", "CopyFailed", "results[0]: there is no run") in files.world.events.told
    assert [one["isCopied"] for one in files.files()["results"]["copies"]] == [False, True]
    await files.world.step()
    assert files.names() == ["hello-results"]


async def test_a_failure_that_may_mend_is_tried_by_other_pods_a_few_times(files: FileWorld) -> None:
    await files.ended(results=[result(), result("/var/spool/job-output/b")])
    await files.world.until(files.names)
    files.pod_ends([AWAY, COPIED])
    await files.world.until(lambda: collected(files)[1] == "CopyFailed")
    assert "the server does not answer" in collected(files)[2]
    outcome = await files.world.step()
    assert outcome.requeue_after is not None
    assert outcome.requeue_after <= 30
    assert files.names() == ["hello-results"]
    for attempt in (2, 3, 4):
        files.world.ahead += timedelta(minutes=11)
        name = f"hello-results-{attempt}"
        await files.world.until(lambda name=name: name in files.names())  # type: ignore[misc]
        assert [one.name for one in files.copies(name)] == ["results[0]"]
        files.pod_ends("OOMKilled", name)
        attempts = attempt
        await files.world.until(lambda attempts=attempts: files.files()["results"]["attempts"] == attempts)  # type: ignore[misc]
    assert files.files()["results"]["isComplete"]
    assert collected(files)[:2] == ("False", "CopyFailed")
    assert "4 attempts failed" in collected(files)[2]


async def test_what_is_out_of_reach_is_said(files: FileWorld) -> None:
    await files.ended(results=[result("/home/alice/run")])
    await files.world.until(lambda: collected(files)[0] == "False")
    assert "/home/alice/run is not below" in collected(files)[2]
    assert "spec.sharedVolume" in collected(files)[2]
    assert files.names() == []


async def test_an_array_needs_a_shared_volume(files: FileWorld) -> None:
    files.world.job(array="0-1", results=[result()])
    await files.world.submitted()
    for job in files.world.in_slurm():
        files.world.slurm.world.exit_job(job.id)
    await files.world.until(lambda: files.world.condition("Finished")[0] == "True")
    await files.world.until(lambda: collected(files)[0] == "False")
    assert "several tasks" in collected(files)[2]


async def test_a_node_that_comes_back_is_waited_for(files: FileWorld) -> None:
    files.world.job(results=[result()])
    number = await files.world.submitted()
    await files.world.until(lambda: files.world.status().get("state") == "Running")
    node = files.files()["node"]
    await files.kube.delete(PODS, node, "ns")
    files.world.slurm.world.exit_job(number)
    await files.world.until(lambda: collected(files)[1] == "FilesOutOfReach")
    assert files.names() == []
    files.kube.put(PODS, node_pod(node, "10.0.0.77"))
    await files.world.until(files.names)
    assert "10.0.0.77" in files.copies()[0].source.url


async def test_a_node_that_stays_away_is_given_up(files: FileWorld) -> None:
    files.world.job(results=[result()])
    number = await files.world.submitted()
    await files.world.until(lambda: files.world.status().get("state") == "Running")
    await files.kube.delete(PODS, files.files()["node"], "ns")
    files.world.slurm.world.exit_job(number)
    await files.world.until(lambda: collected(files)[1] == "FilesOutOfReach")
    files.world.ahead += timedelta(minutes=16)
    await files.world.until(lambda: files.files()["results"]["isComplete"])
    assert collected(files)[:2] == ("False", "CopyFailed")


async def test_nothing_is_waited_for_longer_than_a_day(files: FileWorld) -> None:
    await files.ended(results=[result()], ttlSecondsAfterFinished=1)
    await files.world.until(files.names)
    files.world.ahead += timedelta(hours=23)
    await files.world.step()
    assert files.world.exists()
    files.world.ahead += timedelta(hours=2)
    await files.world.until(lambda: not files.world.exists())


async def test_a_pod_that_waits_long_has_newer_tokens(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    files.pod_says(phase="Pending")
    before = files.permit(files.copies()[0].source).expires
    uid = files.get(PODS, "hello-results")["metadata"]["uid"]
    files.world.ahead += timedelta(hours=13)
    await files.world.step()
    assert files.permit(files.copies()[0].source).expires > before
    assert files.get(PODS, "hello-results")["metadata"]["uid"] == uid


async def test_the_object_stays_until_its_results_are_collected(files: FileWorld) -> None:
    await files.ended(results=[result()], ttlSecondsAfterFinished=0)
    await files.world.until(files.names)
    for _ in range(3):
        await files.world.step()
    assert labels.FINALIZER_SLURMJOB in files.kube.objects["slurmjobs", "team", "hello"]["metadata"]["finalizers"]
    files.pod_ends([COPIED])
    await files.world.until(lambda: not files.world.exists())


async def test_a_deletion_waits_for_the_results_for_some_minutes(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    files.world.delete()
    for _ in range(3):
        await files.world.step()
    assert files.world.exists()
    files.world.ahead += timedelta(minutes=11)
    await files.world.until(lambda: not files.world.exists())


@pytest.mark.parametrize("before", ["pod", "report"])
async def test_an_operator_that_ends_goes_on_where_it_was(files: FileWorld, before: str) -> None:
    class Ended(BaseException):
        pass

    def end(status: Object) -> None:
        said = any(one["type"] == "ResultsCollected" for one in status.get("conditions") or ())
        if said and (before == "pod" or status["files"]["results"].get("copies")):
            files.kube.before_status = None
            raise Ended

    files.world.job(results=[result()])
    number = await files.world.submitted()
    await files.world.until(lambda: files.world.status().get("state") == "Running")
    files.kube.before_status = end
    files.world.slurm.world.exit_job(number)
    if before == "report":
        await files.world.until(files.names)
        files.pod_ends([COPIED])
    with pytest.raises(Ended):
        await files.world.until(lambda: False)
    await files.world.kill()
    await files.world.until(files.names)
    files.pod_ends([COPIED])
    await files.world.until(lambda: collected(files)[0] == "True")
    assert files.names() == ["hello-results"]


async def test_what_slurm_forgets_at_once_is_collected_all_the_same(files: FileWorld) -> None:
    files.world.cluster(accounting={})
    files.world.job(results=[result()])
    number = await files.world.submitted()
    await files.world.until(lambda: files.world.status().get("state") == "Running" and files.files()["node"])
    await files.world.clients.close_all()
    files.world.slurm.world.exit_job(number)
    files.world.slurm.world.clock.advance(1000)
    await files.world.start()
    await files.world.until(files.names)
    assert files.permit(files.copies()[0].source).uid == UID


async def test_the_last_submission_counts(files: FileWorld) -> None:
    files.world.job(backoffLimit=1, results=[result(f"{SERVED}/%j")])
    first = await files.world.submitted()
    await files.world.until(lambda: files.world.status().get("state") == "Running")
    files.world.slurm.world.exit_job(first, 1)
    await files.world.until(lambda: files.world.status().get("jobId") not in {None, first})
    second = files.world.status()["jobId"]
    assert files.names() == []
    await files.world.until(lambda: files.world.status().get("state") == "Running")
    files.world.slurm.world.exit_job(second, 1)
    await files.world.until(files.names)
    assert files.permit(files.copies()[0].source).path == f"{SERVED}/{second}"


async def test_a_pod_that_is_refused_is_told_and_tried_again(files: FileWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    create = files.kube.create

    async def refuse(resource: Resource, body: Object, namespace: str | None = None) -> Object:
        if resource is PODS:
            raise Forbidden(Target("create", "pods", "team", "hello-results"), "exceeded quota: team", status=403)
        return await create(resource, body, namespace)

    monkeypatch.setattr(files.kube, "create", refuse)
    await files.ended(results=[result()])
    await files.world.until(lambda: collected(files)[1] == "CopyPodRefused")
    assert "exceeded quota" in collected(files)[2]
    outcome = await files.world.step()
    assert outcome.requeue_after == 60
    monkeypatch.undo()
    await files.world.until(files.names)


async def test_a_pod_of_somebody_else_is_left_alone(files: FileWorld) -> None:
    files.kube.put(PODS, {"metadata": {"name": "hello-results", "namespace": "team"}})
    await files.ended(results=[result()])
    await files.world.until(lambda: collected(files)[1] == "CopyPodRefused")
    assert "does not belong to this SlurmJob" in collected(files)[2]
    assert files.find(SECRETS, "hello-results") is None


async def test_what_a_pod_says_is_bounded_and_on_one_line(files: FileWorld) -> None:
    await files.ended(results=[result()])
    await files.world.until(files.names)
    files.pod_ends([Report("no\n" + "x" * 5000, is_final=True)])
    await files.world.until(lambda: files.files()["results"]["isComplete"])
    assert len(collected(files)[2]) < 400
    assert "\n" not in collected(files)[2]
