"""An idle cluster, and helpers for tests of its changes."""

from __future__ import annotations

from typing import Any

from slinky_operator.cluster.actions import Write
from slinky_operator.cluster.plan import Plan
from slinky_operator.cluster.rollout.in_use.removals import JobUse
from tests.unit.cluster.world import World, cluster_object, subject

GONE = "2026-01-01T00:00:00Z"
PARTITION = {"partitions": [{"name": "night", "nodeSets": ["ALL"], "config": "MaxTime=60"}]}


def settled(spec: dict[str, Any] | None = None, *node_sets: dict[str, Any]) -> World:
    world = World(cluster_object(spec))
    world.add(*node_sets)
    world.settle()
    assert world.raw["status"]["isReady"] is True
    world.tried = []
    return world


def job(number: int, partition: str = "all", nodes: tuple[str, ...] = (), gres: tuple[str, ...] = ()) -> JobUse:
    return JobUse(number, frozenset(partition.split(",")), frozenset(nodes), frozenset(gres))


def config_maps(made: Plan) -> list[str]:
    return [one.child.name for one in made.actions if isinstance(one, Write) and one.child.resource.kind == "ConfigMap"]


def until(world: World, kind: type) -> Any:
    for _ in range(30):
        found = next((one for one in map(subject, world.plan().actions) if isinstance(one, kind)), None)
        if found is not None:
            return found
        world.step()
    raise AssertionError(f"no {kind.__name__}")
