"""An outage never cancels a job, and no job is begun twice: however a pod is deleted, wherever the operator ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.cache.stubs import stub
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS
from slinky_operator.virtual_nodes.pods import slurmjobs
from slinky_operator.virtual_nodes.pods.pod_owners import INDEX
from tests.support.slurm_jobs import Killed
from tests.unit.virtual_nodes.pods.worlds import JOB, NODE, PodWorld, pod_world

pytestmark = pytest.mark.thorough

OUTAGES = ("DeletionByTaintManager", "DeletionByPodGC")
BY_OUTAGE = pytest.mark.parametrize("reason", OUTAGES)


@pytest.fixture
async def world() -> AsyncIterator[PodWorld]:
    async with pod_world() as one:
        yield one


def states(world: PodWorld) -> list[str]:
    return [job.state.base for job in world.in_slurm()]


@BY_OUTAGE
async def test_the_job_of_a_pod_that_an_outage_took_runs_on(world: PodWorld, reason: str) -> None:
    world.pod()
    await world.runs()
    is_collected = reason == "DeletionByPodGC"
    world.drop(disruption=reason, force=is_collected, phase="Failed" if is_collected else "")
    await world.until(lambda: world.find() is None)
    (job,) = world.slurmjobs()
    assert "ownerReferences" not in job["metadata"]
    assert labels.ANNOTATION_VIRTUAL_POD_LEFT in job["metadata"]["annotations"]
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    assert "JobKept" in world.events.reasons()
    for _ in range(3):
        await world.passes()
    assert states(world) == ["RUNNING"]


@pytest.mark.parametrize(
    ("owners", "state", "words"),
    [
        (
            [JOB],
            "Running",
            "its Slurm job keeps running as SlurmJob j, which the next pod of its controller takes over",
        ),
        ([], "Running", "since no controller makes another pod. To cancel it: kubectl delete slurmjob j -n team"),
        ([JOB], "Succeeded", "its Slurm job has ended, and SlurmJob j keeps its result, which the next pod"),
    ],
)
def test_the_event_says_who_has_the_job_now(owners: list[Object], state: str, words: str) -> None:
    finished = {"type": "Finished", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    job = {
        "metadata": {"name": "j", "namespace": "team"},
        "status": {"state": state, "conditions": [finished] if state == "Succeeded" else []},
    }
    pod = {"metadata": {"name": "p", "ownerReferences": owners}}
    said = slurmjobs.kept(pod, job, "since its Node was gone")
    assert said.startswith("pod p was deleted since its Node was gone; ")
    assert words in said
    assert ("kubectl delete" in said) == (state == "Running")


@BY_OUTAGE
async def test_the_next_pod_of_its_job_takes_it_over(world: PodWorld, reason: str) -> None:
    world.pod(owner=JOB)
    number = await world.runs()
    world.drop(disruption=reason)
    world.pod("q", owner=JOB)
    assert await world.runs("q") == number
    await world.until(lambda: world.find() is None)
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.phase("q") == "Succeeded")
    assert len(world.in_slurm()) == 1
    assert "JobTakenOver" in world.events.reasons()


OTHER_NODE = "slurm-minikube-other"
ALIKE, BY_NAME = JOB, {**JOB, "apiVersion": "apps/v1", "kind": "StatefulSet"}


@pytest.mark.parametrize(("owner", "takes_over"), [(ALIKE, True), (BY_NAME, False)])
async def test_the_scheduler_may_choose_another_node_for_the_next_pod_of_a_job(
    world: PodWorld, owner: Object, *, takes_over: bool
) -> None:
    """When the operator is back, all Nodes are ready at the same moment; the pod fits several."""
    world.slurm.world.add_partition("other")
    world.node(OTHER_NODE, "other")
    world.pod(owner=owner)
    number = await world.runs()
    world.drop(disruption=OUTAGES[0])
    await world.until(lambda: world.find() is None)
    (job,) = world.slurmjobs()
    # It is found also where there is no room for all of it: otherwise the same work would run twice.
    assert slurmjobs.by_place(stub(job)) == slurmjobs.by_place(job) != []
    world.pod(uid="next", owner=owner, nodeName=OTHER_NODE)
    assert (await world.runs() == number) == takes_over
    assert len(world.in_slurm()) == (1 if takes_over else 2)


async def test_a_pod_takes_over_the_job_of_its_own_partition_first(world: PodWorld) -> None:
    world.slurm.world.add_partition("other")
    world.node(OTHER_NODE, "other")
    for name, node in (("p0", NODE), ("p1", OTHER_NODE)):
        world.pod(name, owner=JOB, nodeName=node)
    numbers = [await world.runs(name) for name in ("p0", "p1")]
    for name in ("p0", "p1"):
        world.drop(name, disruption=OUTAGES[0])
        await world.until(lambda name=name: world.find(name) is None)  # type: ignore[misc]
    world.pod("q", owner=JOB, nodeName=OTHER_NODE)
    assert await world.runs("q") == numbers[1]


async def test_each_index_of_an_indexed_job_takes_over_its_own(world: PodWorld) -> None:
    for index in "01":
        world.pod(f"p{index}", owner=JOB, annotations={INDEX: index})
    numbers = [await world.runs(f"p{index}") for index in "01"]
    for index in "01":
        world.drop(f"p{index}", disruption=OUTAGES[0])
    for index in "10":
        world.pod(f"q{index}", owner=JOB, annotations={INDEX: index})
    assert [await world.runs(f"q{index}") for index in "01"] == numbers


async def test_a_pod_of_another_job_takes_over_nothing(world: PodWorld) -> None:
    world.pod(owner=JOB)
    number = await world.runs()
    world.drop(disruption=OUTAGES[0])
    world.pod("q", owner={**JOB, "uid": "job-2"})
    assert await world.runs("q") != number


async def test_pods_of_somebody_elses_kind_job_are_known_by_their_names(world: PodWorld) -> None:
    """Those of a training job differ: one serves parameters, others work."""
    owner = {**JOB, "apiVersion": "batch.volcano.sh/v1alpha1"}
    names = ("server-0", "worker-0")
    for name in names:
        world.pod(name, owner=owner)
    numbers = {name: await world.runs(name) for name in names}
    for name in names:
        world.drop(name, disruption=OUTAGES[0])
        await world.until(lambda name=name: world.find(name) is None)  # type: ignore[misc]
    for name in reversed(names):
        world.pod(name, uid=f"next-{name}", owner=owner)
        assert await world.runs(name) == numbers[name]


async def test_a_job_that_ended_meanwhile_is_the_end_of_the_next_pod(world: PodWorld) -> None:
    world.pod(owner=JOB)
    number = await world.runs()
    world.drop(disruption=OUTAGES[0])
    await world.until(lambda: world.find() is None)
    world.slurm.world.exit_job(number, 0)
    world.pod("q", owner=JOB)
    await world.until(lambda: world.phase("q") == "Succeeded")
    assert len(world.in_slurm()) == 1


@BY_OUTAGE
async def test_a_job_whose_end_the_pod_has_not_shown_is_the_end_of_the_next_pod(world: PodWorld, reason: str) -> None:
    """The operator was away: SlurmJobs show the end before their pods do."""
    world.pod(owner=JOB)
    number = await world.runs()
    is_collected = reason == "DeletionByPodGC"
    world.drop(disruption=reason, force=is_collected, phase="Failed" if is_collected else "")
    world.slurm.world.exit_job(number, 0)
    (job,) = world.slurmjobs()
    while (world.slurmjobs()[0].get("status") or {}).get("state") != "Succeeded":
        await world.step(job["metadata"]["name"], "team")
        await asyncio.sleep(0.005)
    # Its controller has counted the pod as failed.
    world.pod("q", owner=JOB)
    await world.until(lambda: world.phase("q") == "Succeeded" and world.find() is None)
    assert len(world.in_slurm()) == 1


@pytest.mark.parametrize("ends", [True, False])
async def test_a_pod_that_is_failed_and_not_yet_deleted_leaves_its_job(world: PodWorld, *, ends: bool) -> None:
    """Pod garbage collection first fails a pod, and then deletes it: the operator may look in between."""
    world.pod(owner=JOB)
    number = await world.runs()
    world.disrupt(disruption=OUTAGES[1], phase="Failed")
    if ends:
        world.slurm.world.exit_job(number, 0)
        await world.until(lambda: world.slurmjobs()[0]["status"]["state"] == "Succeeded")
    await world.until(lambda: not (world.find() or {})["metadata"].get("finalizers"))
    world.pod("q", owner=JOB)
    await world.until(lambda: world.phase("q") == ("Succeeded" if ends else "Running"))
    world.drop(force=True)
    await world.until(lambda: world.find() is None)
    for _ in range(3):
        await world.passes()
    assert states(world) == ["COMPLETED" if ends else "RUNNING"]


async def test_a_failed_pod_keeps_its_slurmjob_that_the_cache_does_not_show(
    world: PodWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pod(owner=JOB)
    await world.runs()
    world.disrupt(disruption=OUTAGES[1], phase="Failed")
    with monkeypatch.context() as patched:
        patched.setattr(world.jobs, "find", lambda *_: [])
        patched.setattr(world.jobs, "get", lambda *_: None)
        await world.look()
    (job,) = world.slurmjobs()
    assert labels.ANNOTATION_VIRTUAL_POD_LEFT in job["metadata"]["annotations"]
    assert "ownerReferences" not in job["metadata"]


async def test_an_end_that_the_pod_has_shown_counts_once(world: PodWorld) -> None:
    world.pod(owner=JOB)
    world.slurm.world.exit_job(await world.runs(), 0)
    await world.until(lambda: world.phase() == "Succeeded")
    world.drop(disruption=OUTAGES[0])
    await world.until(lambda: world.find() is None)
    world.pod("q", owner=JOB)
    await world.runs("q")
    assert len(world.in_slurm()) == 2


async def test_deleting_the_pod_that_took_it_over_cancels_it(world: PodWorld) -> None:
    world.pod(owner=JOB)
    await world.runs()
    world.drop(disruption=OUTAGES[0])
    world.pod("q", owner=JOB)
    await world.runs("q")
    world.drop("q")
    await world.until(lambda: world.find("q") is None)
    assert states(world) == ["CANCELLED"]


async def test_two_pods_do_not_take_over_one_job(world: PodWorld) -> None:
    world.pod(owner=JOB)
    number = await world.runs()
    world.drop(disruption=OUTAGES[0])
    for name in "qr":
        world.pod(name, owner=JOB)
    numbers = {await world.runs(name) for name in "qr"}
    assert number in numbers
    assert len(numbers) == 2


@pytest.mark.parametrize(("allocatable", "expected"), [("Unlimited", "RUNNING"), ("Partition", "CANCELLED")])
async def test_preemption_is_a_decision_only_where_the_partition_is_offered(
    world: PodWorld, allocatable: str, expected: str
) -> None:
    world.virtual(allocatable=allocatable)
    world.pod()
    await world.runs()
    world.drop(disruption="PreemptionByScheduler")
    await world.until(lambda: world.find() is None)
    assert states(world) == [expected]


async def test_a_drain_is_a_decision(world: PodWorld) -> None:
    world.pod()
    await world.runs()
    world.drop(disruption="EvictionByEvictionAPI")
    await world.until(lambda: world.find() is None)
    assert states(world) == ["CANCELLED"]


async def run_to_its_end(world: PodWorld) -> None:
    world.pod(owner=JOB)
    number = await world.runs()
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.phase() == "Succeeded")
    await world.until(lambda: not (world.find() or {})["metadata"].get("finalizers"))
    assert states(world) == ["COMPLETED"]


async def cancel(world: PodWorld) -> None:
    world.pod(owner=JOB)
    await world.runs()
    world.drop()
    await world.until(lambda: world.find() is None and not world.slurmjobs())
    assert states(world) == ["CANCELLED"]


async def take_over(world: PodWorld) -> None:
    world.pod(owner=JOB)
    await world.runs()
    world.drop(disruption=OUTAGES[0])
    world.pod("q", owner=JOB)
    number = await world.runs("q")
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.phase("q") == "Succeeded" and world.find() is None)
    assert states(world) == ["COMPLETED"]


@pytest.mark.parametrize("story", [run_to_its_end, cancel, take_over])
@pytest.mark.parametrize("last_write", range(1, 12))
async def test_the_operator_may_end_after_each_write(world: PodWorld, story: Any, last_write: int) -> None:
    world.kube.last_write = last_write
    await story(world)


async def test_the_next_leader_begins_no_job_twice_while_its_cache_lags(
    world: PodWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pod(owner=JOB)
    number = await world.runs()
    (before,) = world.slurmjobs()
    world.drop(disruption=OUTAGES[0])
    await world.until(lambda: world.find() is None)
    (after,) = world.slurmjobs()
    # The next leader has seen the pod go, and nothing of what has become of the SlurmJob.
    world.jobs = world.new_cache_of_jobs()
    _ = world.jobs.put(before)
    with monkeypatch.context() as patched:
        patched.setattr(world.jobs, "put", lambda *_, **__: None)
        await world.kill()
        world.pod("q", owner=JOB)
        for _ in range(5):
            await world.look("q")
        assert len(world.slurmjobs()) == 1
        assert world.kube.writes.count("create slurmjobs pod-pod-q") == 0
    _ = world.jobs.put(after)
    assert await world.runs("q") == number


async def test_a_pod_does_not_go_before_the_cache_shows_that_its_slurmjob_is_left(
    world: PodWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pod(owner=JOB)
    number = await world.runs()
    world.drop(disruption=OUTAGES[0])
    world.pod("q", owner=JOB)
    with monkeypatch.context() as patched:
        patched.setattr(world.jobs, "put", lambda *_, **__: None)
        for _ in range(5):
            await world.look()
            await world.look("q")
    assert world.find() is not None
    assert len(world.slurmjobs()) == 1
    (left,) = world.slurmjobs()
    _ = world.jobs.put(left)
    assert await world.runs("q") == number


async def test_a_version_that_never_comes_is_not_waited_for_after_a_restore_of_etcd(world: PodWorld) -> None:
    seconds = 0.0
    world.pods_reconciler._clock = lambda: seconds
    # Written before the restore, after which versions are lower.
    world.pods_reconciler._newest["team"] = 10**9
    world.pod()
    for _ in range(5):
        await world.look()
    assert world.slurmjobs() == []
    seconds = 11.0
    await world.runs()
    assert len(world.slurmjobs()) == 1


async def test_a_slurmjob_that_the_cache_does_not_show_is_cancelled_with_its_pod(
    world: PodWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.pod()
    await world.runs()
    (job,) = world.slurmjobs()
    monkeypatch.setattr(world.jobs, "find", lambda *_: [])
    monkeypatch.setattr(world.jobs, "get", lambda *_: None)
    world.drop()
    await world.look()
    found = world.kube.find(SLURMJOBS, job["metadata"]["name"], "team")
    assert found is not None
    assert found["metadata"]["deletionTimestamp"]
    assert world.find() is not None


async def test_without_the_writes_of_a_kill_nothing_would_end(world: PodWorld) -> None:
    """The operator really ends: with this world's kills, a pass does not go on after a write."""
    world.kube.last_write = 1
    world.pod()
    with pytest.raises(Killed):
        await world.look()
    assert world.kube.writes == ["patch pods p"]
