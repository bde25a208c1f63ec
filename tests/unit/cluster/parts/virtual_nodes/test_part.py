"""What the controller of virtual Nodes has written becomes conditions of the Cluster, with an Event for each change."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.cluster.actions import EmitEvent
from tests.unit.cluster.rollout_stories import settled
from tests.unit.cluster.world import World

SPEC = {"jobs": {"virtualNodes": {"host": "site"}}}
CLOSED = {"reachable": False, "reason": "KubeletApiUnreachable", "message": "the API server does not reach it"}
OPEN = {"reachable": True, "reason": "AsExpected", "message": ""}


def written(world: World, kubelet_api: dict[str, Any]) -> list[tuple[str, str]]:
    """Let the other controller write, and return the reasons of Events and their kinds."""
    status = {"ready": True, "reason": "AsExpected", "message": "", "nodes": 1, "kubeletApi": kubelet_api}
    world.raw = {**world.raw, "status": {**world.raw["status"], "virtualNodes": status}}
    told = [one for one in world.settle() if isinstance(one, EmitEvent)]
    assert world.raw["status"]["virtualNodes"] == status
    return [(str(one.reason), str(one.type)) for one in told if "Kubelet" in one.reason]


def test_a_way_that_closes_is_told_once_and_degrades_until_it_opens() -> None:
    world = settled(SPEC)
    assert not [one for one in world.raw["status"]["conditions"] if one["type"] == "KubeletApiReachable"]
    assert written(world, OPEN) == [("KubeletApiReachable", "Normal")]
    assert world.condition("Degraded")["status"] == "False"
    assert written(world, CLOSED) == [("KubeletApiUnreachable", "Warning")]
    found = world.condition("KubeletApiReachable")
    assert (found["status"], found["reason"]) == ("False", "KubeletApiUnreachable")
    assert found["message"] == CLOSED["message"]
    assert world.condition("Degraded")["reason"] == "KubeletApiUnreachable"
    assert world.condition("Ready")["status"] == "True"
    assert written(world, {**CLOSED, "message": "for another reason"}) == []
    assert written(world, OPEN) == [("KubeletApiReachable", "Normal")]
    assert world.condition("Degraded")["status"] == "False"


@pytest.mark.parametrize("reason", ["Forbidden", "RequestRefused"])
def test_what_is_not_known_degrades_nothing(reason: str) -> None:
    world = settled(SPEC)
    _ = written(world, {"reason": reason, "message": "not known"})
    assert world.condition("KubeletApiReachable")["status"] == "Unknown"
    assert world.condition("Degraded")["status"] == "False"


def test_without_virtual_nodes_there_is_no_condition_of_them() -> None:
    world = settled(SPEC)
    _ = written(world, CLOSED)
    world.raw = {**world.raw, "spec": {}}
    _ = world.settle()
    kinds = {one["type"] for one in world.raw["status"]["conditions"]}
    assert not kinds & {"KubeletApiReachable", "VirtualNodesReady"}
