"""The life of an object of an old kind: it becomes a SlurmJob, shows its job in the old words, and takes it along."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.sylabs.kinds import KINDS, LONGEST_NAME, OldKind
from slurm_client.models.job import FINISHED
from tests.support.memory_kube import name_of
from tests.unit.sylabs.worlds import IMAGE, WLM, OldWorld, old_world

KIND = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


@pytest.fixture
async def world() -> AsyncIterator[OldWorld]:
    async with old_world() as one:
        yield one


@KIND
async def test_it_runs_to_its_end_and_says_so_in_the_old_words(world: OldWorld, kind: OldKind) -> None:
    world.old(kind)
    number = await world.runs(kind)
    await world.until(lambda: world.shown(kind)["status"] == "Running")
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.shown(kind)["status"] == "Succeeded")
    words = "the script ended with exit code 0"
    expected = {"jobId": number, "reason": "Completed", "message": words, "observedGeneration": 1}
    assert world.shown(kind) == {"status": "Succeeded", **expected}
    assert [job.user for job in world.in_slurm()] == ["alice"]
    assert "SlurmJobCreated" in world.events.reasons()


@KIND
async def test_a_failed_job_has_failed(world: OldWorld, kind: OldKind) -> None:
    world.old(kind)
    number = await world.runs(kind)
    await world.until(lambda: world.shown(kind)["status"] == "Running")
    world.slurm.world.exit_job(number, 3)
    await world.until(lambda: world.shown(kind)["status"] == "Failed")
    assert (world.shown(kind)["reason"], world.shown(kind)["jobId"]) == ("NonZeroExitCode", number)


@KIND
async def test_its_slurmjob_belongs_to_it(world: OldWorld, kind: OldKind) -> None:
    world.old(kind)
    await world.look(kind)
    child = world.child(kind)
    assert child is not None
    (owner,) = child["metadata"]["ownerReferences"]
    assert owner["controller"] is True
    assert (owner["apiVersion"], owner["kind"], owner["name"], owner["uid"]) == (
        kind.resource.api_version,
        kind.resource.kind,
        "hello",
        f"old-{kind.name}-hello",
    )
    assert child["metadata"]["annotations"] == {labels.ANNOTATION_SOURCE_GENERATION: "1"}
    assert (child["spec"]["clusterName"], child["spec"]["clusterNamespace"]) == ("slurm", "ns")
    assert world.shown(kind)["status"] == "Pending"


async def test_objects_of_one_name_have_a_job_each(world: OldWorld) -> None:
    world.job()
    for kind in KINDS:
        world.old(kind)
    for kind in KINDS:
        await world.runs(kind)
    await world.submitted()
    assert len({world.shown(kind)["jobId"] for kind in KINDS} | {world.status()["jobId"]}) == 4


def test_names_have_a_bound_and_stay_different() -> None:
    names = {kind.child("a" * 252 + last) for kind in KINDS for last in "ab"}
    assert len(names) == 6
    assert {len(name) <= LONGEST_NAME for name in names} == {True}
    assert WLM.child("hello") == "wlm-slurmjob-hello"


@KIND
async def test_deleted_it_takes_its_job_along(world: OldWorld, kind: OldKind) -> None:
    world.old(kind)
    number = await world.runs(kind)
    world.drop(kind)
    assert world.child(kind) is not None
    await world.until(lambda: world.child(kind) is None)
    (job,) = world.in_slurm()
    assert (job.id, job.state.base) == (number, "CANCELLED")


async def test_the_next_of_its_name_waits_until_the_job_of_the_last_has_ended(world: OldWorld) -> None:
    world.old(WLM)
    first = await world.runs(WLM)
    await world.until(lambda: world.shown(WLM)["status"] == "Running")
    world.drop(WLM)
    world.old(WLM, uid="another")
    await world.look(WLM)
    assert world.shown(WLM)["status"] == "Pending"
    assert world.shown(WLM)["reason"] == "PredecessorEnding"
    second = await world.runs(WLM)
    assert second != first
    assert [job.state.base in FINISHED for job in world.in_slurm()] == [True, False]


async def test_no_job_comes_twice_after_its_slurmjob_was_deleted(world: OldWorld) -> None:
    world.old(WLM)
    number = await world.runs(WLM)
    await world.until(lambda: world.shown(WLM)["status"] == "Running")
    world.delete(WLM.child("hello"))
    await world.until(lambda: world.shown(WLM)["status"] == "Failed")
    await world.until(lambda: world.child(WLM) is None)
    for _ in range(3):
        await world.look(WLM)
    assert world.shown(WLM)["jobId"] == number
    assert world.shown(WLM)["reason"] == "SlurmJobDeleted"
    assert len(world.in_slurm()) == 1


async def test_what_has_ended_stays_as_it_ended_without_its_slurmjob(world: OldWorld) -> None:
    world.old(WLM)
    number = await world.runs(WLM)
    await world.until(lambda: world.shown(WLM)["status"] == "Running")
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: not (world.child(WLM) or {"metadata": {}})["metadata"].get("finalizers"))
    await world.until(lambda: world.shown(WLM)["status"] == "Succeeded")
    before = world.shown(WLM)
    world.delete(WLM.child("hello"))
    await world.look(WLM)
    assert world.shown(WLM) == before
    assert world.child(WLM) is None


async def test_a_slurmjob_that_slurm_never_had_is_made_again(world: OldWorld) -> None:
    world.old(WLM)
    await world.look(WLM)
    world.delete(WLM.child("hello"))
    assert world.child(WLM) is None
    await world.runs(WLM)
    assert len(world.in_slurm()) == 1


async def test_a_slurmjob_that_the_cache_does_not_show_yet_is_not_made_twice(world: OldWorld) -> None:
    world.old(WLM)
    await world.look(WLM)
    child = world.child(WLM)
    assert child is not None
    _ = world.jobs.remove(child)
    await world.look(WLM)
    assert world.child(WLM) == child
    world.kube.put(SLURMJOBS, child)
    await world.runs(WLM)
    assert len(world.in_slurm()) == 1


async def test_nothing_is_made_for_an_object_that_is_gone(world: OldWorld) -> None:
    world.old(WLM)
    del world.kube.objects[str(WLM.resource), "team", "hello"]
    await world.look(WLM)
    assert world.child(WLM) is None


async def test_nothing_is_made_by_a_cache_that_is_behind(world: OldWorld) -> None:
    world.old(WLM)
    known = world.kube.find(WLM.resource, "hello", "team")
    assert known is not None
    status = {"status": "Succeeded", "jobId": 7, "observedGeneration": 1}
    newer = {**known, "metadata": {**known["metadata"], "resourceVersion": "1000"}, "status": status}
    world.kube.objects[str(WLM.resource), "team", "hello"] = newer
    assert (await world.look(WLM)).requeue_after is not None
    assert world.child(WLM) is None
    assert world.shown(WLM) == status


async def test_another_operator_goes_on_where_one_was_killed(world: OldWorld) -> None:
    world.old(IMAGE)
    number = await world.runs(IMAGE)
    await world.kill()
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.shown(IMAGE)["status"] == "Succeeded")
    assert len(world.in_slurm()) == 1


async def test_a_later_change_of_the_spec_has_no_effect_and_that_is_said(world: OldWorld) -> None:
    world.old(WLM)
    await world.runs(WLM)
    world.old(WLM, batch="#!/bin/sh\nfalse\n")
    await world.look(WLM)
    assert "the spec has changed since the job was made" in world.shown(WLM)["message"]
    assert world.shown(WLM)["observedGeneration"] == 1
    assert len(world.in_slurm()) == 1


@pytest.mark.parametrize("kind", [one for one in KINDS if one is not IMAGE], ids=lambda kind: kind.name)
async def test_a_long_script_is_not_kept_and_read_when_its_job_is_made(world: OldWorld, kind: OldKind) -> None:
    script = "#!/bin/sh\n#" + "x" * 5_000 + "\ntrue\n"
    world.old(kind, batch=script)
    (cached,) = world.stores[kind.name]
    assert len(cached["spec"]["batch"]) < 200
    await world.look(kind)
    child = world.child(kind)
    assert child is not None
    assert child["spec"]["script"] == script
    await world.runs(kind)


async def test_a_long_script_that_changes_meanwhile_makes_no_job_of_another_spec(world: OldWorld) -> None:
    world.old(WLM, batch="#!/bin/sh\n#" + "x" * 5_000)
    found = world.kube.find(WLM.resource, "hello", "team")
    assert found is not None
    about = {**found["metadata"], "generation": 2}
    world.kube.objects[name_of(WLM.resource), "team", "hello"] = {**found, "metadata": about}
    with pytest.raises(errors.Conflict):
        await world.controllers[WLM.name].run_pass(("team", "hello"), next(iter(world.stores[WLM.name])))
    assert world.child(WLM) is None


async def test_labels_without_effect_are_told(world: OldWorld) -> None:
    world.old(WLM, nodeSelector={"type": "virtual-kubelet"})
    await world.runs(WLM)
    told = [words for kind, reason, words in world.events.told if (kind, reason) == ("Warning", "SlurmJobCreated")]
    assert "spec.nodeSelector[type]" in told[0]


async def test_files_become_those_of_the_slurmjob(world: OldWorld) -> None:
    mount = {"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}
    world.sylabs(sharedVolume={"claimName": "data", "mountPath": "/data"})
    world.old(WLM, prepare={"mount": mount, "to": "/data/in"}, results={"mount": mount, "from": "/data/out"})
    await world.look(WLM)
    child = world.child(WLM)
    assert child is not None
    volume = {"persistentVolumeClaim": {"claimName": "kept"}}
    bounds = {"maxSize": "1Gi", "maxFiles": 10_000}
    assert child["spec"]["sharedVolume"] == {"claimName": "data", "mountPath": "/data"}
    assert child["spec"]["prepare"] == [{"volume": volume, "path": "/data/in/data", **bounds}]
    results = {"volume": volume, "path": "/data/out", "to": "hello", "when": "OnSuccess", **bounds}
    assert child["spec"]["results"] == [results]


DATA = {"claimName": "data", "mountPath": "/data"}


@pytest.mark.parametrize(
    ("sylabs", "logs"),
    [({}, None), ({"logs": True}, {}), ({"logs": True, "sharedVolume": DATA}, {"volume": DATA})],
)
async def test_output_is_shown_where_the_administrator_wants_it(
    world: OldWorld, sylabs: dict[str, Any], logs: dict[str, Any] | None
) -> None:
    world.sylabs(**sylabs)
    world.old(WLM)
    await world.look(WLM)
    child = world.child(WLM)
    assert child is not None
    assert child["spec"].get("logs") == logs
