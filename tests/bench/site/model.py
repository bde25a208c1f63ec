"""A site in memory: a Slurm with a flow of jobs, an API server, and machines; around the operator's own controllers.

Slurm is the fake without a network: an answer takes the time that a slurmrestd takes for its bytes. Jobs come at random
times, each for one node, and run so long that four nodes in five are busy; some are SlurmJobs. What the model itself
uses of the CPU is counted apart from what the operator uses. Encoding and TLS of requests are not in it, nor kopf;
tests/bench/whole has them.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import httpx
from typing_extensions import override

from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONTROLLERREVISIONS,
    NODESETS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    Resource,
)
from slinky_operator.nodeset.controller import NodeSetReconciler
from slinky_operator.nodeset.observation import indexes
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.reconcile.cached.kept_fields import prune_pod
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.triggers import connect, observe
from slinky_operator.runtime.controller import Controller
from slinky_operator.slurm.connection.clients import ClientMap
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.answers.calls import Call
from tests.bench.site.virtual_time import Clock
from tests.support.no_log_servers import unasked
from tests.support.passes import SilentRecorder
from tests.support.slurm_jobs import JobWorld, Kube, Source

BYTES_A_SECOND = 20e6
"""What slurmrestd writes: a list of 6 MB took 0.3 s (docs/development/performance-parts.md)."""
ANSWER = 0.005
"""Seconds of any answer besides."""
BUSY = 0.8
"""Part of the nodes that run a job."""
DAY = 86_400
MIN_JOB_AGE = 300
SLURMJOBS_IN = 10
"""One job in so many is a SlurmJob."""
STARTS = 1.0
"""Seconds from a pod's creation until its slurmd registers."""
KEY = b"k" * 32


@dataclass(slots=True)
class Meter:
    """What has been counted since `begin`."""

    outside: float = 0.0
    """CPU seconds of the model itself."""
    calls: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    slurm: float = 0.0
    """Seconds that slurmrestd was answering."""
    api: Counter[str] = field(default_factory=Counter)
    api_bytes: int = 0
    passes: Counter[str] = field(default_factory=Counter)
    _began: float = 0.0
    _cpu: float = 0.0

    def begin(self) -> None:
        """Count from now on."""
        self.outside = self.slurm = 0.0
        self.api_bytes = 0
        for counter in (self.calls, self.bytes, self.api, self.passes):
            counter.clear()
        self._began, self._cpu = Clock.passed, time.thread_time()

    def read(self) -> dict[str, Any]:
        """Everything, of one second of the model."""
        seconds = Clock.passed - self._began
        cpu = time.thread_time() - self._cpu - self.outside
        return {
            "seconds": seconds,
            "cpu": cpu / seconds,
            "slurm": self.slurm / seconds,
            "calls": self.calls.total() / seconds,
            "bytes": self.bytes.total() / seconds,
            "api": self.api.total() / seconds,
            "api_bytes": self.api_bytes / seconds,
            "passes": self.passes.total() / seconds,
            **{
                f"{name}_by_kind": {key: count / seconds for key, count in counter.items()}
                for name, counter in (
                    ("calls", self.calls),
                    ("bytes", self.bytes),
                    ("api", self.api),
                    ("passes", self.passes),
                )
            },
        }

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is done in it is the model's, not the operator's."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.outside += time.thread_time() - began


class Direct(httpx.AsyncBaseTransport):
    """From the client to the fake, without a network."""

    def __init__(self, fake: FakeSlurmrestd, meter: Meter) -> None:
        self._fake, self._meter = fake, meter

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        with self._meter.apart():
            version, operation, parameters = self._fake._route(request.method, request.url.path)
            body = json.loads(request.content) if request.content else None
            call = Call(version, operation, parameters, dict(request.url.params), body, "")
            asked: Any = SimpleNamespace(headers=request.headers)
            status, content, kind = await self._fake._answer(call, asked)
            response = httpx.Response(status, content=content, headers={"content-type": kind}, request=request)
        seconds = ANSWER + len(content) / BYTES_A_SECOND
        self._meter.calls["get_nodes, unchanged" if (status, operation) == (304, "get_nodes") else operation] += 1
        self._meter.bytes[operation] += len(content)
        self._meter.slurm += seconds
        await asyncio.sleep(seconds)
        return response


