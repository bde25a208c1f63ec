"""Clusters, a Slurm that says what a test sets, and the controller of virtual Nodes over an API server in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, VIRTUAL_NODES
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.slurm.jobs.job_facts import JobCounter, PartitionJobs
from slinky_operator.virtual_nodes.arrival import FIELD
from slinky_operator.virtual_nodes.nodes.controller import VirtualNodesReconciler
from slinky_operator.virtual_nodes.nodes.leases import NodeLeases
from slinky_operator.virtual_nodes.nodes.model.reachability import Way
from slinky_operator.virtual_nodes.nodes.observation import KubeletAddress, Observation
from slinky_operator.virtual_nodes.nodes.partition_poll import PartitionPoll
from slinky_operator.virtual_nodes.nodes.reachability_poll import ReachabilityPoll
from slinky_operator.virtual_nodes.nodes.triggers import VirtualNodesTriggers
from slurm_client.errors import Unreachable
from slurm_client.models import Job, JobState, Node, NodeState, Partition, PartitionState
from tests.support.memory_kube import MemoryKube

KEY = ("here", "slurm")
BEGIN = datetime(2026, 11, 27, 18, tzinfo=UTC)
WAY = Way("slurm-operator", "slurm-operator-1", "10.0.0.7", 10350, "mark")


def partition(name: str, state: str = "UP", **more: Any) -> Partition:
    return Partition(name=name, state=PartitionState(state), **more)


def slurm_node(name: str, *partitions: str, state: str = "IDLE", **more: Any) -> Node:
    about = {"cpus": 8, "real_memory_mib": 16_000, **more}
    return Node(name=name, state=NodeState(state), partitions=partitions, **about)


def job(number: int, partitions: str, reason: str = "", state: str = "PENDING") -> Job:
    return Job(id=number, partition=partitions, state=JobState.from_words((state,)), state_reason=reason)


def cluster(name: str = "slurm", created: str = "2026-01-01T00:00:00Z", **virtual_nodes: Any) -> Object:
    wanted = {"host": "site", **virtual_nodes}
    return {
        "metadata": {
            "name": name,
            "namespace": "here",
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": created,
        },
        "spec": {"jobs": {"virtualNodes": wanted}},
    }


class Slurm:
    """The Slurm of every Cluster."""

    def __init__(self) -> None:
        self.all: list[Partition] = [partition("debug"), partition("GPU")]
        self.nodes: Mapping[str, Node] = {
            one.name: one
            for one in (
                slurm_node("a", "debug"),
                slurm_node("b", "debug", "GPU", cpus=32, real_memory_mib=64_000, gres="gpu:a100:4,shard:8"),
            )
        }
        self.contact = Contact(ContactState.READY, BEGIN, "")
        self.nodes_at: float | None = 0.0
        self.asked = self.jobs_asked = 0
        self.hangs = self.jobs_hang = False
        self.jobs: list[Job] = []
        self.lists_all = True
        self.partition_jobs: PartitionJobs | None = None
        self.jobs_listed_at: float | None = None
        self.clock: Callable[[], float] = time.monotonic
        self.namespace, self.name = KEY

    @property
    def client(self) -> Slurm:
        return self

    def get(self, uid: str) -> Slurm | None:
        return self if uid == "uid-slurm" else None

    async def partitions(self) -> Sequence[Partition]:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.contact.state is not ContactState.READY:
            raise Unreachable("no answer")
        return list(self.all)

    async def shared_jobs(self) -> Sequence[Job]:
        self.jobs_asked += 1
        if self.jobs_hang:
            await asyncio.Event().wait()
        self.list_jobs()
        return self.jobs

    def list_jobs(self) -> None:
        """Count jobs, as a client does when anybody lists them."""
        counter = JobCounter()
        for job in self.jobs:
            counter.add(job)
        self.partition_jobs, self.jobs_listed_at = counter.partitions(whole=self.lists_all), self.clock()

    def away(self) -> None:
        self.contact = Contact(ContactState.UNREACHABLE, BEGIN, "slurmctld is away")

    def back(self) -> None:
        self.contact = Contact(ContactState.READY, BEGIN, "")


class Proxy:
    """The API server on its way to the operator's pod: what it comes back with."""

    def __init__(self) -> None:
        self.answer: Object | errors.KubeError = {FIELD: WAY.mark}
        self.asked: list[tuple[str, str, int, str]] = []

    async def ask_pod(self, namespace: str, pod: str, port: int, path: str, *, most: int) -> Object:
        assert most > 0
        self.asked.append((namespace, pod, port, path))
        await asyncio.sleep(0)
        if isinstance(self.answer, errors.KubeError):
            raise self.answer
        return self.answer


