"""Which events bring a pass: changes that matter, and no heartbeat, no job, no Node that nobody chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODES, NODESETS
from slinky_operator.reconcile.cached.indexes import node_pruner
from slurm_client.models import Node, NodeState
from slurm_client.watch.events import Event
from tests.unit.bridge.nodes.worlds import KEY, MARK, World, cluster, external, host

NODE = external("kn-1", "bridge", MARK, cpus=8)


def keys(old: Object | None, new: Object | None) -> list[Any]:
    return list(World().triggers.objects[NODES](old, new))


@pytest.mark.parametrize(
    ("changed", "brings"),
    [
        ({"beat": "2026-11-28T06:00:00Z"}, False),
        ({"cordoned": True}, True),
        ({"ready": False}, True),
        ({"cpu": "16"}, True),
        ({"labels": {"zone": "eu-1"}}, True),
        ({"labels": {"slurm": "no"}}, True),
    ],
)
def test_of_a_chosen_node_all_counts_but_heartbeats(changed: dict[str, Any], brings: bool) -> None:
    assert (keys(host("kn-1"), host("kn-1", **changed)) == [KEY]) is brings


def test_nodes_that_come_and_go_count_and_others_never() -> None:
    assert keys(None, host("kn-1")) == keys(host("kn-1"), None) == [KEY]
    assert keys(None, host("kn-1", labels={"slurm": "no"})) == []


@pytest.mark.parametrize(
    ("old", "new", "brings"),
    [
        (NODE, replace(NODE, state=NodeState("MIXED", NODE.state.flags), alloc_cpus=1), False),
        (NODE, replace(NODE, state=NodeState("IDLE", NODE.state.flags | {"DRAIN"}), reason="x"), True),
        (NODE, replace(NODE, state=NodeState("IDLE", NODE.state.flags | {"NOT_RESPONDING"})), True),
        (NODE, replace(NODE, features=("bridge",)), True),
        (NODE, None, True),
        (None, NODE, True),
        (None, Node(name="w-0", state=NodeState("IDLE")), False),
    ],
)
def test_of_slurms_nodes_those_of_a_bridge_count_and_jobs_do_not(
    old: Node | None, new: Node | None, brings: bool
) -> None:
    event = Event("kn-1", old, new)
    assert (list(World().triggers.node("uid-slurm", event)) == [KEY]) is brings


def test_clusters_count_that_want_a_bridge_or_had_one() -> None:
    handler = World().triggers.objects[CLUSTERS]
    without: Object = {"metadata": {"name": "slurm", "namespace": "here", "uid": "u", "generation": 2}, "spec": {}}
    had = {**without, "status": {"bridge": {"nodes": 1}}}
    assert list(handler(None, cluster())) == list(handler(cluster(), without)) == list(handler(None, had)) == [KEY]
    assert list(handler(None, without)) == []
    assert list(handler(cluster(), {**cluster(), "status": {"bridge": {"nodes": 1}}})) == []


def test_nodesets_count_when_they_come_and_go() -> None:
    handler = World().triggers.objects[NODESETS]
    one = {"metadata": {"name": "bridge", "namespace": "here"}, "spec": {"clusterName": "slurm"}}
    assert list(handler(None, one)) == list(handler(one, None)) == [KEY]
    assert list(handler(one, one)) == []


def test_what_a_bridge_reads_of_nodes_is_kept_where_there_may_be_one() -> None:
    obj = host("kn-1", devices={"nvidia.com/gpu": "2", "ephemeral-storage": "1Ti"})
    obj["metadata"]["deletionTimestamp"] = "2026-11-28T06:00:00Z"
    plain: Object = {**obj, "metadata": dict(obj["metadata"])}
    node_pruner(bridged=True)(obj)
    assert obj["status"]["allocatable"] == {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"}
    assert obj["metadata"]["deletionTimestamp"]
    node_pruner(bridged=False)(plain)
    assert "allocatable" not in plain["status"]