class Api(Kube):
    """The API server, which counts."""

    def __init__(self) -> None:
        super().__init__()
        self.meter = Meter()

    @override
    def put(self, resource: Resource, obj: Object) -> Object:
        stored = super().put(resource, obj)
        self.meter.api_bytes += len(json.dumps(stored))
        return stored

    def _count(self, verb: str, resource: Resource, body: Object | None = None) -> None:
        self.meter.api[f"{verb} {resource.plural}"] += 1
        self.meter.api_bytes += len(json.dumps(body)) if body else 0

    @override
    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        with self.meter.apart():
            return await super().get(resource, name, namespace)

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        with self.meter.apart():
            self._count("create", resource, body)
            return await super().create(resource, body, namespace)

    @override
    async def apply(self, resource: Resource, body: Object, **options: Any) -> Object:
        with self.meter.apart():
            self._count("apply", resource, body)
            about = body["metadata"]
            known = self.find(resource, about["name"], about.get("namespace")) or {}
            return await super().apply(resource, _with_conditions(known, body), **options)

    @override
    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        with self.meter.apart():
            self._count("patch", resource, patch)
            return await super().merge_patch(resource, name, patch, namespace, **options)

    @override
    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        with self.meter.apart():
            self._count("patch status of", resource, status)
            return await super().patch_status(resource, name, status, namespace, **options)

    @override
    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Object:
        with self.meter.apart():
            self._count("delete", resource)
            return await super().delete(resource, name, namespace, **options)


def _with_conditions(known: Object, body: Object) -> Object:
    """What is applied, with the conditions that others have written: these are a map by type, no list."""
    status = body.get("status") or {}
    if "conditions" not in status:
        return body
    theirs = (known.get("status") or {}).get("conditions") or ()
    merged = {one["type"]: one for one in (*theirs, *status["conditions"])}
    return {**body, "status": {**status, "conditions": list(merged.values())}}


