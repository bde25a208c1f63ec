"""SlurmJobs with their Cluster on an API server in memory, and an operator to kill; whose Slurm it is is the test's."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from prometheus_client import CollectorRegistry
from typing_extensions import override

from slinky_api import labels
from slinky_operator.jobs import phases
from slinky_operator.kube.cache.informer import Handler
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.errors import Conflict, Target
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    JOB_LOG_PODS,
    NAMESPACES,
    NODESETS,
    PODS,
    SECRETS,
    SLURMJOBS,
    Resource,
)
from slinky_operator.metrics.job_changes import JobChanges
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.cached.job_nodes import INDEXES_OF_PODS, Nodes
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.triggers import connect
from slinky_operator.runtime.controller import Controller, Result
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.contact import ContactState, Endpoint
from slinky_operator.slurmjob.controller import SlurmJobReconciler
from slinky_operator.slurmjob.ended_jobs import EndedJobs
from slinky_operator.slurmjob.execute.resubmission import Resubmissions
from slinky_operator.slurmjob.observation import CLUSTER_OF_JOB, INDEXES_OF_JOBS, UID, Observer
from slinky_operator.slurmjob.pods.bodies import Image
from slinky_operator.slurmjob.pods.copy_upkeep import CopyUpkeep
from slinky_operator.slurmjob.pods.log_upkeep import LogUpkeep
from slinky_operator.slurmjob.polling.queues import Queues
from slinky_operator.slurmjob.triggers import SlurmJobTriggers
from slurm_client import MintedToken
from tests.support.memory_kube import MemoryKube, name_of

SCRIPT = "#!/bin/sh\nsleep 1\n"


class Killed(BaseException):
    """The operator has ended in the middle of a pass."""


class Kube(MemoryKube):
    """Refuses what names another version than there is; ends the operator where a test wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.before_status: Callable[[Object], None] | None = None
        """Called with each status before it is written."""
        self.handlers: dict[str, list[Handler]] = {}
        """Called with each change, by plural name of the resource."""

    @override
    def put(self, resource: Resource, obj: Object) -> Object:
        about = obj["metadata"]
        old = self.find(resource, about["name"], about.get("namespace"))
        stored = super().put(resource, obj)
        for handler in self.handlers.get(name_of(resource), ()):
            handler(old, stored)
        return stored

    def forget(self, resource: Resource, obj: Object) -> None:
        """Let an object be gone."""
        about = obj["metadata"]
        del self.objects[name_of(resource), about.get("namespace") or "", about["name"]]
        self.caches[name_of(resource)].remove(obj)
        for handler in self.handlers.get(name_of(resource), ()):
            handler(obj, None)

    def _check(self, resource: Resource, name: str, namespace: str | None, options: dict[str, Any]) -> None:
        found = self.find(resource, name, namespace)
        about = found["metadata"] if found is not None else {}
        pairs = {"uid": options.get("uid"), "resourceVersion": options.get("resource_version")}
        if any(value not in {None, about.get(field)} for field, value in pairs.items()):
            raise Conflict(Target("patch", str(resource), namespace, name), "changed", status=409)

    @override
    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        self._check(resource, name, namespace, options)
        merged = await super().merge_patch(resource, name, patch, namespace)
        about = merged["metadata"]
        if about.get("deletionTimestamp") and not about.get("finalizers"):
            self.forget(resource, merged)
        return merged

    @override
    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        self._check(resource, name, namespace, options)
        if self.before_status is not None:
            self.before_status(status)
        return await super().patch_status(resource, name, status, namespace)

    @override
    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Object:
        self._check(resource, name, namespace, options)
        found = await self.get(resource, name, namespace)
        self.forget(resource, found)
        return found


class Source:
    """The cache of one resource, as triggers see it."""

    def __init__(self, kube: Kube, resource: Resource) -> None:
        self._handlers = kube.handlers.setdefault(name_of(resource), [])

    def add_handler(self, handler: Handler) -> None:
        self._handlers.append(handler)


