"""Labels by what Slurm shows of the slurmd pods on a Node, and what triggers a pass."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.events import LONGEST_MESSAGE
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODES, PODS
from slinky_operator.node_labels.config_format import MOST_LABELS
from slinky_operator.node_labels.controller import LEFT_OUT, LONGEST_REPORTED, MOST_REPORTED, NodeLabelsReconciler
from slinky_operator.node_labels.model import WantedLabels
from slinky_operator.node_labels.slurm_labels import slurm_labels
from slinky_operator.node_labels.slurm_nodes import SlurmNodes
from slinky_operator.node_labels.triggers import NodeLabelsTriggers
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_SLURMD_PODS
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slurm_client.models import Node
from slurm_client.watch import Event, NodeEvent
from tests.support.memory_kube import MemoryKube

HOST = ("", "worker-1")
COMPUTE = Node(
    name="compute-0", partitions=("debug", "all"), features=("compute", "avx"), gres="gpu:a100:4(S:0-1),shard:8"
)


class Slurm:
    """A Slurm that shows what a test sets."""

    namespace, name = "ns", "slurm"

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.nodes_at: float | None = 1.0
        self.state(ContactState.READY)

    def state(self, state: ContactState) -> None:
        self.contact = Contact(state, datetime(2026, 11, 23, tzinfo=UTC), "")


class Config:
    """A ConfigMap, and the Events on it."""

    def __init__(self) -> None:
        self.wanted: dict[str, WantedLabels] | None = {}
        self.told: list[tuple[str, str]] = []

    async def read(self) -> dict[str, WantedLabels] | None:
        return self.wanted

    def warn(self, reason: str, message: str) -> None:
        raise AssertionError(message)

    def mention(self, reason: str, message: str) -> None:
        self.told.append((reason, message))


class World:
    """One Node, pods on it, one Cluster."""

    def __init__(self, clusters: Collection[str] | None = None) -> None:
        self.kube, self.config, self.slurm = MemoryKube(), Config(), Slurm()
        self.clients = {"cluster-uid": self.slurm}
        nodes = self.kube.cache(NODES)
        self.pods = self.kube.cache(PODS, INDEXES_OF_SLURMD_PODS)
        records = SlurmNodes(self.pods, self.clients, clusters)
        self.reconciler = NodeLabelsReconciler(self.kube, self, nodes, self.config, records)
        self.triggers = NodeLabelsTriggers(nodes, lambda _: None, records).table()
        self.kube.put(NODES, {"metadata": {"name": "worker-1", "labels": {"zone": "z"}}})

    def warning(self, obj: Object, reason: str, message: str) -> None:
        raise AssertionError(message)

    def pod(
        self,
        name: str = "compute-0",
        *,
        host: str = "worker-1",
        phase: str = "Running",
        owner: Object | None = None,
        **spec: str,
    ) -> Object:
        own = {
            labels.LABEL_NODESET_UID: "nodeset-uid",
            labels.LABEL_CLUSTER_UID: "cluster-uid",
            labels.LABEL_CLUSTER_NAME: "slurm",
        }
        about: Object = {"name": name, "namespace": "ns", "uid": f"uid-of-{name}", "labels": own}
        about["ownerReferences"] = [owner or {"kind": "NodeSet", "uid": "nodeset-uid"}]
        body = {"metadata": about, "spec": {"nodeName": host, **spec}, "status": {"phase": phase}}
        return self.kube.put(PODS, body)

    async def step(self) -> dict[str, str]:
        """A pass; labels of the prefix after it."""
        _ = await self.reconciler.reconcile(HOST)
        own: dict[str, str] = self.kube.objects["nodes", "", "worker-1"]["metadata"]["labels"]
        assert own["zone"] == "z"
        prefix = labels.KUBERNETES_NODE_PREFIX
        return {key.removeprefix(prefix): value for key, value in own.items() if key.startswith(prefix)}


NAMED = {"workload-manager": "slurm", "node": "compute-0", "node.compute-0": "true"}
OF_COMPUTE = {
    **NAMED,
    "partition.all": "true",
    "partition.debug": "true",
    "feature.avx": "true",
    "feature.compute": "true",
    "gres.gpu": "4",
    "gres.gpu.a100": "4",
    "gres.shard": "8",
}


async def test_labels_follow_slurm_and_go_with_the_pod() -> None:
    world = World()
    world.pod()
    assert await world.step() == {}
    world.slurm.nodes["compute-0"] = COMPUTE
    assert await world.step() == OF_COMPUTE
    world.slurm.nodes["compute-0"] = Node(name="compute-0", partitions=("debug",))
    assert await world.step() == {**NAMED, "partition.debug": "true"}
    await world.kube.delete(PODS, "compute-0", "ns")
    assert await world.step() == {}


async def test_only_clusters_that_the_administrator_has_named_label_nodes() -> None:
    world = World({"ns/other", "else/slurm"})
    world.pod()
    world.slurm.nodes["compute-0"] = COMPUTE
    assert await world.step() == {}
    world = World({"ns/slurm"})
    world.pod()
    world.slurm.nodes["compute-0"] = COMPUTE
    assert await world.step() == OF_COMPUTE


async def test_a_pod_of_another_namespace_with_the_labels_of_a_cluster_does_not_count() -> None:
    world = World()
    forged = world.pod()
    await world.kube.delete(PODS, "compute-0", "ns")
    world.kube.put(PODS, {**forged, "metadata": {**forged["metadata"], "namespace": "strangers"}})
    world.slurm.nodes["compute-0"] = COMPUTE
    assert await world.step() == {}


async def test_pods_on_one_node_are_taken_together_under_their_host_names() -> None:
    world = World()
    for name in ("a", "b"):
        world.pod(name, hostname=f"node-{name}")
        world.slurm.nodes[f"node-{name}"] = Node(name=f"node-{name}", partitions=(name,), gres="gpu:a100:2")
    world.pod("elsewhere", host="worker-2")
    world.slurm.nodes["elsewhere"] = Node(name="elsewhere", partitions=("c",))
    world.pod("over", phase="Failed")
    world.slurm.nodes["over"] = Node(name="over", partitions=("d",))
    world.pod("stranger", owner={"kind": "Job", "uid": "job-uid"})
    world.slurm.nodes["stranger"] = Node(name="stranger", partitions=("e",))
    found = await world.step()
    assert found == {
        "workload-manager": "slurm",
        "node.node-a": "true",
        "node.node-b": "true",
        "partition.a": "true",
        "partition.b": "true",
        "gres.gpu": "4",
        "gres.gpu.a100": "4",
    }


async def test_the_config_map_wins() -> None:
    world = World()
    world.pod()
    world.slurm.nodes["compute-0"] = Node(name="compute-0", partitions=("debug",))
    world.config.wanted = {"worker-1": WantedLabels({"partition.debug": "mine", "rack": "r1"})}
    assert await world.step() == {**NAMED, "partition.debug": "mine", "rack": "r1"}


@pytest.mark.parametrize("away", ["no client", "no answer yet", "nodes not in the cache yet"])
async def test_nothing_is_removed_before_slurm_has_answered(away: str) -> None:
    world = World()
    world.pod()
    world.slurm.nodes["compute-0"] = COMPUTE
    assert await world.step() == OF_COMPUTE
    world.slurm.nodes = {}
    world.slurm.state(ContactState.UNREACHABLE)
    if away == "no client":
        world.clients.clear()
    elif away == "no answer yet":
        world.slurm.nodes_at = None
    assert await world.step() == OF_COMPUTE


async def test_what_slurm_showed_last_counts_while_it_is_away() -> None:
    world = World()
    world.pod()
    world.slurm.nodes["compute-0"] = COMPUTE
    world.slurm.state(ContactState.UNREACHABLE)
    assert await world.step() == OF_COMPUTE


async def test_a_config_map_that_is_invalid_removes_nothing_and_holds_up_no_label_of_slurm() -> None:
    world = World()
    world.pod()
    world.config.wanted = {"worker-1": WantedLabels({"rack": "r1"})}
    assert await world.step() == {"rack": "r1"}
    world.config.wanted = None
    world.slurm.nodes["compute-0"] = COMPUTE
    assert await world.step() == {"rack": "r1", **OF_COMPUTE}


async def test_what_is_no_label_is_left_out_and_mentioned_once() -> None:
    world = World()
    world.pod()
    long = "p" * 60
    world.slurm.nodes["compute-0"] = Node(name="compute-0", partitions=(long, "a"), features=("k8s/zone=a",))
    for _ in range(2):
        assert await world.step() == {**NAMED, "partition.a": "true"}
    ((reason, message),) = world.config.told
    assert reason == "NodeLabelsLeftOut"
    assert f"partition {long}" in message
    assert "feature k8s/zone=a" in message


async def test_what_is_reported_and_remembered_of_it_is_little() -> None:
    world = World()
    world.pod()
    world.slurm.nodes["compute-0"] = Node(name="compute-0", partitions=("p" * 2**20,), features=("f" * 2**20,))
    _ = await world.step()
    texts = tuple(f"k8s/{number:05}-{'x' * 200}" for number in range(5_000))
    world.slurm.nodes["compute-0"] = Node(name="compute-0", features=texts)
    _ = await world.step()
    for _, message in world.config.told:
        assert len(message) <= LONGEST_MESSAGE
        assert message.endswith(f": {LEFT_OUT}")
    assert world.config.told[0][1].startswith("no label is made for partition ppp")
    assert len(world.reconciler._left_out) == MOST_REPORTED
    assert max(map(len, world.reconciler._left_out)) <= LONGEST_REPORTED
    world.slurm.nodes["compute-0"] = Node(name="compute-0", features=("k8s/new",))
    _ = await world.step()
    assert len(world.config.told) == 2


def test_labels_of_one_node_have_a_limit() -> None:
    found = slurm_labels([Node(name="n", partitions=("p",), features=tuple(f"f{number:03}" for number in range(100)))])
    assert len(found.labels) == MOST_LABELS
    assert "partition.p" in found.labels
    assert len(found.left_out) == 100 + 4 - MOST_LABELS


# What triggers a pass


def event(old: Node | None, new: Node | None) -> NodeEvent:
    return Event("compute-0", old, new)


def test_a_node_of_slurm_triggers_its_kubernetes_node_only_if_labels_are_made_from_what_has_changed() -> None:
    world = World()
    world.pod()

    def woken(old: Node | None, new: Node | None) -> list[Any]:
        return list(world.triggers.node("cluster-uid", event(old, new)))

    assert woken(None, COMPUTE) == woken(COMPUTE, None) == [HOST]
    assert woken(COMPUTE, Node(name="compute-0", partitions=("all",))) == [HOST]
    drained = Node(
        name="compute-0", partitions=COMPUTE.partitions, features=COMPUTE.features, gres=COMPUTE.gres, reason="x"
    )
    assert woken(COMPUTE, drained) == []
    assert list(world.triggers.node("unknown", event(None, COMPUTE))) == []


def test_a_pod_triggers_the_node_that_it_has_come_to_or_left() -> None:
    world = World()
    pod, over, elsewhere = world.pod(), world.pod(phase="Failed"), world.pod(host="worker-2")
    handler = world.triggers.objects[PODS]
    assert set(handler(None, pod)) == set(handler(pod, None)) == set(handler(pod, over)) == {HOST}
    assert set(handler(pod, elsewhere)) == {HOST, ("", "worker-2")}
    assert list(handler(pod, {**pod, "status": {"phase": "Running", "podIP": "10.0.0.1"}})) == []
    assert list(handler(None, {**pod, "spec": {}})) == []


def test_contact_with_slurm_triggers_all_nodes_of_its_cluster() -> None:
    world = World()
    world.pod()
    world.pod("b", host="worker-2")
    assert set(world.triggers.contact("cluster-uid")) == {HOST, ("", "worker-2")}
    assert set(world.triggers.contact("other")) == set()
