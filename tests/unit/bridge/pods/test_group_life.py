"""Groups of pods that Slurm places: started together, ranked, submitted again; told pass by pass."""

from __future__ import annotations

from datetime import timedelta

import pytest

from slinky_api import labels
from slinky_operator.bridge.pods.model.steps import CHUNK, GAP_S, GATHERING_S, QUICK_S, REWRITE_S
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS, PODS, SLURMJOBS
from slurm_client.models.node import NodeState
from tests.support.slurm_jobs import Killed
from tests.unit.bridge.pods.worlds import World, ended, pins

EXTERNAL = NodeState("IDLE", frozenset({"EXTERNAL"}))


@pytest.fixture
def world() -> World:
    return World()


async def test_the_pods_of_an_indexed_job_are_placed_by_their_indexes_all_at_once(world: World) -> None:
    made = world.job(pods=3)
    await world.settle()
    job = world.slurmjob
    assert job["metadata"]["name"] == "bridge-job-j"
    assert (job["spec"]["tasks"], job["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_RANKS]) == (3, "0-2")
    assert not world.lifted()
    _ = world.runs(job)
    await world.settle()
    by_index = {
        one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: one for one in world.kube.pods()
    }
    assert [pins(by_index[index]) for index in "012"] == [["k2"], ["k2"], ["k1"]]
    for index in "012":
        assert by_index[index]["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLOT] == index
        world.ends(by_index[index])
    await world.settle()
    assert ended(world.slurmjob)["exitCode"] == 0
    assert made["metadata"]["uid"] == "job-j"


async def test_a_group_that_is_not_complete_is_told_and_nothing_is_submitted(world: World) -> None:
    made = world.job(pods=3, make=False)
    for index in (0, 2):
        world.pod_of(made, index)
    await world.settle()
    assert not any(world.condition(one["metadata"]["name"]) for one in world.kube.pods())
    await world.settle(GATHERING_S)
    (first, *_) = [one["metadata"]["name"] for one in world.kube.pods()]
    assert "2 of 3 pods" in world.condition(first)["message"]
    assert not world.slurmjobs()
    world.pod_of(made, 1)
    await world.settle()
    assert world.slurmjob["spec"]["tasks"] == 3


async def test_none_is_placed_while_one_of_a_group_is_missing_and_the_job_ends_after_a_while(world: World) -> None:
    world.job(pods=3)
    await world.settle()
    world.gone(world.kube.pods()[1])
    _ = world.runs(world.slurmjob)
    await world.settle()
    assert not world.lifted()
    await world.settle(GAP_S)
    assert not world.lifted()
    assert ended(world.slurmjob)["comment"] == "2 of 3 pods were there"


async def test_a_pod_that_comes_in_the_place_of_another_takes_its_task(world: World) -> None:
    made = world.job(pods=3)
    await world.settle()
    _ = world.runs(world.slurmjob)
    await world.settle()
    old = world.kube.pods()[1]["metadata"]["name"]
    heir = world.pod_of(made, 1, name="heir")["metadata"]["name"]
    await world.settle()
    assert f"pod {old}" in world.condition(heir)["message"]
    world.ends(old, 1)
    await world.settle()
    assert world.find(heir)["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLOT] == "1"
    assert not ended(world.slurmjob)


async def test_what_is_left_of_a_job_after_a_timeout_is_a_new_job(world: World) -> None:
    made = world.job(pods=3)
    await world.settle()
    _ = world.runs(world.slurmjob)
    await world.settle()
    pods = world.kube.pods()
    world.ends(pods[0])
    _ = world.kube.put(BATCH_JOBS, {**made, "status": {"completedIndexes": "0"}})
    world.tick(700)
    _ = world.slurm(world.slurmjob, "Failed", reason="Timeout")
    await world.settle()
    for pod in pods[1:]:
        assert world.find(pod["metadata"]["name"])["metadata"]["deletionTimestamp"]
        world.gone(pod)
    world.tick(1)
    for index in (1, 2):
        world.pod_of(made, index, name=f"again-{index}")
    await world.settle()
    first, second = world.slurmjobs()
    assert (first["metadata"]["name"], second["metadata"]["name"]) == ("bridge-job-j", "bridge-job-j-r1")
    assert (second["spec"]["tasks"], second["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_RANKS]) == (2, "1-2")
    _ = world.runs(second)
    await world.settle()
    assert [pins(world.find(f"again-{index}")) for index in (1, 2)] == [["k2"], ["k1"]]


async def test_the_pods_of_a_job_with_less_parallelism_are_groups_each(world: World) -> None:
    world.job(pods=2, completions=5)
    await world.settle()
    assert [one["metadata"]["ownerReferences"][0]["kind"] for one in world.slurmjobs()] == ["Pod", "Pod"]
    world.start()
    await world.settle()
    assert len(world.slurmjobs()) == 2


@pytest.mark.parametrize(("asked", "jobs"), [("Job", 1), ("Pod", 3)])
async def test_an_annotation_says_what_is_a_group(world: World, asked: str, jobs: int) -> None:
    template = {"annotations": {labels.LABEL_BRIDGE_GROUP: asked}}
    world.job(pods=3, completionMode="NonIndexed" if asked == "Job" else "Indexed", template=template)
    await world.settle()
    assert len(world.slurmjobs()) == jobs


@pytest.mark.parametrize(
    ("status", "spec", "code"),
    [
        ({"conditions": [{"type": "Complete", "status": "True"}]}, {}, 0),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, {}, 5),
        ({}, {"suspend": True}, 143),
    ],
    ids=["complete", "failed", "suspended"],
)
async def test_a_job_that_is_over_ends_its_job_in_slurm(world: World, status: Object, spec: Object, code: int) -> None:
    made = world.job(pods=2)
    await world.settle()
    _ = world.runs(world.slurmjob)
    await world.settle()
    first, second = world.kube.pods()
    if code == 143:
        world.gone(first)
        world.gone(second)
    else:
        world.ends(first)
        world.ends(second, code)
    _ = world.kube.put(BATCH_JOBS, {**made, "status": status, "spec": {**made["spec"], **spec}})
    await world.settle(6)
    assert ended(world.slurmjob)["exitCode"] == code


async def test_a_job_that_makes_no_more_pods_for_a_while_gives_its_nodes_back(world: World) -> None:
    world.job(pods=2)
    await world.settle()
    _ = world.runs(world.slurmjob)
    await world.settle()
    for pod in world.kube.pods():
        world.ends(pod, 2)
    await world.settle()
    assert not ended(world.slurmjob)
    await world.settle(GAP_S)
    assert ended(world.slurmjob)["exitCode"] == 2


@pytest.mark.parametrize("fails", [True, False])
async def test_a_job_is_asked_again_soon_whether_it_has_failed_with_its_pods(world: World, fails: bool) -> None:
    made = world.job(pods=2)
    await world.settle()
    _ = world.runs(world.slurmjob)
    await world.settle()
    for pod in world.kube.pods():
        world.ends(pod, 2)
    await world.settle()
    (key,) = set(world.every_key())
    pauses: list[float] = []
    while not ended(world.slurmjob):
        pauses.append((await world.look(key)).requeue_after or 0.0)
        world.tick(pauses[-1])
        world.kube.show_all()
        if fails:
            status = {"conditions": [{"type": "Failed", "status": "True"}]}
            _ = world.kube.put(BATCH_JOBS, {**made, "status": status})
    # The last one saw the end.
    assert pauses[:-1] == ([6] if fails else [6, 6, 12, 24, 48, 24])


async def test_a_suspended_job_that_waits_is_taken_out_of_the_queue(world: World) -> None:
    made = world.job(pods=2)
    await world.settle()
    _ = world.slurm(world.slurmjob, "Pending")
    for pod in world.kube.pods():
        world.gone(pod)
    _ = world.kube.put(BATCH_JOBS, {**made, "spec": {**made["spec"], "suspend": True}})
    await world.settle(6)
    assert world.slurmjob["metadata"]["deletionTimestamp"]


async def test_what_was_cancelled_while_it_waited_is_not_submitted_again_until_its_slurmjob_is_deleted(
    world: World,
) -> None:
    world.pod()
    await world.settle()
    _ = world.slurm(world.slurmjob, "Failed", reason="Cancelled", summary="the job was cancelled")
    await world.settle(3600)
    job = world.slurmjob["metadata"]["name"]
    assert f"kubectl delete slurmjob {job} -n team" in world.condition("p")["message"]
    world.kube.drop(SLURMJOBS, world.slurmjob)
    await world.settle()
    assert world.slurmjob["metadata"]["name"] == job
    assert "status" not in world.slurmjob


@pytest.mark.parametrize("pods", [1, 2])
async def test_it_stays_so_where_the_api_server_is_ahead_of_the_operator(world: World, pods: int) -> None:
    """Its pods seem to be younger than the end of the job."""
    world.kube.ahead = timedelta(hours=1)
    if pods == 1:
        world.pod()
    else:
        world.job(pods=pods)
    await world.settle()
    _ = world.slurm(world.slurmjob, "Failed", reason="Cancelled", summary="the job was cancelled")
    await world.settle(1800)
    assert len(world.slurmjobs()) == 1
    for one in world.kube.pods():
        assert world.condition(one["metadata"]["name"])["reason"] == "JobEnded"


async def test_a_large_group_is_placed_in_steps_and_its_first_pod_tells(world: World) -> None:
    world.job(pods=250)
    await world.settle()
    _ = world.slurm(world.slurmjob, "Pending", summary="the job waits: Priority")
    await world.settle(QUICK_S)
    told = [world.condition(one["metadata"]["name"])["message"] for one in world.kube.pods()]
    assert sum("Priority" in one for one in told) == 1
    writes = len(world.kube.writes)
    _ = world.slurm(world.slurmjob, "Pending", summary="the job waits: Resources")
    await world.settle(REWRITE_S)
    assert len(world.kube.writes) == writes + 1
    world.queue.clear()
    _ = world.runs(world.slurmjob)
    (key,) = set(world.queue)
    _ = await world.look(key)
    assert len(world.lifted()) == CHUNK
    await world.settle()
    assert len(world.lifted()) == 250


async def test_an_operator_that_ends_after_any_write_goes_on(world: World) -> None:
    for last in range(1, 14):
        world = World()
        world.job(pods=3)
        world.kube.last_write = last
        for step in ("make", "run", "end"):
            if step == "run" and world.slurmjobs():
                _ = world.runs(world.slurmjob)
            if step == "end":
                for pod in world.kube.pods():
                    world.ends(pod)
            for _ in range(3):
                is_killed = False
                try:
                    await world.settle()
                except* Killed:
                    is_killed = True
                if not is_killed:
                    break
                world.start()
        assert len(world.slurmjobs()) == 1
        assert len(world.lifted()) == 3
        assert ended(world.slurmjob)["exitCode"] == 0


async def test_a_group_whose_pods_all_come_again_keeps_its_job_while_they_come(world: World) -> None:
    made = world.job(pods=2)
    await world.settle()
    _ = world.runs(world.slurmjob)
    await world.settle()
    world.tick(1000)
    for pod in list(world.kube.pods()):
        world.gone(pod)
    _ = world.pod_of(made, 0)
    await world.settle()
    assert not ended(world.slurmjob)
    _ = world.pod_of(made, 1)
    await world.settle()
    assert len(world.lifted()) == 2
    for pod in list(world.kube.pods()):
        world.gone(pod)
    _ = world.pod_of(made, 0)
    await world.settle(GAP_S + 1)
    assert ended(world.slurmjob)["comment"].startswith("1 of 2 pods were there")


async def test_a_pod_that_is_not_seen_keeps_its_job_until_it_has_ended(world: World) -> None:
    """Its label was taken off, or there is no room for it."""
    world.pod()
    await world.settle()
    _ = world.runs(world.slurmjob, ("k1",))
    await world.settle()
    pod = world.find("p")
    hidden = {**pod["metadata"], "labels": {}}
    world.kube.put(PODS, {**pod, "metadata": hidden})
    await world.settle(GAP_S + 60)
    assert not ended(world.slurmjob)
    world.kube.put(PODS, {**world.find("p"), "metadata": hidden, "status": {"phase": "Succeeded"}})
    await world.settle(GAP_S + 60)
    assert ended(world.slurmjob)["exitCode"] == 0