class Events:
    """Keeps Events."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(("Normal", reason, message))

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(("Warning", reason, message))

    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.told]


class JobWorld:
    """Cluster `slurm` in namespace `ns`, whose tenant is namespace `team`.

    Parameters
    ----------
    url, key
        Where slurmrestd is, and the key of tokens.
    user
        Whose jobs those of namespace `team` are.
    poll_interval
        Seconds between two questions whether jobs have changed.
    """

    KUBE: type[Kube] = Kube
    """The API server."""

    def __init__(self, url: str, key: bytes, user: str, *, poll_interval: float = 0.02) -> None:
        self._key = key
        self._endpoint = Endpoint(url, timeout=3600.0, poll_interval=poll_interval)
        self.tenants: list[dict[str, Any]] = [{"namespaces": ["team"], "user": user}]
        self.kube, self.events = self.KUBE(), Events()
        self.ahead = timedelta(0)
        """How far the operator's clock is ahead."""
        self.most_resubmissions = 1000
        self.luck: Callable[[], float] = random.random
        """Jobs that were refused which the operator submits again in a minute; set before it starts."""
        self.watched: tuple[str, ...] = ()
        """Namespaces whose Clusters the operator sees; all if empty. Set before it starts."""
        self.uids = "uid"
        """First letters of the uids of SlurmJobs."""
        self.registry = CollectorRegistry()
        """Metrics of all operators, one after the other."""
        self.changes = JobChanges(self.registry, ends=phases.ENDS)
        self.jobs = self.kube.cache(SLURMJOBS, INDEXES_OF_JOBS, prune_job)
        self.clusters = self.kube.cache(CLUSTERS)
        self.nodesets = self.kube.cache(NODESETS, INDEXES_OF_NODESETS)
        self.pods = self.kube.cache(PODS, INDEXES_OF_PODS)
        self.cluster()
        data = {"jwt.key": base64.b64encode(key).decode()}
        own = {labels.LABEL_CLUSTER_UID: "cluster-1", labels.LABEL_CLUSTER_NAME: "slurm"}
        self.kube.put(
            SECRETS, {"metadata": {"name": "slurm-auth-copy", "namespace": "ns", "labels": own}, "data": data}
        )
        self.kube.put(NAMESPACES, {"metadata": {"name": "team", "labels": {"team": "physics"}}})

    async def start(self) -> None:
        """Start the operator with nothing in memory."""
        self.clients = self.client_map()
        token = MintedToken(self._key, "slurm")
        await self.clients.put("cluster-1", "ns", "slurm", endpoint=self._endpoint, token=token, fingerprint="1")
        ended = EndedJobs(lambda uid: self.jobs.find(UID, uid), self.events)
        self.queues = Queues(self.clients, lambda _: any(self.jobs.find(CLUSTER_OF_JOB, "ns/slurm")), ended)
        nodes = Nodes(self.nodesets, self.pods)
        clusters = ClusterReader(self.clusters, self.watched)
        observer = Observer(self.kube, self.jobs, clusters, self.clients, self.queues, nodes, self.now)
        reader = SecretReader(cast("KubeClient", self.kube))
        image = Image("operator:1")
        self.logs = logs = LogUpkeep(self.kube, reader, nodes, image, self.pods)
        self.reconciler = SlurmJobReconciler(
            self.kube,
            self.events,
            reader,
            self.jobs,
            observer,
            self.queues,
            logs,
            CopyUpkeep(self.kube, reader, nodes, image),
            changes=self.changes,
            resubmissions=Resubmissions(self.most_resubmissions, self.luck),
            now=self.now,
        )
        self.triggers = SlurmJobTriggers(self.jobs, self.clients, self.queues, logs.pod_gone)
        entry = self.clients.get("cluster-1")
        assert entry is not None
        await until(lambda: entry.contact.state is ContactState.READY)

    def client_map(self) -> ClientMap:
        """What reaches Slurm; over the network."""
        return ClientMap(OpenFence())

    async def kill(self) -> None:
        """End the operator, and start another."""
        await self.clients.close_all()
        await self.start()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def cluster(self, **spec: Any) -> None:
        spec = {"jobs": {"tenants": self.tenants}, **spec}
        old = self.kube.find(CLUSTERS, "slurm", "ns")
        generation = old["metadata"]["generation"] + 1 if old is not None else 1
        metadata = {"name": "slurm", "namespace": "ns", "uid": "cluster-1", "generation": generation}
        self.kube.put(CLUSTERS, {"metadata": metadata, "spec": spec})

    def job(self, name: str = "hello", namespace: str = "team", **spec: Any) -> None:
        """Create a SlurmJob, or change its spec."""
        old = self.kube.objects.get(("slurmjobs", namespace, name))
        wanted = {"clusterName": "slurm", "clusterNamespace": "ns", "script": SCRIPT, **spec}
        wanted = {key: value for key, value in wanted.items() if value is not None}
        if old is not None:
            # As an API server does: nothing else tells that a spec has changed.
            changed = {**old["metadata"], "generation": old["metadata"]["generation"] + 1}
            self.kube.put(SLURMJOBS, {**old, "metadata": changed, "spec": {**old["spec"], **wanted}})
            return
        about = {
            "name": name,
            "namespace": namespace,
            "uid": f"{self.uids}-{namespace}-{name}",
            "generation": 1,
            "creationTimestamp": self.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self.kube.put(SLURMJOBS, {"metadata": about, "spec": wanted})

    def annotate(self, name: str = "hello", namespace: str = "team", **annotations: str) -> None:
        """Set annotations of SlurmJobs, by their names without prefix; their generation stays."""
        found = self.kube.objects["slurmjobs", namespace, name]
        given = {labels.SLURMJOB_PREFIX + key: value for key, value in annotations.items()}
        about = {**found["metadata"], "annotations": {**(found["metadata"].get("annotations") or {}), **given}}
        self.kube.put(SLURMJOBS, {**found, "metadata": about})

    def delete(self, name: str = "hello", namespace: str = "team") -> None:
        found = self.kube.objects["slurmjobs", namespace, name]
        if not found["metadata"].get("finalizers"):
            self.kube.forget(SLURMJOBS, found)
            return
        about = {**found["metadata"], "deletionTimestamp": self.now().strftime("%Y-%m-%dT%H:%M:%SZ")}
        self.kube.put(SLURMJOBS, {**found, "metadata": about})

    def exists(self, name: str = "hello", namespace: str = "team") -> bool:
        return ("slurmjobs", namespace, name) in self.kube.objects

    def status(self, name: str = "hello", namespace: str = "team") -> Object:
        found: Object = self.kube.objects["slurmjobs", namespace, name].get("status") or {}
        return found

    def condition(self, kind: str, name: str = "hello", namespace: str = "team") -> tuple[str, str, str]:
        """Status, reason and message."""
        found = [one for one in self.status(name, namespace).get("conditions") or () if one["type"] == kind]
        return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")

    async def step(self, name: str = "hello", namespace: str = "team") -> Result:
        return await self.reconciler.reconcile((namespace, name))

    async def until(self, holds: Callable[[], Any]) -> None:
        """Run passes over all SlurmJobs until something holds; more passes than needed must do no harm."""
        while not holds():
            for _, namespace, name in [key for key in self.kube.objects if key[0] == "slurmjobs"]:
                await self.step(name, namespace)
            await asyncio.sleep(0.005)

    def count(self, name: str, **labels: str) -> float | None:
        """A sample of the operator's metrics about SlurmJobs, without its prefix."""
        return self.registry.get_sample_value(f"slurm_operator_{name}", labels)

    async def submitted(self, name: str = "hello") -> int:
        await self.until(lambda: self.status(name).get("jobId"))
        number: int = self.status(name)["jobId"]
        return number

    @asynccontextmanager
    async def working(
        self, workers: int = 4, lane: Callable[[Key], str | None] = lambda key: key[0] or None
    ) -> AsyncIterator[Controller[Key]]:
        """Let the operator's own loop run passes, woken by its triggers alone."""
        controller: Controller[Key] = Controller(
            "slurmjob",
            self.reconciler.reconcile,
            workers=workers,
            tell=self.reconciler.tell,
            lane=lane,
        )
        self.kube.handlers.clear()
        caches = {resource: Source(self.kube, resource) for resource in (SLURMJOBS, CLUSTERS, JOB_LOG_PODS)}
        connect(self.triggers.table(), controller.queue, caches, self.clients)
        for key in self.jobs.keys():  # noqa: SIM118 - no dictionary
            controller.queue.add(key)
        task = asyncio.create_task(controller.run())
        try:
            yield controller
        finally:
            await controller.stop(10)
            await task


async def until(holds: Callable[[], Any]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for belongs to others, who set no event
        await asyncio.sleep(0.005)
