"""A Cluster with NodeSets on an API server in memory, a Slurm that says what a test sets, and a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_client import CollectorRegistry
from typing_extensions import override

from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.autoscaling.controller import AutoscalingReconciler
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS, Resource
from slinky_operator.metrics.changes import Changes
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slurm_client.errors import SlurmError
from slurm_client.models import Job, Node, NodeState, Partition, PartitionState
from slurm_client.models.job import JobState
from tests.unit.token.worlds import CheckedKube

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
SPEC: dict[str, Any] = {
    "clusterName": "slurm",
    "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
    "autoscaling": {"maxReplicas": 4, "idleTime": "60s", "scaleDownDelay": "120s"},
}


class KubeWithGenerations(CheckedKube):
    """Counts changes of specs, as API servers do."""

    @override
    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        done = await super().merge_patch(resource, name, patch, namespace, **options)
        if "spec" in patch:
            done["metadata"]["generation"] = done["metadata"].get("generation", 1) + 1
            self.put(resource, done)
        return done


class FakeSlurm:
    """What a `ClusterClient` shows."""

    def __init__(self) -> None:
        self.contact = Contact(ContactState.READY, START, "")
        self.nodes_at: float | None = 0.0
        self.queue_at: float | None = None
        self.nodes: Mapping[str, Node] = {}
        self.jobs: Sequence[Job] = ()
        self.all_partitions: Sequence[Partition] = ()
        self.fails: SlurmError | None = None
        self.asked = 0

    @property
    def client(self) -> FakeSlurm:
        return self

    async def fresh_jobs(self) -> Sequence[Job]:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return self.jobs

    async def partitions(self) -> Sequence[Partition]:
        return self.all_partitions

    def get(self, uid: str) -> FakeSlurm | None:
        return self if uid == "cluster-uid" else None


class Events:
    """Keeps Events."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(("Normal", reason, message))

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(("Warning", reason, message))


class World:
    """Cluster `slurm` in `ns`; NodeSets each have a partition of their name."""

    def __init__(self) -> None:
        self.kube, self.events, self.slurm = KubeWithGenerations(), Events(), FakeSlurm()
        self.registry = CollectorRegistry()
        self.seconds = 1000.0
        self.wall = START
        clusters, nodesets = self.kube.cache(CLUSTERS), self.kube.cache(NODESETS, INDEXES_OF_NODESETS)
        self.reconciler = AutoscalingReconciler(
            self.kube,
            self.events,
            clusters,
            nodesets,
            self.slurm,
            Changes(self.registry),
            clock=lambda: self.seconds,
            now=lambda: self.wall,
        )
        self.kube.put(CLUSTERS, {"metadata": {"name": "slurm", "namespace": "ns", "uid": "cluster-uid"}, "spec": {}})

    def nodeset(self, name: str = "cpu", status: dict[str, Any] | None = None, **spec: Any) -> None:
        """Make a NodeSet."""
        metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "generation": 1}
        self.kube.put(NODESETS, {"metadata": metadata, "spec": {**SPEC, **spec}, "status": status or {}})
        self.slurm.all_partitions = (*self.slurm.all_partitions, partition(name, name))

    def change(self, name: str = "cpu", annotations: dict[str, str] | None = None, **spec: Any) -> None:
        """Change the spec, as a person would."""
        obj = self.kube.objects["nodesets", "ns", name]
        metadata = {**obj["metadata"], "generation": obj["metadata"]["generation"] + 1}
        metadata["annotations"] = {**metadata.get("annotations", {}), **(annotations or {})}
        self.kube.put(NODESETS, {**obj, "metadata": metadata, "spec": {**obj["spec"], **spec}})

    async def step(self, seconds: float = 0.0) -> float | None:
        """Let time pass, and run a pass; returns when the next one is due."""
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)
        return (await self.reconciler.reconcile(("ns", "slurm"))).requeue_after

    def replicas(self, name: str = "cpu") -> int | None:
        """The replicas in the spec."""
        found: int | None = self.kube.objects["nodesets", "ns", name]["spec"].get("replicas")
        return found

    def changed(self) -> tuple[float | None, float | None]:
        """Replicas that the metrics say were added, and taken away."""
        name = "slurm_operator_autoscaling_replicas_changed_total"
        return (
            self.registry.get_sample_value(name, {"direction": "up"}),
            self.registry.get_sample_value(name, {"direction": "down"}),
        )

    def status(self, name: str = "cpu") -> dict[str, Any]:
        """What autoscaling shows."""
        found: dict[str, Any] = self.kube.objects["nodesets", "ns", name].get("status", {}).get("autoscaling", {})
        return found

    def run(self, *nodes: Node) -> None:
        """The nodes that Slurm has."""
        self.slurm.nodes = {one.name: one for one in nodes}


def partition(name: str, node_sets: str) -> Partition:
    """A partition that is up."""
    return Partition(name=name, state=PartitionState("UP"), node_sets=node_sets)


def pending(number: int = 1, where: str = "cpu", **values: Any) -> Job:
    """A job that waits for nodes."""
    given = {"partition": where, "state": JobState("PENDING"), "state_reason": "Resources", "priority": 1, "cpus": 1}
    return Job(id=number, **{**given, **values})


def running(number: int, *nodes: str, **values: Any) -> Job:
    """A job that runs."""
    return Job(id=number, partition="cpu", state=JobState("RUNNING"), nodes=nodes, **values)


def node(name: str, *flags: str, base: str = "IDLE", **values: Any) -> Node:
    """A node of the NodeSet that its name begins with."""
    owner = name.rpartition("-")[0]
    given = {
        "state": NodeState(base, frozenset(flags)),
        "cpus": 4,
        "effective_cpus": 4,
        "real_memory_mib": 1024,
        "features": (owner,),
        "partitions": (owner,),
        "threads": 1,
        "weight": 1,
    }
    return Node(name=name, **{**given, **values})


def parsed(world: World, name: str = "cpu") -> NodeSet:
    """A NodeSet as it is now."""
    return NodeSet.parse(world.kube.objects["nodesets", "ns", name])
