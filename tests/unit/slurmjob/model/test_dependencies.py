"""A SlurmJob that waits for one which may be submitted again, or never will be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.slurmjob.model import dependencies
from tests.support.slurm_jobs import until
from tests.unit.slurmjob.worlds import JobWorld, job_world


@pytest.fixture
async def world() -> AsyncIterator[JobWorld]:
    async with job_world() as one:
        yield one


def waits(world: JobWorld) -> bool:
    return world.condition("Submitted", "second")[1] == "DependencyNotFinished"


def second(world: JobWorld) -> Any:
    return next(job for job in world.in_slurm() if job.name == "second")


async def running(world: JobWorld, *, besides: int | None = None) -> int:
    await world.until(lambda: world.status().get("state") == "Running" and world.status().get("jobId") != besides)
    number: int = world.status()["jobId"]
    return number


async def test_the_submission_that_counts_is_named(world: JobWorld) -> None:
    world.job(backoffLimit=1)
    world.job("second", dependsOn=[{"name": "hello"}])
    first = await running(world)
    await world.until(lambda: waits(world))
    words = f"its job {first} is submission 1 of 2, and another one follows if it fails"
    assert world.condition("Submitted", "second") == (
        "False",
        "DependencyNotFinished",
        f"waits for the end of SlurmJob hello: {words}",
    )
    assert next(event for event in world.events.told if event[1] == "DependencyNotFinished")[0] == "Normal"
    world.slurm.world.exit_job(first, 3)
    last = await running(world, besides=first)
    await world.submitted("second")
    assert second(world).dependency.startswith(f"afterok:{last}")
    world.slurm.world.exit_job(last)
    await world.until(lambda: world.status("second").get("state") == "Running")


@pytest.mark.parametrize("named", ["hello", "second"])
async def test_the_namespace_of_a_cluster_need_not_be_named_by_both(world: JobWorld, named: str) -> None:
    about = {"name": "slurm", "namespace": "team", "uid": "cluster-2", "generation": 1}
    world.kube.put(CLUSTERS, {"metadata": about, "spec": {"jobs": {"tenants": world.tenants}}})
    others = {"second": [{"name": "hello"}]}
    for name in ("hello", "second"):
        world.job(name, clusterNamespace="team" if name == named else None, dependsOn=others.get(name))
    await world.until(lambda: world.condition("Submitted", "second")[0] == "False")
    assert world.condition("Submitted", "second")[2] == "waits for the submission of SlurmJob hello"


async def test_success_of_the_first_one_is_enough(world: JobWorld) -> None:
    world.job(backoffLimit=3)
    world.job("second", dependsOn=[{"name": "hello"}])
    first = await running(world)
    await world.until(lambda: waits(world))
    world.slurm.world.exit_job(first)
    await world.submitted("second")
    assert not second(world).dependency


@pytest.mark.parametrize(("kind", "is_met"), [("afternotok", True), ("afterany", True), ("afterok", False)])
async def test_only_the_failure_of_the_last_one_counts(world: JobWorld, kind: str, *, is_met: bool) -> None:
    world.job(backoffLimit=1)
    world.job("second", dependsOn=[{"name": "hello", "type": kind}])
    first = await running(world)
    await world.until(lambda: waits(world))
    world.slurm.world.exit_job(first, 3)
    last = await running(world, besides=first)
    world.slurm.world.exit_job(last, 3)
    await world.until(lambda: world.condition("Finished")[0] == "True" and world.status("second").get("jobId"))
    wanted = "Running" if is_met else "Pending"
    await world.until(lambda: world.status("second").get("state") == wanted)


async def test_the_start_of_the_first_one_is_a_start(world: JobWorld) -> None:
    world.job(backoffLimit=1)
    world.job("second", dependsOn=[{"name": "hello", "type": "after"}])
    await world.until(lambda: world.status("second").get("state") == "Running")
    assert len(world.in_slurm()) == 2


async def test_it_is_woken_by_the_end_and_by_a_smaller_limit(world: JobWorld) -> None:
    world.job(backoffLimit=2)
    world.job("second", dependsOn=[{"name": "hello"}])
    async with world.working():
        await until(lambda: waits(world))
        world.job(backoffLimit=0)
        await until(lambda: world.status("second").get("jobId"))
        assert second(world).dependency.startswith(f"afterok:{world.status()['jobId']}")
        world.job("third", backoffLimit=1)
        world.job("fourth", dependsOn=[{"name": "third"}])
        await until(lambda: world.condition("Submitted", "fourth")[1] == "DependencyNotFinished")
        world.slurm.world.exit_job(world.status("third")["jobId"])
        await until(lambda: world.status("fourth").get("jobId"))


@pytest.mark.parametrize(
    ("kind", "is_met"), [("afternotok", True), ("afterany", True), ("after", True), ("afterok", False)]
)
async def test_what_is_cancelled_before_it_is_submitted(world: JobWorld, kind: str, *, is_met: bool) -> None:
    world.job(suspend=True)
    world.job("second", dependsOn=[{"name": "hello", "type": kind}])
    async with world.working():
        await until(lambda: world.condition("Submitted", "second")[1] == "DependencyNotSubmitted")
        world.annotate(cancel="true")
        if is_met:
            await until(lambda: world.status("second").get("jobId"))
            assert not second(world).dependency
            return
        await until(lambda: world.condition("Submitted", "second")[1] == "DependencyNeverSatisfied")
    message = (
        "spec.dependsOn: afterok can never be satisfied: SlurmJob hello was cancelled before it was submitted; delete "
        "this SlurmJob"
    )
    assert ("Warning", "DependencyNeverSatisfied", message) in world.events.told
    assert world.condition("Submitted", "second")[2] == message


async def test_a_dry_run_is_never_submitted(world: JobWorld) -> None:
    world.job(dryRun=True)
    world.job("second", dependsOn=[{"name": "hello", "type": "afterany"}])
    await world.until(lambda: world.condition("Submitted", "second")[1] == "DependencyNeverSatisfied")
    assert "SlurmJob hello is a dry run" in world.condition("Submitted", "second")[2]
    assert world.in_slurm() == []


@pytest.mark.parametrize(("kind", "is_met"), [("afterany", True), ("afternotok", False), ("afterok", False)])
def test_what_was_cancelled_and_may_have_run(kind: str, *, is_met: bool) -> None:
    over = {"type": "Finished", "status": "True"}
    other = {"metadata": {"name": "a"}, "spec": {}, "status": {"state": "Unknown", "conditions": [over]}}
    obj = {"metadata": {"name": "b"}, "spec": {"dependsOn": [{"name": "a", "type": kind}]}}
    found = dependencies.resolve(obj, lambda _: other)
    if is_met:
        assert found == dependencies.Ready("")
    else:
        assert isinstance(found, dependencies.Wait)
        assert "it is not known whether it ran" in found.message


async def test_what_was_cancelled_is_in_no_loop(world: JobWorld) -> None:
    world.job("a", dependsOn=[{"name": "b"}])
    world.job("b", dependsOn=[{"name": "a"}])
    await world.until(lambda: world.condition("Submitted", "a")[1] == "DependencyLoop")
    world.annotate("b", cancel="true")
    await world.until(lambda: world.condition("Submitted", "a")[1] == "DependencyNeverSatisfied")
