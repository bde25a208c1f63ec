"""Groups whose pods ask for different things: components of one job, each pod in a task of its own component."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.bridge.pods.model import membership
from slinky_operator.bridge.pods.model.membership import INDEX, STRIDE
from slinky_operator.bridge.pods.model.steps import GAP_S, GATHERING_S
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BRIDGE_PODS, JOBSETS, LEADERWORKERSETS, PODGROUPS, SLURMJOBS
from tests.unit.bridge.pods.worlds import TEAM, World, ended, pins

DRIVER = {"cpu": "4", "memory": "8Gi"}
WORKER = {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"}


@pytest.fixture
def world() -> World:
    return World()


def template(parallelism: int, **about: Any) -> dict[str, Any]:
    return {"spec": {"parallelism": parallelism, "completions": parallelism, "template": {"metadata": about}}}


PLACED = {"labels": {labels.LABEL_BRIDGE_POD: "true"}}


def jobset(world: World, *replicated: Object, **spec: Any) -> Object:
    about = {"name": "train", "namespace": TEAM, "uid": "jobset-train"}
    wanted = {"replicatedJobs": list(replicated) or [DRIVERS, WORKERS], **spec}
    return world.kube.put(JOBSETS, {"metadata": about, "spec": wanted, "status": {}})


DRIVERS = {"name": "driver", "replicas": 1, "template": template(1, **PLACED)}
WORKERS = {"name": "workers", "replicas": 2, "template": template(2, **PLACED)}


def pod_of(world: World, job: int, index: int, requests: Object, *, attempt: int = 0, **spec: Any) -> Object:
    marked = {
        membership.JOBSET_NAME: "train",
        membership.JOBSET_ATTEMPT: str(attempt),
        membership.JOBSET_GLOBAL_INDEX: str(job),
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"train-{job}", "uid": f"job-{attempt}-{job}"}
    annotations = {INDEX: str(index), **spec.pop("annotations", {})}
    name = spec.pop("name", f"train-{attempt}-{job}-{index}")
    return world.pod(
        name, owner={**owner, "controller": True}, labels=marked, annotations=annotations, requests=requests, **spec
    )


def gang(world: World, attempt: int = 0) -> None:
    """Create the pods of a driver and of two Jobs of two workers each, the last first."""
    for job, index in ((2, 1), (2, 0), (1, 1), (1, 0)):
        pod_of(world, job, index, WORKER, attempt=attempt)
    pod_of(world, 0, 0, DRIVER, attempt=attempt)


def slot_of(world: World, name: str) -> str:
    found: str = world.find(name)["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLOT]
    return found


async def test_a_driver_and_its_workers_are_one_job_of_two_components(world: World) -> None:
    jobset(world)
    gang(world)
    await world.settle()
    job = world.slurmjob
    assert job["metadata"]["name"] == "bridge-jobset-train-a0"
    driver, workers = job["spec"]["external"]["components"]
    assert (driver["tasks"], driver["cpusPerTask"], driver["features"]) == (1, 4, "bridge")
    assert driver["parameters"] == {"memory_per_cpu": 2048}
    assert (workers["tasks"], workers["cpusPerTask"]) == (4, 2)
    assert workers["parameters"] == {"memory_per_cpu": 1024, "tres_per_task": "gres/gpu=1"}
    assert not {"tasks", "cpusPerTask", "features"} & job["spec"].keys()
    assert job["spec"]["parameters"] == {"name": "train"}
    ranks = f"0;{STRIDE}-{STRIDE + 1},{2 * STRIDE}-{2 * STRIDE + 1}"
    assert job["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_RANKS] == ranks
    _ = world.runs_in_components(job)
    await world.settle()
    assert len(world.lifted()) == 5
    assert pins(world.find("train-0-0-0")) == ["k0"]
    workers = ["train-0-1-0", "train-0-1-1", "train-0-2-0", "train-0-2-1"]
    assert [pins(world.find(name)) for name in workers] == [["k1"]] * 4
    assert [slot_of(world, name) for name in ("train-0-0-0", *workers)] == ["0", "1", "2", "3", "4"]
    for pod in world.kube.pods():
        world.ends(pod)
    await world.settle()
    assert ended(world.slurmjob)["exitCode"] == 0


async def test_a_restart_is_a_new_job_and_ends_the_one_before(world: World) -> None:
    made = jobset(world)
    gang(world)
    await world.settle()
    _ = world.runs_in_components(world.slurmjob)
    await world.settle()
    for pod in world.kube.pods():
        world.gone(pod)
    _ = world.kube.put(JOBSETS, {**made, "status": {"restarts": 1}})
    gang(world, attempt=1)
    await world.settle(6)
    first, second = world.slurmjobs()
    assert ended(first)["comment"].startswith("pods of JobSet train, Restarted")
    assert second["metadata"]["name"] == "bridge-jobset-train-a1"
    assert len(second["spec"]["external"]["components"]) == 2


async def test_a_suspended_set_ends_its_job(world: World) -> None:
    made = jobset(world)
    gang(world)
    await world.settle()
    _ = world.runs_in_components(world.slurmjob)
    await world.settle()
    for pod in world.kube.pods():
        world.gone(pod)
    _ = world.kube.put(JOBSETS, {**made, "spec": {**made["spec"], "suspend": True}})
    await world.settle(6)
    assert ended(world.slurmjob)["exitCode"] == 143


async def test_a_pod_that_comes_later_takes_the_place_of_its_component(world: World) -> None:
    jobset(world)
    gang(world)
    await world.settle()
    _ = world.runs_in_components(world.slurmjob)
    await world.settle()
    world.ends("train-0-1-1", 1)
    # What asks for more than the component has waits for the next job.
    pod_of(world, 1, 1, DRIVER, name="other")
    await world.settle()
    assert "asks for something else" in world.condition("other")["message"]
    world.gone("other")
    pod_of(world, 1, 1, WORKER, name="heir")
    await world.settle()
    assert slot_of(world, "heir") == "2"


async def test_jobs_that_run_without_slurm_are_not_waited_for(world: World) -> None:
    fetch = {"name": "fetch", "replicas": 1, "template": template(1)}
    jobset(world, fetch, DRIVERS, {**WORKERS, "dependsOn": [{"name": "fetch", "status": "Complete"}]})
    gang(world)
    await world.settle()
    assert len(world.slurmjob["spec"]["external"]["components"]) == 2


@pytest.mark.parametrize(
    ("spec", "workers", "path"),
    [
        ({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, {}, "spec.startupPolicy"),
        ({}, {"dependsOn": [{"name": "driver", "status": "Ready"}]}, "spec.replicatedJobs[workers].dependsOn"),
    ],
)
async def test_pods_that_come_only_once_others_run_are_refused(
    world: World, spec: Object, workers: Object, path: str
) -> None:
    jobset(world, DRIVERS, {**WORKERS, **workers}, **spec)
    pod_of(world, 0, 0, DRIVER)
    await world.settle(GATHERING_S)
    assert path in world.condition("train-0-0-0")["message"]
    assert not world.slurmjobs()


async def test_a_larger_leader_is_a_component(world: World) -> None:
    about = {"name": "serve", "namespace": TEAM, "uid": "lws-serve"}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 3}}
    _ = world.kube.put(LEADERWORKERSETS, {"metadata": about, "spec": spec})
    for index, requests in ((2, WORKER), (0, DRIVER), (1, WORKER)):
        marked = {membership.LWS_NAME: "serve", membership.LWS_GROUP: "0", membership.LWS_WORKER: str(index)}
        world.pod(f"serve-0-{index}", labels=marked, annotations={membership.LWS_SIZE: "3"}, requests=requests)
    await world.settle()
    job = world.slurmjob
    assert job["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_RANKS] == "0;1-2"
    _ = world.runs_in_components(job)
    await world.settle()
    assert [slot_of(world, f"serve-0-{index}") for index in range(3)] == ["0", "1", "2"]


def member(world: World, name: str, requests: Object, **spec: Any) -> Object:
    return world.pod(name, labels={membership.POD_GROUP: "mpi"}, requests=requests, **spec)


def pod_group(world: World, least: int) -> None:
    about = {"name": "mpi", "namespace": TEAM, "uid": "pg-mpi"}
    _ = world.kube.put(PODGROUPS, {"metadata": about, "spec": {"minMember": least}})


async def test_pods_without_ranks_are_placed_in_their_own_components(world: World) -> None:
    world.cluster(featureLabels=["zone"])
    pod_group(world, 4)
    for name, requests, zone in (("a", WORKER, "1"), ("b", DRIVER, "1"), ("c", WORKER, "2"), ("d", WORKER, "1")):
        member(world, name, requests, nodeSelector={"zone": zone})
    await world.settle()
    parts = world.slurmjob["spec"]["external"]["components"]
    assert [(part["tasks"], part["cpusPerTask"], part["features"]) for part in parts] == [
        (2, 2, "bridge&zone.1"),
        (1, 4, "bridge&zone.1"),
        (1, 2, "bridge&zone.2"),
    ]
    assert labels.ANNOTATION_BRIDGE_RANKS not in world.slurmjob["metadata"]["annotations"]
    _ = world.runs_in_components(world.slurmjob)
    await world.settle()
    assert {name: pins(world.find(name)) for name in "abcd"} == {"a": ["k0"], "b": ["k1"], "c": ["k2"], "d": ["k0"]}


async def test_what_a_job_has_once_must_be_the_same_for_all(world: World) -> None:
    pod_group(world, 2)
    member(world, "a", WORKER, annotations={labels.BRIDGE_PREFIX + "time": "10"})
    member(world, "b", DRIVER, annotations={labels.BRIDGE_PREFIX + "time": "20"})
    await world.settle()
    assert "pods a and b of one group ask for another time" in world.condition("a")["message"]
    assert not world.slurmjobs()


async def test_too_many_kinds_of_pods_are_refused(world: World) -> None:
    pod_group(world, 33)
    for number in range(33):
        member(world, f"p{number:02}", {"cpu": str(number + 1), "memory": "1Gi"})
    await world.settle()
    assert not world.slurmjobs()
    shown = [world.condition(pod["metadata"]["name"]) for pod in world.kube.pods()]
    assert any("33 different things" in one["message"] for one in shown if one)


async def test_a_component_with_too_little_places_nothing(world: World) -> None:
    jobset(world)
    gang(world)
    await world.settle()
    job = world.slurmjob
    allocation = [{"component": 0, "node": "k0", "cpus": 4}, {"component": 1, "node": "k1", "cpus": 7}]
    _ = world.slurm(job, "Running", allocation=allocation)
    await world.settle(GAP_S / 4)
    assert not world.lifted()
    assert world.condition("train-0-0-0")["reason"] == "TooFewCpus"


async def test_the_ranks_of_a_job_are_what_is_written_there(world: World) -> None:
    jobset(world)
    gang(world)
    await world.settle()
    job = world.slurmjob
    annotations = {**job["metadata"]["annotations"], labels.ANNOTATION_BRIDGE_RANKS: "0-9999;;x;1-" + "9" * 30}
    world.kube.put(SLURMJOBS, {**job, "metadata": {**job["metadata"], "annotations": annotations}})
    _ = world.runs_in_components(world.slurmjob)
    await world.settle()
    assert world.kube.find(BRIDGE_PODS, "train-0-1-0", TEAM) is not None
    assert not world.lifted()