class World:
    """The controller, with a clock that tests set."""

    def __init__(self, *clusters: Object, allowed: Sequence[str] = ("*",)) -> None:
        self.kube, self.slurm, self.seconds = MemoryKube(), Slurm(), 0.0
        self.slurm.clock = self.clock
        self.told: list[str] = []
        self.renewed: list[float] = []
        store, nodes = self.kube.cache(CLUSTERS), self.kube.cache(VIRTUAL_NODES)
        for one in clusters:
            self.kube.put(CLUSTERS, one)
        self.poll = PartitionPoll(clock=self.clock)
        self.proxy, self.slept = Proxy(), list[float]()
        self.reachability = ReachabilityPoll(self.proxy, WAY, store, clock=self.clock, sleep=self.sleep)
        self.leases = NodeLeases(self.kube, nodes, now=self.now, renewed=self.renewed.append)
        self.reconciler = VirtualNodesReconciler(
            self.kube,
            self,
            ClusterReader(store),
            Observation(nodes, self.slurm, self.poll, KubeletAddress("10.0.0.7", 10350)),
            self.poll,
            self.reachability,
            self.leases,
            allowed,
            clock=self.clock,
            now=self.now,
        )
        self.triggers = VirtualNodesTriggers(store, self.slurm, self.poll, self.reachability).table()

    def clock(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(f"{obj['metadata']['name']} {reason}: {message}")

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.warning(obj, reason, message)

    async def step(self, key: Key = KEY, *, seconds: float = 0.0) -> Result:
        """A pass, in which Slurm is asked if it is time, and the pass that its answer brings."""
        self.seconds += seconds
        answered = asyncio.Event()
        self.poll.subscribe(lambda _: answered.set())
        before = self.slurm.asked
        task = asyncio.create_task(self.poll.run())
        try:
            result = await self.reconciler.reconcile(key)
            for _ in range(8):
                await asyncio.sleep(0)
            if self.slurm.asked > before and not self.slurm.hangs:
                await answered.wait()
                result = await self.reconciler.reconcile(key)
        finally:
            _ = task.cancel()
            await asyncio.wait({task})
        return result

    @property
    def nodes(self) -> dict[str, Object]:
        return {name: obj for (kind, _, name), obj in sorted(self.kube.objects.items()) if kind == "nodes"}

    def node(self, name: str) -> Object:
        return self.nodes[f"slurm-site-{name}"]

    def shown(self, name: str = "slurm") -> dict[str, Any]:
        found = self.kube.find(CLUSTERS, name, "here")
        assert found is not None
        shown: dict[str, Any] = (found.get("status") or {}).get("virtualNodes") or {}
        return shown

    @property
    def partitions(self) -> list[dict[str, Any]]:
        found = self.kube.find(CLUSTERS, "slurm", "here")
        assert found is not None
        return list((found.get("status") or {}).get("partitions") or ())

    async def edit(self, name: str = "slurm", **spec: Any) -> None:
        _ = await self.kube.merge_patch(CLUSTERS, name, {"spec": {"jobs": {"virtualNodes": spec}}}, "here")


def condition(obj: Object, kind: str) -> dict[str, Any]:
    (found,) = (one for one in obj["status"]["conditions"] if one["type"] == kind)
    return dict(found)


def taints(obj: Object) -> list[str]:
    return sorted(f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in obj["spec"]["taints"])
