"""Pods that Slurm places, with the controllers and the scheduler of Kubernetes; the test is Slurm and the kubelets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.bridge.pods import absent_hosts
from slinky_operator.bridge.pods.clusters import BridgeClusters
from slinky_operator.bridge.pods.controller import GroupReconciler
from slinky_operator.bridge.pods.model import lift, plan
from slinky_operator.bridge.pods.model.lift import CONDITION
from slinky_operator.bridge.pods.model.membership import INDEX
from slinky_operator.bridge.pods.observation import INDEXES_OF_JOBS, Observer, Singles
from slinky_operator.bridge.pods.spec import PODS_CACHE, SPEC
from slinky_operator.bridge.pods.triggers import GroupTriggers
from slinky_operator.kube import errors
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    BATCH_JOBS,
    BRIDGE_PODS,
    CLUSTERS,
    NAMESPACES,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODS,
    SLURMJOBS,
)
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.text import stamp
from slinky_operator.reconcile.triggers import connect, observe
from slinky_operator.runtime.controller import Controller
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.slurm.connection.clients import ClientMap
from tests.support import control_plane
from tests.support.control_plane import ControlPlane
from tests.support.played_pods import ALIVE, ended
from tests.support.served import apply_crds, apply_job_crds

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

PATIENCE = 120
TEAM = "bridge-team"
GATE = {"name": labels.GATE_BRIDGE}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane.running("bridge", controllers=True, scheduler=True) as instance:
        apply_crds(instance.kubectl)
        apply_job_crds(instance.kubectl)
        yield instance


class Site:
    """Two Nodes, a Cluster that places pods of a namespace there, and the running controller."""

    def __init__(self, kube: KubeClient) -> None:
        self.kube = kube
        self.told: list[tuple[str, str, str]] = []

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((obj["metadata"]["name"], str(reason), message))

    normal = warning

    async def until(self, what: str, holds: Callable[[], Any]) -> Any:
        """Wait until something that is asked for is true, and return it."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (found := await holds()):  # noqa: ASYNC110 - the API server sets no event
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pods = [(one["metadata"]["name"], one["status"], one["spec"].get("nodeName")) for one in await self.pods()]
            raise AssertionError(f"{what}: {pods}, {await self.slurmjobs()}, {self.told}") from None
        return found

    async def pods(self) -> list[Object]:
        return (await self.kube.list(PODS, TEAM)).items

    async def slurmjobs(self) -> list[Object]:
        found = (await self.kube.list(SLURMJOBS, TEAM)).items
        return sorted(found, key=lambda one: str(one["metadata"]["name"]))

    async def slurm(self, job: Object, state: str, **status: Any) -> None:
        """Write the status of a SlurmJob."""
        wanted = {"state": state, "reason": state, "summary": f"it is {state}", "jobId": 7, **status}
        _ = await self.kube.patch_status(SLURMJOBS, job["metadata"]["name"], wanted, TEAM)

    async def runs(self, job: Object, **cpus: int) -> None:
        """Let Slurm run a job on nodes with so many CPUs."""
        allocation = [{"node": node, "cpus": count, "memory": 1, "gres": []} for node, count in cpus.items()]
        await self.slurm(job, "Running", allocation=allocation, startTime=stamp(datetime.now(UTC)))

    async def fails(self, job: Object, reason: str) -> None:
        now = stamp(datetime.now(UTC))
        about = {"type": "Finished", "status": "True", "reason": reason, "message": "", "lastTransitionTime": now}
        await self.slurm(job, "Failed", reason=reason, endTime=now, conditions=[about])

    async def end(self, pod: Object) -> None:
        """Let a pod succeed, as its kubelet does."""
        _ = await self.kube.patch_status(PODS, pod["metadata"]["name"], ended(), TEAM)

    async def remove(self, pod: Object) -> None:
        """Let a pod go that has ended, as its kubelet does."""
        about = pod["metadata"]
        with suppress(errors.NotFound):
            _ = await self.kube.delete(PODS, about["name"], TEAM, uid=about["uid"], grace_seconds=0)

    async def pod(self, name: str) -> Callable[[], Awaitable[list[Object]]]:
        """Create a pod, and return what finds its SlurmJobs, in their order."""
        body = self.template()
        body["metadata"] |= {"name": name, "namespace": TEAM}
        made = await self.kube.create(PODS, {"apiVersion": "v1", "kind": "Pod", **body})
        first = f"bridge-{made['metadata']['uid']}"

        async def jobs() -> list[Object]:
            return [one for one in await self.slurmjobs() if str(one["metadata"]["name"]).startswith(first)]

        return jobs

    def template(self, **spec: Any) -> Object:
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
        given = {"schedulingGates": [GATE], "tolerations": ALIVE, "restartPolicy": "Never", "containers": [container]}
        return {"metadata": {"labels": {labels.LABEL_BRIDGE_POD: "true"}}, "spec": {**given, **spec}}


