"""The life of a pod on a virtual Node: it runs as a job, shows its end, and takes the job along when it is deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.resources import VIRTUAL_PODS
from tests.unit.virtual_nodes.pods.worlds import JOB, SET, PodWorld, pod_world


@pytest.fixture
async def world() -> AsyncIterator[PodWorld]:
    async with pod_world() as one:
        yield one


async def test_it_runs_as_a_job_and_succeeds(world: PodWorld) -> None:
    world.pod()
    number = await world.runs()
    status = world.shown()
    assert (status["phase"], status["hostIP"]) == ("Running", "10.0.0.7")
    assert {one["type"]: one["status"] for one in status["conditions"]}["Ready"] == "True"
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.phase() == "Succeeded")
    end = world.state()["terminated"]
    assert (end["exitCode"], end["reason"], end["containerID"]) == (0, "Completed", f"slurm://{number}")
    await world.until(lambda: not (world.find() or {})["metadata"].get("finalizers"))
    (job,) = world.in_slurm()
    assert (job.user, job.partition) == ("alice", "main")


async def test_a_failed_job_is_a_failed_pod_with_its_exit_code(world: PodWorld) -> None:
    world.pod()
    world.slurm.world.exit_job(await world.runs(), 42)
    await world.until(lambda: world.phase() == "Failed")
    assert (world.state()["terminated"]["exitCode"], world.state()["terminated"]["reason"]) == (42, "Error")


async def test_its_slurmjob_belongs_to_it_and_is_named_by_it(world: PodWorld) -> None:
    world.pod(asks={"account": "physics", "nodes": "2"}, activeDeadlineSeconds=90)
    await world.until(world.slurmjobs)
    (job,) = world.slurmjobs()
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["blockOwnerDeletion"]) == ("Pod", "pod-p", False)
    spec = job["spec"]
    assert (spec["clusterName"], spec["clusterNamespace"], spec["partition"]) == ("slurm", "ns", "main")
    assert (spec["account"], spec["nodes"], spec["time"]) == ("physics", "2", "1:30")
    annotations = (world.find() or {})["metadata"]["annotations"]
    assert annotations[labels.ANNOTATION_VIRTUAL_POD_JOB] == job["metadata"]["name"]


async def test_deleted_it_cancels_its_job_and_goes_when_that_has_ended(world: PodWorld) -> None:
    world.pod()
    number = await world.runs()
    world.drop()
    await world.until(lambda: world.find() is None)
    (job,) = world.in_slurm()
    assert (job.id, job.state.base) == (number, "CANCELLED")
    assert not world.slurmjobs()


async def test_deleted_by_force_it_cancels_its_job(world: PodWorld) -> None:
    world.pod()
    await world.runs()
    world.drop(force=True)
    await world.until(lambda: world.find() is None)
    assert [job.state.base for job in world.in_slurm()] == ["CANCELLED"]


async def test_deleted_before_it_has_a_job_it_goes_at_once(world: PodWorld) -> None:
    world.pod()
    world.drop()
    await world.until(lambda: world.find() is None)
    assert not world.in_slurm()


async def test_no_job_comes_twice_after_its_slurmjob_was_deleted(world: PodWorld) -> None:
    world.pod()
    await world.runs()
    (job,) = world.slurmjobs()
    world.delete(job["metadata"]["name"])
    await world.until(lambda: world.phase() == "Failed")
    for _ in range(3):
        await world.passes()
    assert world.state()["terminated"]["reason"] == "SlurmJobDeleted"
    assert len(world.in_slurm()) == 1


REFUSALS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"restartPolicy": "Always"}, "spec.restartPolicy: "),
    ({"hostNetwork": True}, "spec.hostNetwork: "),
    ({"container": {"livenessProbe": {}, "readinessProbe": {"exec": {}}}}, "spec.containers[0].readinessProbe: "),
    ({"asks": {"partition": "other"}}, "metadata.annotations[virtual-node.slinky.slurm.net/partition]: "),
    ({"asks": {"time": "soon"}}, "metadata.annotations[virtual-node.slinky.slurm.net/time]: "),
    (
        {"container": {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}},
        "spec.containers[0].env[0].valueFrom.secretKeyRef: ",
    ),
)


@pytest.mark.parametrize(("spec", "field"), REFUSALS)
async def test_what_slurm_cannot_give_is_refused_by_its_field(
    world: PodWorld, spec: dict[str, Any], field: str
) -> None:
    world.pod(owner=JOB, **spec)
    await world.until(lambda: world.phase() == "Failed")
    assert world.shown()["reason"] == "UnsupportedPodSpec"
    assert world.shown()["message"].startswith(field)
    assert not world.slurmjobs()
    assert "UnsupportedPodSpec" in world.events.reasons()


async def test_a_refused_pod_of_a_replicaset_waits_so_that_no_other_is_made(world: PodWorld) -> None:
    world.pod(owner=SET, restartPolicy="Always")
    await world.until(world.state)
    assert world.phase() == "Pending"
    assert world.state()["waiting"]["reason"] == "UnsupportedPodSpec"


async def test_a_namespace_without_tenant_gets_no_job(world: PodWorld) -> None:
    world.pod(namespace="stranger")
    await world.look("p", "stranger")
    status = (world.find("p", "stranger") or {})["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "JobsNotAllowed")


async def test_a_node_whose_partition_is_not_granted_gives_no_job(world: PodWorld) -> None:
    world.virtual([{"namespaces": ["team"], "user": "alice", "partitions": ["other"]}])
    world.pod()
    await world.until(lambda: world.phase() == "Failed")
    assert world.shown()["message"].startswith("spec.nodeName: 'main' is not granted")


async def test_a_pod_waits_while_the_cluster_of_its_node_is_not_there(world: PodWorld) -> None:
    world.node(cluster_uid="another")
    world.pod()
    await world.until(world.state)
    assert (world.phase(), world.state()["waiting"]["reason"]) == ("Pending", "ClusterNotFound")
    world.node()
    await world.runs()


async def test_ready_is_written_again_once_the_node_is_ready(world: PodWorld) -> None:
    world.pod()
    await world.runs()
    world.node(ready="Unknown")
    found = world.find() or {}
    conditions = [
        {**one, "status": "False"} if one["type"] == "Ready" else one for one in found["status"]["conditions"]
    ]
    await world.kube.patch_status(VIRTUAL_PODS, "p", {"conditions": conditions}, "team")
    await world.passes()
    assert _ready(world) == "False"
    world.node()
    await world.passes()
    assert _ready(world) == "True"


def _ready(world: PodWorld) -> str:
    found: str = next(one["status"] for one in world.shown()["conditions"] if one["type"] == "Ready")
    return found
