"""Passes over Nodes, and what triggers them, with an API server in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import NODES
from slinky_operator.node_labels.controller import NodeLabelsReconciler
from slinky_operator.node_labels.model import WantedLabels
from slinky_operator.node_labels.triggers import NodeLabelsTriggers
from slinky_operator.reconcile.cached.indexes import prune_node
from tests.support.memory_kube import MemoryKube

RACK = f"{labels.KUBERNETES_NODE_PREFIX}rack"
KEY = ("", "worker-1")


class Config:
    """A ConfigMap that says what a test sets."""

    def __init__(self) -> None:
        self.wanted: Mapping[str, WantedLabels] | None = {}
        self.told: list[tuple[str, str]] = []

    async def read(self) -> Mapping[str, WantedLabels] | None:
        return self.wanted

    def warn(self, reason: str, message: str) -> None:
        self.told.append((reason, message))

    def mention(self, reason: str, message: str) -> None:
        raise AssertionError(message)


class World:
    """One Node."""

    def __init__(self, **own: str) -> None:
        self.kube, self.config = MemoryKube(), Config()
        self.told: list[str] = []
        nodes = self.kube.cache(NODES)
        self.reconciler = NodeLabelsReconciler(self.kube, self, nodes, self.config)
        self.kube.put(NODES, {"metadata": {"name": "worker-1", "labels": own}})

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append(f"{obj['metadata']['name']} {reason}: {message}")

    async def step(self, **wanted: str) -> dict[str, str]:
        self.config.wanted = {"worker-1": WantedLabels(wanted)}
        _ = await self.reconciler.reconcile(KEY)
        return self.labels

    @property
    def labels(self) -> dict[str, str]:
        own: dict[str, str] = self.kube.objects["nodes", "", "worker-1"]["metadata"]["labels"]
        return own


async def test_a_label_comes_and_goes_with_the_config_map() -> None:
    world = World(zone="z")
    assert await world.step(rack="r1") == {"zone": "z", RACK: "r1"}
    world.config.wanted = None
    _ = await world.reconciler.reconcile(KEY)
    assert world.labels == {"zone": "z", RACK: "r1"}
    world.config.wanted = {"other": WantedLabels({"rack": "r2"})}
    _ = await world.reconciler.reconcile(KEY)
    assert world.labels == {"zone": "z"}
    assert world.told == []


async def test_a_label_of_somebody_else_is_reported_once() -> None:
    world = World(**{RACK: "theirs"})
    for _ in range(3):
        assert await world.step(rack="r1") == {RACK: "theirs"}
    (told,) = world.told
    assert told.startswith(f"worker-1 NodeLabelsKept: label {RACK}: set by someone else")


async def test_a_node_that_changed_meanwhile_is_looked_at_again() -> None:
    world = World()

    async def changed(*_: Any, **__: Any) -> Object:
        raise errors.Conflict(Target("patch", "nodes", None, "worker-1"), "changed", status=409)

    world.kube.merge_patch = changed  # type: ignore[method-assign]
    world.config.wanted = {"worker-1": WantedLabels({"rack": "r1"})}
    assert (await world.reconciler.reconcile(KEY)).requeue_after is not None


async def test_a_refusal_is_reported_on_the_config_map_and_no_condition_of_a_node_is_written() -> None:
    world = World()
    refused = errors.Forbidden(Target("patch", "nodes/status", None, "worker-1"), "no right", status=403)
    await world.reconciler.tell(KEY, refused)
    await world.reconciler.tell(KEY, errors.Unavailable(refused.target, "away"))
    ((reason, message),) = world.config.told
    assert reason == "RequestRefused"
    assert "worker-1" in message
    assert world.kube.statuses == []


async def test_passes_that_write_nothing_leave_the_event_loop_to_others() -> None:
    world = World()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(others())
    for _ in range(100):
        _ = await world.reconciler.reconcile(KEY)
    _ = task.cancel()
    assert turns >= 99


async def test_a_node_that_is_gone_needs_nothing() -> None:
    world = World()
    await world.kube.delete(NODES, "worker-1")
    assert (await world.reconciler.reconcile(KEY)).requeue_after is None


def test_heartbeats_trigger_nothing_and_labels_of_the_prefix_do() -> None:
    triggers = NodeLabelsTriggers(MemoryKube().cache(NODES), lambda _: None).table()

    def woken(old: Object, new: Object) -> list[tuple[str, str]]:
        return list(triggers.objects[NODES](old, new))

    def node(own: dict[str, str], capacity: dict[str, str], heartbeat: str = "1") -> Object:
        about = {"name": "worker-1", "uid": "u", "resourceVersion": heartbeat, "labels": own}
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}]
        obj: Object = {"metadata": about, "status": {"capacity": capacity, "conditions": conditions}}
        prune_node(obj)
        return obj

    gpu = f"{labels.KUBERNETES_NODE_PREFIX}gpu"
    before = node({RACK: "r1"}, {gpu: "4", "cpu": "8"})
    assert woken(before, node({RACK: "r1", "zone": "z"}, {gpu: "4", "cpu": "9"}, "2")) == []
    assert woken(before, node({}, {gpu: "4"}, "2")) == [KEY]
    assert woken(before, node({RACK: "r1"}, {gpu: "0"}, "2")) == [KEY]