class Site(JobWorld):
    """Cluster `slurm` with so many nodes in so many NodeSets, and a flow of so many jobs a day."""

    KUBE = Api

    def __init__(self, nodes: int, nodesets: int, jobs: int, *, slurmjobs: bool = True) -> None:
        self.slurm = FakeSlurmrestd(pretty=True, clock=Clock.time)
        super().__init__("http://slurm.invalid", KEY, "alice", poll_interval=1.0)
        self.meter = cast("Api", self.kube).meter
        self.nodes = nodes
        self.names = [f"a{number}" for number in range(nodesets)]
        self.flow = Flow(self, jobs, slurmjobs=slurmjobs)
        self.pods = self.kube.cache(PODS, indexes.INDEXES_OF_PODS, prune_pod)
        self.revisions = self.kube.cache(CONTROLLERREVISIONS, indexes.INDEXES_OF_REVISIONS)
        self.claims = self.kube.cache(PERSISTENTVOLUMECLAIMS, indexes.INDEXES_OF_CLAIMS)
        self.slurm.conf["MaxNodeCount"] = 65_000
        self.slurm.world.schedule = lambda: None  # type: ignore[method-assign]

    @override
    def now(self) -> datetime:
        return datetime.fromtimestamp(Clock.time(), UTC)

    @override
    def cluster(self, **spec: Any) -> None:
        elsewhere = {
            "server": "http://slurm.invalid",
            "token": {"secretRef": {"name": "token", "key": "auth-token"}},
            "auth": {"slurmKeyRef": {"name": "key", "key": "slurm.key"}},
            "controller": {"external": {"host": "slurmctld"}},
        }
        super().cluster(**elsewhere, **spec)
        found = self.kube.objects["clusters", "ns", "slurm"]
        names = [f"a{number}" for number in range(100)]
        config = {"hash": "1", "appliedHash": "1", "nodeSets": names}
        self.kube.put(CLUSTERS, {**found, "status": {"isReady": True, "config": config}})

    def scale(self, name: str, replicas: int) -> None:
        """Write the spec of a NodeSet, as a user does."""
        old = self.kube.find(NODESETS, name, "ns") or {"metadata": {"name": name, "namespace": "ns", "generation": 0}}
        about = {**old["metadata"], "generation": old["metadata"]["generation"] + 1}
        spec = {"clusterName": "slurm", "replicas": replicas, "image": "slurmd:1"}
        self.kube.put(NODESETS, {**old, "metadata": about, "spec": spec})

    @override
    def client_map(self) -> ClientMap:
        return ClientMap(OpenFence(), transport=lambda _: Direct(self.slurm, self.meter))

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[None]:
        """Run the controllers of SlurmJobs and NodeSets, woken by their triggers."""
        await self.start()
        self._count(self.reconciler, "slurmjob")
        reconciler = NodeSetReconciler(
            cast("Any", self.kube),
            nodesets=self.nodesets,
            clusters=ClusterReader(self.clusters),
            pods=self.pods,
            revisions=self.revisions,
            claims=self.claims,
            watch_hosts=False,
            slurm=self.clients,
            recorder=SilentRecorder(),
            defaults=Defaults(image="slurmd"),
            ask_volumes=unasked,
            now=self.now,
            clock=time.monotonic,
        )
        self._count(reconciler, "nodeset")
        async with self.working(8):
            controller: Controller[Key] = Controller("nodeset", reconciler.reconcile, workers=8, tell=reconciler.tell)
            kinds = (NODESETS, CLUSTERS, PODS, CONTROLLERREVISIONS, PERSISTENTVOLUMECLAIMS)
            caches = {kind: Source(self.kube, kind) for kind in kinds}
            triggers = reconciler.triggers.table(reconciler.expectations.observe)
            observe(triggers, caches)
            connect(triggers, controller.queue, caches, self.clients)
            self.kube.handlers.setdefault("pods", []).append(self._machine)
            task = asyncio.create_task(controller.run())
            flow = asyncio.create_task(self.flow.run())
            try:
                yield
            finally:
                flow.cancel()
                await controller.stop(10)
                await task
        await self.clients.close_all()

    def _count(self, reconciler: Any, name: str) -> None:
        reconcile = reconciler.reconcile

        async def counted(key: Key) -> Any:
            self.meter.passes[name] += 1
            return await reconcile(key)

        reconciler.reconcile = counted

    def _machine(self, old: Object | None, new: Object | None) -> None:
        if old is None and new is not None:
            asyncio.get_running_loop().call_later(STARTS, self._register, new["metadata"]["name"])
        elif old is not None and new is None:
            # The record stays until somebody deletes it, as in Slurm; the node does not answer any more.
            name = old["metadata"]["name"]
            if name in self.slurm.nodes:
                _ = self.slurm.world.set_flags(name, add=["NOT_RESPONDING"])

    def _register(self, name: str) -> None:
        with self.meter.apart():
            pod = self.kube.find(PODS, name, "ns")
            if pod is None:
                return
            now = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            started = {"running": {"startedAt": now}}
            container = {"name": "slurmd", "image": "slurmd", "imageID": "", "ready": True, "restartCount": 0}
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            status = {
                "phase": "Running",
                "conditions": [ready, *((pod.get("status") or {}).get("conditions") or ())],
                "containerStatuses": [{**container, "state": started}],
            }
            arguments = pod["spec"]["containers"][0]["args"]
            extra = arguments[arguments.index("--extra") + 1]
            host = pod["spec"].get("hostname") or name
            _ = self.slurm.add_node(host, instance_id=pod["metadata"]["uid"], extra=extra)
        self.kube.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "machine"}, "status": status})

    def ready(self) -> int:
        """Pods that the NodeSets say are ready."""
        found = (self.kube.find(NODESETS, name, "ns") or {} for name in self.names)
        return sum((one.get("status") or {}).get("readyReplicas", 0) for one in found)

    def told(self) -> str:
        """Why the site is not as it should be."""
        found = [self.kube.find(NODESETS, name, "ns") for name in self.names]
        return f"{found}, {len(self.pods)} pods, {len(self.slurm.nodes)} nodes, {self.meter.read()}"


