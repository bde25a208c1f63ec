"""A Slurm that shows very much, or anything at all, makes few Nodes of normal size, and keeps no other Node away."""

from __future__ import annotations

import pytest

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, Resource
from slinky_operator.virtual_nodes.nodes.controller import PARTITIONS_EVERY_S
from slinky_operator.virtual_nodes.nodes.execute import SETTLED_S
from slinky_operator.virtual_nodes.nodes.model import naming
from slinky_operator.virtual_nodes.nodes.model.naming import MOST
from slinky_operator.virtual_nodes.nodes.model.partitions import MOST_GRES, facts
from tests.support.memory_kube import MemoryKube
from tests.unit.virtual_nodes.nodes.worlds import World, cluster, condition, partition, slurm_node

LIMIT = f"a Cluster has at most {MOST} virtual Nodes"


async def test_a_cluster_has_few_nodes_and_says_how_many_partitions_have_none() -> None:
    world = World(cluster())
    world.slurm.all = [partition(f"p{number:04}") for number in range(5_000)]
    _ = await world.step()
    assert list(world.nodes) == [f"slurm-site-p{number:04}" for number in range(MOST)]
    shown = world.shown()
    assert (shown["ready"], shown["reason"], shown["nodes"]) == (False, "TooManyPartitions", MOST)
    assert f"{5_000 - MOST} of 5000 partitions have no Node (p0128, " in shown["message"]
    assert LIMIT in shown["message"]
    before = dict(world.nodes)
    _ = await world.step(seconds=60)
    assert world.nodes == before


async def test_nodes_that_exist_come_first() -> None:
    world = World(cluster())
    old = [partition(f"old-{number:03}") for number in range(MOST)]
    world.slurm.all = [*old]
    _ = await world.step()
    assert world.shown()["ready"] is True
    world.slurm.all = [partition("a-new"), *old]
    _ = await world.step(seconds=60)
    assert "slurm-site-a-new" not in world.nodes
    assert f"1 of {MOST + 1} partitions have no Node (a-new)" in world.shown()["message"]
    world.slurm.all = [partition("a-new"), *old[1:]]
    for _ in range(3):
        _ = await world.step(seconds=60)
    assert "slurm-site-a-new" in world.nodes
    assert "slurm-site-old-000" not in world.nodes
    assert world.shown()["ready"] is True


async def test_names_that_change_make_no_nodes_without_end() -> None:
    world = World(cluster())
    for turn in range(4):
        world.slurm.all = [partition(f"t{turn}-{number:03}") for number in range(MOST)]
        _ = await world.step(seconds=60)
        for name in world.nodes:
            # Pods bind themselves to Nodes that are to go, which stay as long.
            pod = {"metadata": {"name": name, "namespace": "team"}, "spec": {"nodeName": name}}
            world.kube.put(PODS, pod)
        _ = await world.step(seconds=SETTLED_S)
        assert len(world.nodes) == MOST


async def test_nodes_beyond_the_limit_go_when_no_pod_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(cluster())
    monkeypatch.setattr(naming, "MOST", MOST + 1)
    world.slurm.all = [partition(f"p{number:03}") for number in range(MOST + 1)]
    _ = await world.step()
    assert len(world.nodes) == MOST + 1
    monkeypatch.undo()
    world.kube.put(PODS, {"metadata": {"name": "p", "namespace": "team"}, "spec": {"nodeName": "slurm-site-p128"}})
    for _ in range(3):
        _ = await world.step(seconds=SETTLED_S)
    assert world.node("p128")["spec"]["unschedulable"] is True
    assert condition(world.node("p128"), "PartitionUp")["message"] == LIMIT
    _ = await world.kube.delete(PODS, "p", "team")
    _ = await world.step(seconds=SETTLED_S)
    assert list(world.nodes) == [f"slurm-site-p{number:03}" for number in range(MOST)]


async def test_a_state_that_slurm_does_not_have_is_unknown() -> None:
    world = World(cluster())
    world.slurm.all = [partition("debug", "X" * 1_000), partition("GPU", "")]
    _ = await world.step()
    _ = await world.step(seconds=PARTITIONS_EVERY_S)
    assert [one["state"] for one in world.partitions] == ["UNKNOWN", "UNKNOWN"]
    for obj in world.nodes.values():
        shown = condition(obj, "PartitionUp")
        told = shown["status"], shown["reason"], shown["message"]
        assert told == ("False", "PartitionUnknown", "the partition is UNKNOWN")


async def test_a_node_offers_few_gres_whose_names_resources_can_have() -> None:
    world = World(cluster(allocatable="Partition"))
    world.slurm.nodes = {
        f"n{at}": slurm_node(f"n{at}", "debug", gres=",".join(f"g{at:02}x{number}:1" for number in range(1_000)))
        for at in range(20)
    }
    _ = await world.step()
    status = world.node("debug")["status"]
    assert len(status["capacity"]) == len(status["allocatable"]) == 3 + MOST_GRES


def test_a_gres_with_another_name_is_left_out_beside_usual_ones() -> None:
    longest = "a" * (63 - len("gres-"))
    texts = f"gpu:a100:4,shard:8,a_b:1,_a_:1,a/b:1,é:1,{longest}:1,{longest}a:1,{'b' * 5_000}:1"
    found = facts([partition("debug")], [slurm_node("a", "debug", gres=texts)])["debug"].gres
    assert found == {"gpu": 4, "shard": 8, "a_b": 1, longest: 1}


REFUSALS = {
    "invalid": (422, "Invalid", "status.capacity: too many"),
    "too large": (413, "RequestEntityTooLarge", "limit is 3145728"),
    "too large for etcd": (500, "", "etcdserver: request is too large"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_node_that_is_refused_keeps_no_other_away(refusal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(cluster())
    status, reason, message = REFUSALS[refusal]
    refuse(world, monkeypatch, "slurm-site-debug", {"code": status, "reason": reason, "message": message})
    _ = await world.step()
    assert list(world.nodes) == ["slurm-site-gpu"]
    shown = world.shown()
    assert (shown["ready"], shown["reason"], shown["nodes"]) == (False, "RequestRefused", 1)
    assert f"slurm-site-debug: {message}" in shown["message"]


async def test_an_api_server_that_is_away_ends_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(cluster())
    refuse(world, monkeypatch, "slurm-site-debug", {"code": 503, "message": "try later"})
    with pytest.raises(errors.Unavailable):
        _ = await world.step()


def refuse(world: World, monkeypatch: pytest.MonkeyPatch, node: str, answer: Object) -> None:
    """Let the API server refuse to make a Node."""
    real = MemoryKube.create

    async def create(resource: Resource, body: Object, namespace: str | None = None) -> Object:
        if body["metadata"]["name"] == node:
            raise errors.from_status(errors.Target("create", str(resource), namespace, node), answer)
        return await real(world.kube, resource, body, namespace)

    monkeypatch.setattr(world.kube, "create", create)