@pytest.fixture
async def site(plane: ControlPlane) -> AsyncIterator[Site]:
    async with await Connection.connect(plane.kubeconfig) as connection, Supervisor() as supervisor:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
        site = Site(kube)
        await furnish(kube)
        cache = PODS_CACHE
        pods = Informer(
            kube, BRIDGE_PODS, label_selector=cache.label_selector, indexers=cache.indexers, prune=cache.prune
        )
        jobs = Informer(kube, SLURMJOBS, indexers=INDEXES_OF_JOBS, prune=prune_job)
        clusters, hosts = Informer(kube, CLUSTERS), Informer(kube, NODES)
        caches = {BRIDGE_PODS: pods, SLURMJOBS: jobs, CLUSTERS: clusters, NODES: hosts}
        singles = Singles()
        chosen = BridgeClusters(kube, ClusterReader(clusters.store), ("*",), time.monotonic)
        observer = Observer(
            kube,
            pods.store,
            jobs.store,
            chosen,
            singles,
            now=lambda: datetime.now(UTC),
            clock=time.monotonic,
            hosts=hosts.store,
        )
        reconciler = GroupReconciler(kube, site, pods.store, jobs.store, observer)
        triggers = GroupTriggers(pods.store, jobs.store, singles)
        table = triggers.table(reconciler.subscribe, seen=reconciler.expectations.observe)
        gates = [one.synced for one in caches.values()]
        controller = Controller(SPEC.name, reconciler.reconcile, tell=reconciler.tell, gates=gates)
        slurm = ClientMap(OpenFence())
        observe(table, caches)
        connect(table, controller.queue, caches, slurm)
        for resource, one in caches.items():
            supervisor.start(str(resource), one.run())
        supervisor.start("controller", forever(controller))
        yield site
        await controller.stop(10)
        await slurm.close_all()


