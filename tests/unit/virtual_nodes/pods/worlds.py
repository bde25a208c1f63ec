"""Pods on a virtual Node in the world of SlurmJobs: an API server, its garbage collector, and an operator to kill."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from typing_extensions import override

from slinky_api import labels
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SLURMJOBS, VIRTUAL_NODES, VIRTUAL_PODS, Resource
from slinky_operator.reconcile.cached.bound_pods import BOUND_TO, by_node
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.runtime.controller import Result
from slinky_operator.slurmjob.observation import INDEXES_OF_JOBS as INDEXES_OF_SLURMJOBS
from slinky_operator.virtual_nodes.pod_jobs import JOBS_CACHE, PODS_CACHE
from slinky_operator.virtual_nodes.pods.controller import PodReconciler
from slinky_operator.virtual_nodes.pods.observation import INDEXES_OF_JOBS, INDEXES_OF_PODS, Observer
from slurm_client.testing import FakeSlurmrestd
from tests.support import slurm_jobs
from tests.support.memory_kube import merge, name_of
from tests.support.slurm_jobs import Killed
from tests.unit.slurmjob.worlds import KEY, JobWorld

NODE = "slurm-minikube-main"
JOB: Object = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-1", "controller": True}
SET: Object = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-1", "controller": True}


class PodKube(slurm_jobs.Kube):
    """Lets objects go as an API server does, collects what they own, and ends the operator after a write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []
        self.last_write: int | None = None
        """Number of the write after which the operator ends, from 1 on."""

    def wrote(self, verb: str, resource: Resource, name: str) -> None:
        self.writes.append(f"{verb} {resource.plural} {name}")
        if self.last_write is not None and len(self.writes) >= self.last_write:
            self.last_write = None
            raise Killed

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        about = {"generation": 1, "creationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        made = await super().create(resource, {**body, "metadata": {**about, **body["metadata"]}}, namespace)
        self.wrote("create", resource, body["metadata"]["name"])
        return made

    @override
    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        self._check(resource, name, namespace, options)
        merged = self.put(resource, merge(await self.get(resource, name, namespace), patch))
        self.settle(resource, name, namespace)
        self.wrote("patch", resource, name)
        return merged

    @override
    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        if resource.plural != "pods":
            return await super().patch_status(resource, name, status, namespace, **options)
        self._check(resource, name, namespace, options)
        found = await self.get(resource, name, namespace)
        check_transition(found, status)
        shown = self.put(resource, merge(found, {"status": status}))
        self.wrote("status", resource, name)
        return shown

    @override
    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Object:
        self._check(resource, name, namespace, options)
        found = await self.get(resource, name, namespace)
        self.mark(resource, found, 0)
        self.wrote("delete", resource, name)
        return found

    def mark(self, resource: Resource, found: Object, grace: int) -> None:
        """Mark an object as one that is to go, and let it go if nothing keeps it."""
        about = found["metadata"]
        marked = {
            "deletionTimestamp": about.get("deletionTimestamp") or "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": min(grace, about.get("deletionGracePeriodSeconds", grace)),
        }
        self.put(resource, {**found, "metadata": {**about, **marked}})
        self.settle(resource, about["name"], about.get("namespace"))

    def settle(self, resource: Resource, name: str, namespace: str | None) -> None:
        """Let an object go that nothing keeps, and mark what it owned."""
        found = self.find(resource, name, namespace)
        about = found["metadata"] if found is not None else {}
        if found is None or not about.get("deletionTimestamp") or about.get("finalizers"):
            return
        if about.get("deletionGracePeriodSeconds"):
            return
        self.forget(resource, found)
        for (plural, where, _), obj in list(self.objects.items()):
            owners = obj["metadata"].get("ownerReferences") or ()
            if where == (namespace or "") and plural == "slurmjobs" and any(o["uid"] == about["uid"] for o in owners):
                self.mark(SLURMJOBS, obj, 0)


def check_transition(pod: Object, status: Object) -> None:
    """Refuse what the API server refuses: a container that has ended does not come back."""
    before = ((pod.get("status") or {}).get("containerStatuses") or [{}])[0].get("state") or {}
    after = (status.get("containerStatuses") or [{}])[0].get("state")
    if "terminated" in before and after is not None:
        assert "terminated" in after, "may not be transitioned to non-terminated state"


class PodWorld(JobWorld):
    """Cluster `slurm` has a virtual Node for partition `main`, and namespace `team` is its tenant."""

    KUBE = PodKube
    kube: PodKube

    def __init__(self, slurm: FakeSlurmrestd) -> None:
        super().__init__(slurm)
        self.jobs = self.new_cache_of_jobs()
        self.bound = self.kube.cache(VIRTUAL_PODS, {**INDEXES_OF_PODS, BOUND_TO: by_node}, PODS_CACHE.prune)
        self.nodes = self.kube.cache(VIRTUAL_NODES)
        self.virtual()
        self.node()

    def new_cache_of_jobs(self) -> Store:
        """An empty cache of SlurmJobs; an operator that starts has it."""
        every = {**INDEXES_OF_SLURMJOBS, **JOBS_CACHE.indexers, **INDEXES_OF_JOBS}
        return self.kube.cache(SLURMJOBS, every, prune_job)

    @override
    async def start(self) -> None:
        await super().start()
        clusters, now = ClusterReader(self.clusters), self.now
        observer = Observer(
            self.kube, self.bound, self.jobs, self.nodes, clusters, ("*",), now=now, clock=time.monotonic
        )
        self.pods_reconciler = PodReconciler(
            cast("Any", self.kube), self.events, self.bound, self.jobs, observer, now=now
        )

    def virtual(self, tenants: list[dict[str, Any]] | None = None, **fields: Any) -> None:
        """Write the Cluster with what its administrator says of virtual Nodes."""
        tenants = self.tenants if tenants is None else tenants
        self.cluster(jobs={"tenants": tenants, "virtualNodes": {"host": "minikube", **fields}})

    def node(self, name: str = NODE, partition: str = "main", *, ready: str = "True", cluster_uid: str = "") -> None:
        """Write a virtual Node."""
        about = {
            "name": name,
            "labels": {labels.LABEL_VIRTUAL_NODE: partition},
            "annotations": {labels.ANNOTATION_VIRTUAL_NODE_CLUSTER: f"ns/slurm/{cluster_uid or 'cluster-1'}"},
        }
        conditions = [{"type": "Ready", "status": ready}]
        addresses = [{"type": "InternalIP", "address": "10.0.0.7"}]
        status = {"conditions": conditions, "addresses": addresses}
        self.kube.put(VIRTUAL_NODES, {"metadata": about, "spec": {"providerID": f"slurm://{name}"}, "status": status})

    def pod(self, name: str = "p", *, uid: str = "", owner: Object | None = None, **spec: Any) -> None:
        """Bind a pod to the virtual Node."""
        container = {"name": "main", "image": "no-image", "command": ["sleep", "1"], **spec.pop("container", {})}
        about = {
            "name": name,
            "namespace": spec.pop("namespace", "team"),
            "uid": uid or f"pod-{name}",
            "annotations": {f"{labels.VIRTUAL_NODE_PREFIX}{key}": one for key, one in spec.pop("asks", {}).items()}
            | spec.pop("annotations", {}),
            **({"ownerReferences": [owner]} if owner is not None else {}),
        }
        wanted = {"nodeName": NODE, "restartPolicy": "Never", "containers": [container], **spec}
        self.kube.put(VIRTUAL_PODS, {"metadata": about, "spec": wanted, "status": {"phase": "Pending"}})

    def find(self, name: str = "p", namespace: str = "team") -> Object | None:
        return self.kube.find(VIRTUAL_PODS, name, namespace)

    def shown(self, name: str = "p") -> Object:
        """The status of a pod."""
        found: Object = (self.find(name) or {}).get("status") or {}
        return found

    def state(self, name: str = "p") -> Object:
        """The state of the container of a pod."""
        found: Object = (self.shown(name).get("containerStatuses") or [{}])[0].get("state") or {}
        return found

    def phase(self, name: str = "p") -> str:
        return str(self.shown(name).get("phase") or "")

    def slurmjobs(self) -> list[Object]:
        return [obj for (plural, _, _), obj in self.kube.objects.items() if plural == name_of(SLURMJOBS)]

    def disrupt(self, name: str = "p", *, disruption: str, phase: str = "") -> Object:
        """Say why Kubernetes is about to delete a pod."""
        found = self.find(name)
        assert found is not None
        status = found.get("status") or {}
        target = {"type": "DisruptionTarget", "status": "True", "reason": disruption}
        conditions = [*(status.get("conditions") or ()), target]
        status = {**status, "conditions": conditions, **({"phase": phase} if phase else {})}
        return self.kube.put(VIRTUAL_PODS, {**found, "status": status})

    def drop(self, name: str = "p", *, disruption: str = "", force: bool = False, phase: str = "") -> None:
        """Delete a pod, as people, controllers and Kubernetes itself do."""
        found = self.disrupt(name, disruption=disruption, phase=phase) if disruption else self.find(name)
        assert found is not None
        self.kube.mark(VIRTUAL_PODS, found, 0 if force else 30)

    async def look(self, name: str = "p", namespace: str = "team") -> Result:
        """One pass over a pod."""
        return await self.pods_reconciler.reconcile((namespace, name))

    async def passes(self) -> None:
        """One pass over everything."""
        pods: list[Key] = list(self.bound.keys())
        for namespace, name in pods:
            await self.look(name, namespace)
        for namespace, name in list(self.jobs.keys()):
            await self.step(name, namespace)

    @override
    async def until(self, holds: Callable[[], Any]) -> None:
        """Run passes over all objects until something holds; an operator that ends is started again."""
        while not holds():
            try:
                await self.passes()
            except Killed:
                await self.kill()
            await asyncio.sleep(0.005)

    async def runs(self, name: str = "p") -> int:
        """Wait until a pod runs, and return the number of its job."""
        await self.until(lambda: "running" in self.state(name))
        return int(self.shown(name)["containerStatuses"][0]["containerID"].removeprefix("slurm://"))


@asynccontextmanager
async def pod_world() -> AsyncIterator[PodWorld]:
    async with FakeSlurmrestd(key=KEY) as slurm:
        for number in range(4):
            slurm.add_node(f"w-{number}")
        slurm.world.add_partition("main")
        world = PodWorld(slurm)
        await world.start()
        try:
            yield world
        finally:
            await world.clients.close_all()
