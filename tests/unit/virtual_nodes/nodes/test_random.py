"""Random Nodes, answers and edits: what no plan may do, and that each settles."""

from __future__ import annotations

import random
from typing import Any

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import PODS, VIRTUAL_NODES
from slinky_operator.virtual_nodes.node_names import virtual_node
from tests.unit.virtual_nodes.nodes.worlds import World, cluster, condition, partition, slurm_node, taints

NO_CAPACITY: Object = {"status": {"capacity": None}}
NAMES = ("debug", "GPU", "gpu", "long_one", "x")


async def test_whatever_happens_no_node_with_a_pod_goes_no_foreign_one_changes_and_all_settles() -> None:
    for seed in range(60):
        rng = random.Random(seed)  # noqa: S311 - no secret
        world = World(cluster(allocatable=rng.choice(["Unlimited", "Partition"])))
        foreign = world.kube.put(VIRTUAL_NODES, {"metadata": {"name": "slurm-site-x"}, "spec": {}, "status": {}})
        for _ in range(25):
            await happen(world, rng)
            busy = {obj["spec"]["nodeName"] for (kind, _, _), obj in world.kube.objects.items() if kind == "pods"}
            before = busy & world.nodes.keys()
            _ = await world.step(seconds=rng.choice([0, 1, 15, 60]))
            assert before <= world.nodes.keys()
            assert world.nodes["slurm-site-x"] is foreign
        for obj in world.nodes.values():
            if virtual_node(obj) is not None:
                assert condition(obj, "Ready")["status"] == "True"
                assert "virtual-kubelet.io/provider=wlm:NoSchedule" in taints(obj)
        await settle(world)


async def happen(world: World, rng: random.Random) -> None:
    slurm = world.slurm
    ours = [name for name, obj in world.nodes.items() if virtual_node(obj) is not None]
    match rng.randrange(9):
        case 0:
            slurm.all = [
                partition(one, rng.choice(["UP", "UP", "DOWN"])) for one in rng.sample(NAMES, rng.randrange(5))
            ]
        case 1:
            names = [rng.sample(NAMES, rng.randrange(1, 4)) for _ in range(rng.randrange(6))]
            some = [slurm_node(f"n{number}", *of, cpus=rng.randrange(64)) for number, of in enumerate(names)]
            slurm.nodes = {one.name: one for one in some}
        case 2:
            slurm.away()
        case 3:
            slurm.back()
        case 4 if ours:
            _ = await world.kube.delete(VIRTUAL_NODES, rng.choice(ours))
        case 5 if ours:
            about: Any = {"name": f"p{rng.randrange(3)}", "namespace": "team"}
            world.kube.put(PODS, {"metadata": about, "spec": {"nodeName": rng.choice(ours)}})
        case 6:
            for kind, where, name in [key for key in world.kube.objects if key[0] == "pods"]:
                del world.kube.objects[kind, where, name]
        case 7 if ours:
            patches: list[Object] = [{"spec": {"taints": []}}, {"spec": {"unschedulable": True}}, NO_CAPACITY]
            patch = rng.choice(patches)
            _ = await world.kube.merge_patch(VIRTUAL_NODES, rng.choice(ours), patch)
        case _:
            await world.edit(partitions=rng.sample(NAMES, rng.randrange(3)))


async def settle(world: World) -> None:
    """After some passes without any event nothing is written any more."""
    for _ in range(6):
        _ = await world.step(seconds=60)
    before = {name: obj["metadata"]["resourceVersion"] for name, obj in world.nodes.items()}
    written = len(world.kube.statuses)
    _ = await world.step(seconds=60)
    assert {name: obj["metadata"]["resourceVersion"] for name, obj in world.nodes.items()} == before
    assert len(world.kube.statuses) == written
