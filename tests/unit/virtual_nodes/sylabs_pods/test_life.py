"""The pod that shows the SlurmJob of an old object: it comes with the job, comes back, and is only a view."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from typing_extensions import override

from slinky_api import labels
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS, VIRTUAL_NODES, VIRTUAL_PODS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.virtual_nodes import pod_jobs
from slinky_operator.virtual_nodes.directory import Directory
from slinky_operator.virtual_nodes.kubelet.build import CachedPods
from slinky_operator.virtual_nodes.sylabs_pods import model
from slinky_operator.virtual_nodes.sylabs_pods.controller import SylabsPodReconciler
from slinky_operator.virtual_nodes.sylabs_pods.triggers import SylabsPodTriggers
from slurm_client.testing import FakeSlurmrestd
from tests.support.slurm_jobs import SCRIPT
from tests.unit.slurmjob.worlds import KEY
from tests.unit.virtual_nodes.pods.worlds import NODE, PodWorld

POD, JOB = "hello-job", "wlm-slurmjob-hello"
OWNER = {
    "apiVersion": "wlm.sylabs.io/v1alpha1",
    "kind": "SlurmJob",
    "name": "hello",
    "uid": "old-1",
    "controller": True,
}
LOST_NODE = ("DeletionByTaintManager", "DeletionByPodGC", "")


class ShownWorld(PodWorld):
    """The world of pods, and an object of an old kind that has a SlurmJob."""

    def __init__(self, slurm: FakeSlurmrestd) -> None:
        super().__init__(slurm)
        self.virtual(sylabsPods=True)

    @override
    async def start(self) -> None:
        await super().start()
        self.shows = SylabsPodReconciler(
            cast("Any", self.kube),
            self.events,
            self.jobs,
            self.bound,
            self.nodes,
            ClusterReader(self.clusters),
            ("*",),
            now=self.now,
        )

    def old(self, **logs: Any) -> None:
        """Make the SlurmJob of the object."""
        self.job(JOB, script=SCRIPT, partition="main", logs={"pod": False, **logs})
        found = self.kube.find(SLURMJOBS, JOB, "team")
        assert found is not None
        self.kube.put(SLURMJOBS, {**found, "metadata": {**found["metadata"], "ownerReferences": [OWNER]}})

    @override
    async def passes(self) -> None:
        await super().passes()
        for key in list(self.jobs.keys()):
            _ = await self.shows.reconcile(key)

    def set_node(self, **spec: Any) -> None:
        """Change the spec of the Node."""
        node = self.nodes.get(None, NODE)
        assert node is not None
        self.kube.put(VIRTUAL_NODES, {**node, "spec": {**node["spec"], **spec}})

    async def several_passes(self) -> None:
        for _ in range(4):
            await self.passes()


@asynccontextmanager
async def shown_world() -> AsyncIterator[ShownWorld]:
    async with FakeSlurmrestd(key=KEY) as slurm:
        slurm.add_node("w-0")
        slurm.world.add_partition("main")
        world = ShownWorld(slurm)
        await world.start()
        try:
            yield world
        finally:
            await world.clients.close_all()


@pytest.fixture
async def world() -> AsyncIterator[ShownWorld]:
    async with shown_world() as one:
        yield one


async def test_it_shows_the_job_to_its_end_and_submits_none(world: ShownWorld) -> None:
    world.old()
    number = await world.runs(POD)
    pod = world.find(POD)
    assert pod is not None
    assert pod["spec"]["nodeName"] == NODE
    assert "finalizers" not in pod["metadata"]
    world.slurm.world.exit_job(number, 3)
    await world.until(lambda: world.phase(POD) == "Failed")
    assert world.state(POD)["terminated"]["exitCode"] == 3
    await world.several_passes()
    assert len(world.in_slurm()) == 1
    assert [job["metadata"]["name"] for job in world.slurmjobs()] == [JOB]


@pytest.mark.parametrize("disruption", LOST_NODE)
async def test_deleting_it_cancels_nothing_and_it_comes_back(world: ShownWorld, disruption: str) -> None:
    world.old()
    number = await world.runs(POD)
    before = (world.find(POD) or {})["metadata"]["uid"]
    world.drop(POD, disruption=disruption)
    await world.until(lambda: (world.find(POD) or {"metadata": {"uid": before}})["metadata"]["uid"] != before)
    assert await world.runs(POD) == number
    assert [job.state.base for job in world.in_slurm()] == ["RUNNING"]


async def test_ended_it_comes_back_for_a_while_and_then_not_again(world: ShownWorld) -> None:
    world.old()
    number = await world.runs(POD)
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.phase(POD) == "Succeeded")
    before = (world.find(POD) or {})["metadata"]["uid"]
    world.drop(POD)
    await world.until(lambda: (world.find(POD) or {"metadata": {"uid": before}})["metadata"]["uid"] != before)
    await world.until(lambda: world.phase(POD) == "Succeeded")
    world.ahead = model.PAST
    await world.several_passes()
    assert world.phase(POD) == "Succeeded"
    world.drop(POD)
    await world.several_passes()
    assert world.find(POD) is None


async def test_kubernetes_that_deletes_ended_pods_has_nothing_to_do_any_more(world: ShownWorld) -> None:
    """As kube-controller-manager does above its threshold, which is nothing here."""
    world.old()
    number = await world.runs(POD)
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.phase(POD) == "Succeeded")
    dropped = []
    for _ in range(20):
        if world.phase(POD) in {"Succeeded", "Failed"}:
            dropped.append(world.ahead)
            world.drop(POD, disruption="DeletionByPodGC")
        await world.several_passes()
        world.ahead += model.PAST / 4
    assert dropped
    assert max(dropped) < model.PAST * 1.25
    assert world.find(POD) is None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, False),
        ({"type": "Finished", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}, False),
        ({"type": "Running", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}, False),
        ({"type": "Finished", "status": "True", "lastTransitionTime": "2026-11-27T11:50:01Z"}, False),
        ({"type": "Finished", "status": "True", "lastTransitionTime": "2026-11-27T11:50:00Z"}, True),
        ({"type": "Finished", "status": "True", "lastTransitionTime": "yesterday"}, True),
        ({"type": "Finished", "status": "True"}, True),
    ],
)
def test_a_job_is_past_ten_minutes_after_its_end_and_where_nobody_knows_when_that_was(
    condition: dict[str, str], *, expected: bool
) -> None:
    job = old_job()
    job["status"]["conditions"] = [condition] if condition else []
    assert model.is_past(job, datetime(2026, 11, 27, 12, tzinfo=UTC)) is expected


async def test_it_does_not_come_back_on_a_node_that_is_drained(world: ShownWorld) -> None:
    world.old()
    _ = await world.runs(POD)
    world.set_node(unschedulable=True)
    world.drop(POD)
    await world.until(lambda: world.find(POD) is None)
    await world.several_passes()
    assert world.find(POD) is None
    assert [job.state.base for job in world.in_slurm()] == ["RUNNING"]
    world.set_node(unschedulable=False)
    _ = await world.runs(POD)


async def test_it_goes_with_the_switch_and_with_its_partition(world: ShownWorld) -> None:
    world.old()
    _ = await world.runs(POD)
    gone = {"key": labels.TAINT_VIRTUAL_NODE_UNAVAILABLE, "value": "PartitionGone", "effect": "NoSchedule"}
    world.set_node(unschedulable=True, taints=[gone])
    await world.until(lambda: world.find(POD) is None)
    world.set_node(unschedulable=False, taints=[])
    _ = await world.runs(POD)
    world.virtual(sylabsPods=False)
    await world.until(lambda: world.find(POD) is None)
    await world.several_passes()
    assert world.find(POD) is None
    assert [job.state.base for job in world.in_slurm()] == ["RUNNING"]


async def test_it_stays_while_its_cluster_cannot_be_read(world: ShownWorld) -> None:
    world.old()
    number = await world.runs(POD)
    before = (world.find(POD) or {})["metadata"]["uid"]
    world.virtual(sylabsPods="perhaps")
    await world.several_passes()
    world.virtual(sylabsPods=True)
    assert await world.runs(POD) == number
    assert (world.find(POD) or {})["metadata"]["uid"] == before


async def test_a_pod_of_somebody_else_keeps_the_name(world: ShownWorld) -> None:
    world.pod(POD, uid="theirs")
    world.old()
    await world.until(lambda: "NameTaken" in world.events.reasons())
    await world.several_passes()
    said = {message for _, reason, message in world.events.told if reason == "NameTaken"}
    assert said == {
        f"pod {POD} is not this job's: kubectl logs shows the output of this job once that pod has gone",
    }
    assert (world.find(POD) or {})["metadata"]["uid"] == "theirs"


async def test_a_job_whose_output_is_elsewhere_has_none(world: ShownWorld) -> None:
    world.old(pod=True)
    await world.until(world.in_slurm)
    await world.several_passes()
    assert world.find(POD) is None


async def test_its_output_is_that_of_the_slurmjob(world: ShownWorld) -> None:
    world.old()
    _ = await world.runs(POD)
    served = CachedPods(world.bound, world.jobs, Directory(world.nodes)).find("team", POD)
    assert served is not None
    assert served.job is not None
    assert served.job["metadata"]["name"] == JOB


async def test_a_pod_that_only_says_so_shows_nothing(world: ShownWorld) -> None:
    world.old()
    _ = await world.runs(POD)
    world.pod("spy", annotations={labels.ANNOTATION_VIRTUAL_POD_SHOWS: JOB})
    await world.until(lambda: world.phase("spy") == "Failed")
    assert "does not own this pod" in world.shown("spy")["message"]
    served = CachedPods(world.bound, world.jobs, Directory(world.nodes)).find("team", "spy")
    assert served is not None
    assert served.job is None
    assert len(world.in_slurm()) == 1


async def test_a_pod_that_has_a_job_stays_with_it(world: ShownWorld) -> None:
    world.pod("own")
    number = await world.runs("own")
    found = world.find("own")
    assert found is not None
    annotations = {**found["metadata"]["annotations"], labels.ANNOTATION_VIRTUAL_POD_SHOWS: JOB}
    world.kube.put(VIRTUAL_PODS, {**found, "metadata": {**found["metadata"], "annotations": annotations}})
    await world.several_passes()
    assert world.phase("own") == "Running"
    world.slurm.world.exit_job(number, 0)
    await world.until(lambda: world.phase("own") in {"Succeeded", "Failed"})
    await world.several_passes()
    assert world.phase("own") == "Succeeded"
    world.drop("own")
    await world.until(lambda: world.find("own") is None)


def old_job(**owner: Any) -> Object:
    """A SlurmJob of an old object, which has a job."""
    about = {"name": JOB, "namespace": "team", "uid": "u", "ownerReferences": [{**OWNER, **owner}]}
    spec = {"clusterName": "slurm", "clusterNamespace": "ns", "logs": {"pod": False}}
    return {"metadata": about, "spec": spec, "status": {"jobId": 1, "partition": "main"}}


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ({}, POD),
        ({"kind": "WlmJob"}, "hello-wlm-job"),
        ({"apiVersion": "slurm.sylabs.io/v1alpha1"}, POD),
        ({"apiVersion": "v1", "kind": "Pod"}, ""),
        ({"name": "n" * 250}, ""),
    ],
)
def test_pods_have_the_names_of_wlm_operator(owner: dict[str, Any], name: str) -> None:
    assert model.pod_name(old_job(**owner)) == name


def test_what_changes_its_place_wakes_the_slurmjob() -> None:
    job = old_job()
    jobs = Store({model.OF_CLUSTER: model.by_cluster})
    _ = jobs.put(job)
    triggers = SylabsPodTriggers(jobs)
    key = ("team", JOB)
    assert list(triggers.job(None, job)) == [key]
    assert list(triggers.job(job, {**job, "status": {"jobId": 1, "partition": "gpu"}})) == [key]
    assert list(triggers.job(job, {**job, "status": {**job["status"], "state": "Running"}})) == []
    pod = model.body(job, {"metadata": {"name": NODE}})
    assert list(triggers.pod(pod, None)) == [key]
    assert list(triggers.pod(pod, {**pod, "status": {"phase": "Running"}})) == []
    node: Object = {
        "metadata": {
            "name": NODE,
            "labels": {labels.LABEL_VIRTUAL_NODE: "main"},
            "annotations": {labels.ANNOTATION_VIRTUAL_NODE_CLUSTER: "ns/slurm/c"},
        },
        "spec": {"providerID": f"slurm://{NODE}"},
    }
    assert list(triggers.node(None, node)) == [key]
    assert list(triggers.node(node, {**node, "status": {"conditions": []}})) == []
    assert list(triggers.node(node, {**node, "spec": {**node["spec"], "unschedulable": True}})) == [key]
    for value, woken in (("SlurmUnreachable", []), ("PartitionNotUp", []), ("PartitionGone", [key])):
        # Slurm that is away taints all Nodes of the Cluster, and changes nothing for any pod.
        taint = {"key": labels.TAINT_VIRTUAL_NODE_UNAVAILABLE, "value": value}
        assert list(triggers.node(node, {**node, "spec": {**node["spec"], "taints": [taint]}})) == woken
    cluster = {"metadata": {"name": "slurm", "namespace": "ns", "generation": 1}}
    assert list(triggers.cluster(None, cluster)) == [key]


def test_the_pod_is_one_of_virtual_nodes() -> None:
    body = model.body(old_job(), {"metadata": {"name": NODE}})
    assert (body["apiVersion"], body["kind"]) == (VIRTUAL_PODS.api_version, VIRTUAL_PODS.kind)
    assert pod_jobs.shown_name(body) == JOB
    assert pod_jobs.by_shown(body) == [f"team/{JOB}"]