class Flow:
    """Jobs that come, run and are forgotten; those of a day evenly."""

    def __init__(self, site: Site, jobs: int, *, slurmjobs: bool) -> None:
        self._site, self.rate = site, jobs / DAY
        self.length = BUSY * site.nodes / self.rate if jobs else 0.0
        self._slurmjobs = slurmjobs
        self._luck = random.Random(1)  # noqa: S311 - to be repeated
        self._free: list[str] = []
        self._ends: list[tuple[float, int]] = []
        self._forgotten: deque[tuple[float, int]] = deque()
        self._waiting: deque[int] = deque()
        self._count = 0
        self.flows = False

    def begin(self) -> list[str]:
        """Start with as many jobs as there are at any time, and let them flow; names the SlurmJobs that come first."""
        world = self._site.slurm.world
        self._free = sorted(world.nodes)
        self._luck.shuffle(self._free)
        count = int(self.length * self.rate)
        with world.many_jobs():
            for _ in range(count - (count // SLURMJOBS_IN if self._slurmjobs else 0)):
                self._start(world.add_job(state="PENDING").id, self._luck.random() * self.length)
        self.flows = True
        return [f"first-{number}" for number in range(count // SLURMJOBS_IN if self._slurmjobs else 0)]

    async def run(self) -> None:
        """Once a second, until cancelled."""
        while True:
            await asyncio.sleep(1.0)
            if self.flows:
                with self._site.meter.apart():
                    new = self._second()
                for name in new:
                    self._site.job(name)

    def _second(self) -> list[str]:
        world, now = self._site.slurm.world, Clock.passed
        while self._forgotten and self._forgotten[0][0] <= now:
            world.forget_job(self._forgotten.popleft()[1])
        while self._ends and self._ends[0][0] <= now:
            _, job = heapq.heappop(self._ends)
            self._free.append(world.jobs[job].nodes[0])
            _ = world.finish_job(job)
            self._forgotten.append((now + MIN_JOB_AGE, job))
        # What the operator has submitted waits for its first second.
        self._waiting.extend(self._new_of_the_operator())
        new = []
        for _ in range(self._arrivals()):
            self._count += 1
            if self._slurmjobs and self._count % SLURMJOBS_IN == 0:
                new.append(f"job-{self._count}")
            else:
                self._waiting.append(world.add_job(state="PENDING", user="bob").id)
        while self._waiting and self._free:
            self._start(self._waiting.popleft(), self._luck.expovariate(1 / self.length))
        return new

    def _new_of_the_operator(self) -> list[int]:
        world, found = self._site.slurm.world, []
        for number in range(self._seen + 1, world._highest_job_id + 1):
            job = world.jobs.get(number)
            if job is not None and job.extra and str(job.state.base) == "PENDING":
                found.append(number)
        self._seen = world._highest_job_id
        return found

    _seen = 0

    def _start(self, number: int, seconds: float) -> None:
        world, node = self._site.slurm.world, self._free.pop()
        values = {"nodes": (node,), "node_list": node, "start_time": world.now, "batch_host": node}
        _ = world.set_job_state(number, "RUNNING", state_reason="None", **values)
        heapq.heappush(self._ends, (Clock.passed + max(1.0, seconds), number))

    def _arrivals(self) -> int:
        count, at = 0, self._luck.expovariate(self.rate)
        while at < 1.0:
            count += 1
            at += self._luck.expovariate(self.rate)
        return count