async def furnish(kube: KubeClient) -> None:
    """Make what all tests share, unless it is there."""
    cluster = {
        "metadata": {"name": "slurm", "namespace": TEAM},
        "spec": {"jobs": {"tenants": [{"user": "alice", "namespaces": [TEAM]}], "bridge": {"nodeLabels": {"b": "1"}}}},
    }
    taints = [{"key": labels.TAINT_BRIDGE, "value": "1", "effect": "NoSchedule"}]
    size = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    try:
        _ = await kube.create(NAMESPACES, {"metadata": {"name": TEAM}})
        _ = await kube.create(CLUSTERS, {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", **cluster})
    except errors.AlreadyExists:
        return
    for name in ("k1", "k2"):
        _ = await kube.create(NODES, {"metadata": {"name": name, "labels": {"b": "1"}}, "spec": {"taints": taints}})
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
        shown = {"allocatable": size, "capacity": size, "conditions": [ready]}
        _ = await kube.patch_status(NODES, name, shown)


async def forever(controller: Controller[tuple[str, str]]) -> None:
    await controller.run()
    _ = await asyncio.Event().wait()


def by_index(pods: list[Object]) -> dict[str, Object]:
    return {one["metadata"]["annotations"][INDEX]: one for one in pods}


async def evicted_by_slurm(site: Site, job: Object, pods: list[Object]) -> None:
    """Let Slurm end a job whose pods a budget protects for a while, and let the pods go."""
    budget = {"metadata": {"name": "none", "namespace": TEAM}}
    selector = {"matchLabels": {"job-name": "j"}}
    _ = await site.kube.create(PODDISRUPTIONBUDGETS, {**budget, "spec": {"maxUnavailable": 0, "selector": selector}})
    # The controller that counts is not here: the API server allows no disruption until a budget was counted.
    for pod in pods:
        # A budget protects pods that run, and are ready.
        ready = [{"type": "Ready", "status": "True"}, *pod["status"]["conditions"]]
        _ = await site.kube.patch_status(PODS, pod["metadata"]["name"], {"phase": "Running", "conditions": ready}, TEAM)
    await site.fails(job, "Timeout")

    async def waits() -> bool:
        return "EvictionWaits" in {reason for _, reason, _ in site.told}

    await site.until("the budget keeps pods", waits)
    assert not any(one["metadata"].get("deletionTimestamp") for one in await site.pods())
    _ = await site.kube.delete(PODDISRUPTIONBUDGETS, "none", TEAM, uid=None)

    async def evicted() -> bool:
        return all(one["metadata"].get("deletionTimestamp") for one in await site.pods() if one["spec"].get("nodeName"))

    await site.until("pods are evicted", evicted)
    for pod in pods:
        await site.remove(pod)


async def test_the_pods_of_a_job_run_where_slurm_says_are_evicted_when_it_says_and_run_again(site: Site) -> None:
    spec = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimit": 9}
    job = {"metadata": {"name": "j", "namespace": TEAM}, "spec": {**spec, "template": site.template()}}
    made = await site.kube.create(BATCH_JOBS, {"apiVersion": "batch/v1", "kind": "Job", **job})

    async def submitted() -> Object | None:
        return next(iter(await site.slurmjobs()), None)

    slurmjob = await site.until("a SlurmJob", submitted)
    assert slurmjob["metadata"]["name"] == f"bridge-{made['metadata']['uid']}"
    assert (slurmjob["spec"]["tasks"], slurmjob["spec"]["cpusPerTask"]) == (3, 1)
    assert all(one["spec"]["schedulingGates"] == [GATE] for one in await site.pods())
    await site.runs(slurmjob, k2=2, k1=1)

    async def bound() -> dict[str, Object]:
        pods = await site.pods()
        return by_index(pods) if all(one["spec"].get("nodeName") for one in pods) else {}

    pods = await site.until("all pods have Nodes", bound)
    assert [pods[index]["spec"]["nodeName"] for index in "012"] == ["k2", "k2", "k1"]

    async def placed() -> bool:
        found = [c for one in await site.pods() for c in one["status"]["conditions"] if c["type"] == CONDITION]
        return [one["status"] for one in found] == ["True"] * 3

    await site.until("pods show that they are placed", placed)
    # The scheduler's conditions are still there.
    kinds = {one["type"] for one in (await site.pods())[0]["status"]["conditions"]}
    assert {CONDITION, "PodScheduled"} <= kinds
    await evicted_by_slurm(site, slurmjob, list(pods.values()))

    async def again() -> Object | None:
        found = await site.slurmjobs()
        return found[1] if len(found) > 1 else None

    second = await site.until("a second SlurmJob", again)
    assert second["metadata"]["name"] == f"{slurmjob['metadata']['name']}-r1"
    await site.runs(second, k1=3)
    pods = await site.until("the next pods have Nodes", bound)
    assert {one["spec"]["nodeName"] for one in pods.values()} == {"k1"}
    for pod in pods.values():
        await site.end(pod)

    async def ended() -> Object:
        found = await site.kube.get(SLURMJOBS, second["metadata"]["name"], TEAM)
        end: Object = found["spec"]["external"].get("ended") or {}
        return end

    end = await site.until("the end of the job is said", ended)
    assert end["exitCode"] == 0
    _ = await site.kube.delete(BATCH_JOBS, "j", TEAM, uid=None)


async def test_a_job_on_a_node_that_is_gone_ends_and_its_pod_gets_another(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent_hosts, "GONE_S", 1.0)
    jobs = await site.pod("moved")
    (first,) = await site.until("a SlurmJob", jobs)
    await site.runs(first, lost=1)

    async def ended() -> bool:
        return "ended" in (await jobs())[0]["spec"]["external"]

    await site.until("its end is said", ended)

    async def is_told() -> bool:
        return ("moved", "NodeGone") in {(name, reason) for name, reason, _ in site.told}

    await site.until("the Event", is_told)
    await site.fails(first, "Cancelled")

    async def again() -> list[Object]:
        return (await jobs())[1:]

    (second,) = await site.until("a second SlurmJob", again)
    await site.runs(second, k1=1)

    async def bound() -> bool:
        return bool((await site.kube.get(PODS, "moved", TEAM))["spec"].get("nodeName") == "k1")

    await site.until("the pod is on the other Node", bound)
    await site.end(await site.kube.get(PODS, "moved", TEAM))
    _ = await site.kube.delete(PODS, "moved", TEAM, uid=None, grace_seconds=0)


async def test_a_pod_whose_node_goes_before_it_is_bound_is_evicted(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lift, "WAITS_S", 1.0)
    monkeypatch.setattr(plan, "AGAIN_S", 1.0)
    monkeypatch.setattr(absent_hosts, "GONE_S", 1.0)
    # It has no room, so the scheduler binds nothing to it.
    _ = await site.kube.create(NODES, {"metadata": {"name": "full"}})
    jobs = await site.pod("stranded")
    (job,) = await site.until("a SlurmJob", jobs)
    await site.runs(job, full=1)

    async def refused() -> bool:
        found = (await site.kube.get(PODS, "stranded", TEAM))["status"]["conditions"]
        shown = {(one["type"], one["status"], one["reason"]) for one in found}
        return {(CONDITION, "True", "Placed"), ("PodScheduled", "False", "Unschedulable")} <= shown

    await site.until("no Node takes the pod", refused)
    _ = await site.kube.delete(NODES, "full", uid=None)

    async def is_gone() -> bool:
        return "stranded" not in {one["metadata"]["name"] for one in await site.pods()}

    await site.until("the pod is evicted", is_gone)
    words = "Slurm has placed it on Kubernetes Node full, which does not exist any more"

    async def is_told() -> bool:
        return ("stranded", "EvictedBySlurm", words) in site.told

    # The pod is gone before its eviction is answered, and it is told after that.
    await site.until("the Event", is_told)


async def test_a_pod_that_is_deleted_takes_its_slurmjob_along(site: Site) -> None:
    pod = site.template()
    pod["metadata"] |= {"name": "alone", "namespace": TEAM}
    made = await site.kube.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod})
    name = f"bridge-{made['metadata']['uid']}"

    async def find() -> bool:
        return name in {one["metadata"]["name"] for one in await site.slurmjobs()}

    async def is_gone() -> bool:
        return not await find()

    await site.until("a SlurmJob", find)
    _ = await site.kube.delete(PODS, "alone", TEAM, uid=None, grace_seconds=0)
    await site.until("the SlurmJob has gone", is_gone)
