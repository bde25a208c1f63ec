"""Clusters and Kubernetes Nodes, a Slurm that keeps external nodes, and the controller over an API server in memory."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from slinky_operator.bridge.caches import (
    INDEXES_OF_CLAIMS,
    INDEXES_OF_SLICES,
    keep_claim,
    keep_slice,
    pods_cache,
    prune_pod,
)
from slinky_operator.bridge.features import mark_of
from slinky_operator.bridge.nodes.controller import BridgeNodesReconciler
from slinky_operator.bridge.nodes.host_devices import HostDevices
from slinky_operator.bridge.nodes.model.hosts import host_of
from slinky_operator.bridge.nodes.observation import Observation
from slinky_operator.bridge.nodes.pod_requests import PodRequests
from slinky_operator.bridge.nodes.triggers import BridgeNodesTriggers
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    BRIDGE_PODS,
    CLUSTERS,
    NAMESPACES,
    NODES,
    NODESETS,
    PODS,
    RESOURCECLAIMS,
    RESOURCESLICES,
)
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS, prune_bridged_node
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slurm_client import errors
from slurm_client.models import Job, JobState, Node, NodeState, Partition, PartitionState, Reservation
from tests.support.memory_kube import MemoryKube

KEY = ("here", "slurm")
BEGIN = datetime(2026, 11, 28, 6, tzinfo=UTC)
MARK = mark_of("uid-here", "slurm")
CONF = {"GresTypes": "gpu", "SlurmctldPort": "6817", "PreemptMode": "OFF", "AccountingStorageEnforce": "associations"}
LABEL = {"slurm": "yes"}


def cluster(**bridge: Any) -> Object:
    return {
        "metadata": {"name": "slurm", "namespace": "here", "uid": "uid-slurm", "generation": 1},
        "spec": {"jobs": {"bridge": {"nodeLabels": LABEL, **bridge}}},
    }


def host(name: str, *, cpu: str = "8", memory: str = "32Gi", **more: Any) -> Object:
    """A Kubernetes Node."""
    ready = "True" if more.get("ready", True) else "False"
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {**LABEL, **more.get("labels", {})}},
        "spec": {"unschedulable": True} if more.get("cordoned") else {"taints": more.get("taints", [])},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, **more.get("devices", {})},
            "conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": more.get("beat", "")}],
        },
    }


def pod(name: str, node: str, cpu: str = "500m", **more: Any) -> Object:
    """A pod on a Node that Slurm has not placed."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "100Mi"}}}
    return {
        "metadata": {"name": name, "namespace": "team", **more},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


def job(number: int, *nodes: str) -> Job:
    return Job(id=number, state=JobState.from_words(("RUNNING",)), nodes=nodes)


def external(name: str, *features: str, flags: Sequence[str] = (), **more: Any) -> Node:
    """A node without a slurmd."""
    state = NodeState("IDLE", frozenset({"EXTERNAL", "DYNAMIC_NORM", *flags}))
    return Node(**{"name": name, "state": state, "features": features, **more})


class Slurm:
    """What a Slurm 26.05 does with external nodes, as measured."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.jobs: dict[int, Job] = {}
        self.contact = Contact(ContactState.READY, BEGIN, "")
        self.nodes_at: float | None = 0.0
        self.slurm_version = "26.05.5"
        self.loaded: dict[str, Any] = dict(CONF)
        self.all_partitions = [Partition(name="k8s", state=PartitionState("UP"), node_sets="bridge")]
        self.reserved: set[str] = set()
        """Nodes that slurmctld does not delete."""
        self.booked: list[Reservation] = []
        self.lines: list[str] = []
        self.deleted: list[str] = []
        self.wrong: list[str] = []
        """Orders that no controller may give."""
        self.room = 10_000
        self.asked = 0
        self.namespace, self.name = KEY

    @property
    def client(self) -> Slurm:
        return self

    def get(self, uid: str) -> Slurm | None:
        return self if uid == "uid-slurm" else None

    def _answer(self) -> None:
        self.asked += 1
        if self.contact.state is not ContactState.READY:
            raise errors.Unreachable("no answer")

    async def conf(self) -> Mapping[str, Any]:
        self._answer()
        return self.loaded

    async def partitions(self) -> Iterable[Partition]:
        self._answer()
        return self.all_partitions

    async def refresh(self, names: Iterable[str]) -> Mapping[str, Node | None]:
        self._answer()
        return {name: self.nodes.get(name) for name in names}

    async def fresh_jobs(self) -> Sequence[Job]:
        self._answer()
        return list(self.jobs.values())

    def hurry(self) -> None:
        """The list is always current."""

    async def reservations(self) -> Iterable[Reservation]:
        self._answer()
        return self.booked

    async def create_node(self, conf: str) -> None:
        self._answer()
        words = dict(one.split("=", 1) for one in shlex.split(conf))
        names = [words["NodeName"]]
        assert "," not in names[0], "slurmctld takes no two nodes in a line with addresses"
        if any(name in self.nodes for name in names):
            raise errors.Conflict("there is such a node")
        if len(self.nodes) + len(names) > self.room:
            raise errors.InvalidRequest("Unable to add node, node table is full")
        self.lines.append(conf)
        for name in names:
            self.nodes[name] = external(
                name,
                *words["Feature"].split(","),
                cpus=int(words["CPUs"]),
                real_memory_mib=int(words["RealMemory"]),
                gres=words.get("Gres", ""),
            )

    async def drain_nodes(self, names: tuple[str, ...], reason: str) -> None:
        self._answer()
        for name in names:
            if self.nodes[name].is_drain and not self.nodes[name].reason.startswith("slurm-operator: bridge: "):
                self.wrong.append(f"{name}: the drain of somebody else was written over")
            self.flag(name, "DRAIN", reason)

    async def undrain_nodes(self, names: tuple[str, ...]) -> None:
        self._answer()
        for name in names:
            self.unflag(name, "DRAIN")

    async def update_nodes(
        self, names: tuple[str, ...], *, features: tuple[str, ...], active_features: tuple[str, ...]
    ) -> None:
        self._answer()
        assert features == active_features
        for name in names:
            self.nodes[name] = replace(self.nodes[name], features=features)

    async def delete_nodes(self, names: tuple[str, ...], *, are_nodes: bool) -> None:
        self._answer()
        assert are_nodes
        busy = {name for one in self.jobs.values() for name in one.nodes}
        self.wrong += [f"{name}: to be deleted with a job" for name in names if name in busy]
        held = busy | self.reserved
        for name in names:
            if name not in held:
                del self.nodes[name]
                self.deleted.append(name)
        if not held.isdisjoint(names):
            raise errors.Conflict("Requested nodes are busy")

    # what users and administrators do

    def flag(self, name: str, flag: str, reason: str = "") -> None:
        node = self.nodes[name]
        state = NodeState(node.state.base, node.state.flags | {flag})
        self.nodes[name] = replace(node, state=state, reason=reason or node.reason)

    def unflag(self, name: str, flag: str) -> None:
        node = self.nodes[name]
        self.nodes[name] = replace(node, state=NodeState(node.state.base, node.state.flags - {flag}), reason="")

    def run(self, number: int, *names: str) -> None:
        self.jobs[number] = job(number, *names)
        for name in names:
            node = self.nodes[name]
            self.nodes[name] = replace(node, state=NodeState("MIXED", node.state.flags), alloc_cpus=1)

    def end(self, number: int) -> None:
        for name in self.jobs.pop(number).nodes:
            if name in self.nodes and all(name not in one.nodes for one in self.jobs.values()):
                node = self.nodes[name]
                self.nodes[name] = replace(node, state=NodeState("IDLE", node.state.flags), alloc_cpus=0)

    def away(self) -> None:
        self.contact = Contact(ContactState.UNREACHABLE, BEGIN, "slurmctld is away")

    def back(self) -> None:
        self.contact = Contact(ContactState.READY, BEGIN, "")


class World:
    """The controller, with a clock that tests set."""

    def __init__(
        self,
        *hosts: Object,
        about: Object | None = None,
        allowed: Sequence[str] = ("*",),
        reads_devices: bool = True,
    ) -> None:
        self.kube, self.slurm, self.seconds = MemoryKube(), Slurm(), 0.0
        self.told: list[str] = []
        clusters = self.kube.cache(CLUSTERS)
        nodesets = self.kube.cache(NODESETS, INDEXES_OF_NODESETS)
        nodes = self.kube.cache(NODES, prune=prune_bridged_node)
        self.kube.put(NAMESPACES, {"metadata": {"name": "here", "uid": "uid-here"}})
        self.kube.put(CLUSTERS, about or cluster())
        for one in hosts:
            self.kube.put(NODES, one)
        self._caches, self._allowed = (clusters, nodesets, nodes), allowed
        slices = self.kube.cache(RESOURCESLICES, INDEXES_OF_SLICES, keep_slice)
        claims = self.kube.cache(RESOURCECLAIMS, INDEXES_OF_CLAIMS, keep_claim)
        pods = self.kube.cache(BRIDGE_PODS, pods_cache({}).indexers, prune_pod)
        self._devices = HostDevices(slices, claims, pods) if reads_devices else None
        self.restart()
        self.watched = clusters, self.slurm, nodes, pods
        changed = (lambda _: None) if self._devices is None else self._devices.changed
        self.triggers = BridgeNodesTriggers(*self.watched, changed).table()

    def restart(self) -> None:
        """Another operator, which remembers nothing."""
        clusters, nodesets, nodes = self._caches
        self.requests = PodRequests(self.kube, self.clock)
        self.reconciler = BridgeNodesReconciler(
            self.kube,
            self,
            ClusterReader(clusters),
            nodesets,
            Observation(nodes, self.requests, self._devices),
            self.slurm,
            self._allowed,
            clock=self.clock,
            now=self.now,
        )

    def usable(self) -> set[str]:
        """Names of the Kubernetes Nodes that are to be nodes of Slurm."""
        found = self.kube.find(CLUSTERS, "slurm", "here")
        wanted = ((found or {}).get("spec") or {}).get("jobs", {}).get("bridge")
        if wanted is None:
            return set()
        return {
            str(obj["metadata"]["name"])
            for obj in self._caches[2]
            if LABEL.items() <= obj["metadata"]["labels"].items() and self._is_usable(obj)
        }

    def _is_usable(self, obj: Object) -> bool:
        """Whether a Kubernetes Node is in no trouble, or a node of Slurm already."""
        return not host_of(obj, (), ()).trouble or obj["metadata"]["name"] in self.slurm.nodes

    def clock(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.seconds)

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(f"{obj['metadata']['name']} {reason}: {message}")

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.warning(obj, reason, message)

    async def step(self, *, seconds: float = 0.0) -> Result:
        self.seconds += seconds
        return await self.reconciler.reconcile(KEY)

    async def settle(self, *, seconds: float = 20.0, times: int = 12) -> None:
        for _ in range(times):
            _ = await self.step(seconds=seconds)

    def put_host(self, name: str, **about: Any) -> None:
        self.kube.put(NODES, host(name, **about))

    async def lose_host(self, name: str) -> None:
        _ = await self.kube.delete(NODES, name, uid=None)

    def put_pod(self, name: str, node: str, cpu: str = "500m", **more: Any) -> None:
        self.kube.put(PODS, pod(name, node, cpu, **more))

    async def edit(self, bridge: Mapping[str, Any] | None) -> None:
        _ = await self.kube.merge_patch(
            CLUSTERS, "slurm", {"metadata": {"generation": 2}, "spec": {"jobs": {"bridge": bridge}}}, "here"
        )

    @property
    def shown(self) -> dict[str, Any]:
        found = self.kube.find(CLUSTERS, "slurm", "here")
        assert found is not None
        shown: dict[str, Any] = (found.get("status") or {}).get("bridge") or {}
        return shown
