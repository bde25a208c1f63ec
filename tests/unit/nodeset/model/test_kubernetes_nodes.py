"""The facts about a Kubernetes Node, and which of them trigger a pass."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from slinky_operator.nodeset.model import kubernetes_nodes
from slinky_operator.nodeset.model.kubernetes_nodes import Hosts, Taint
from slinky_operator.reconcile.cached.indexes import prune_node


def machine(*, heartbeat: str = "10:00", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "machine",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"zone": "here"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "managedFields": [{"manager": "kubelet"}],
        },
        "spec": {"podCIDR": "10.0.0.0/24", **spec},
        "status": {
            "images": [{"names": ["a" * 100]}],
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": heartbeat},
                {"type": "DiskPressure", "status": "True", "message": "the disk\nis  full", "reason": "Full"},
                {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting"},
            ],
        },
    }


def test_pruning_changes_nothing_that_is_read() -> None:
    whole = machine(unschedulable=True, taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    pruned = copy.deepcopy(whole)
    prune_node(pruned)

    assert kubernetes_nodes.read(pruned) == kubernetes_nodes.read(whole)
    assert kubernetes_nodes.read(whole).taints == (Taint("a", "b", "NoSchedule"),)
    assert "images" not in pruned["status"]
    assert "managedFields" not in pruned["metadata"]


def test_a_heartbeat_means_nothing_and_a_cordon_does() -> None:
    known = Hosts()

    assert known.observe(None, machine()) is not None
    assert known.observe(machine(), machine(heartbeat="10:05")) is None
    assert known.observe(machine(), machine(unschedulable=True)) is not None


def test_bad_conditions_matter_only_under_a_cordon() -> None:
    well, ill = machine(), machine()
    well["status"]["conditions"] = []
    ill["status"]["conditions"][1]["type"] = "PIDPressure"

    assert kubernetes_nodes.read(well) == kubernetes_nodes.read(ill)


def test_a_node_short_of_disk_is_another_one() -> None:
    short = machine()
    assert kubernetes_nodes.read(short).disk_pressure
    well = machine()
    well["status"]["conditions"][1]["status"] = "False"
    assert not kubernetes_nodes.read(well).disk_pressure
    known = Hosts()
    _ = known.observe(None, well)
    assert known.observe(well, short) is not None


def test_a_picture_that_was_given_does_not_change() -> None:
    known = Hosts()
    known.observe(None, machine())
    before = known.picture()
    known.observe(machine(), None)

    assert list(before) == ["machine"]
    assert not known.picture()


def test_a_deleted_node_is_told_of_as_it_was() -> None:
    known = Hosts()
    known.observe(None, machine())

    gone = known.observe(machine(), None)

    assert gone is not None
    assert gone.labels == {"zone": "here"}
    assert known.observe(machine(), None) is None


@pytest.mark.parametrize(
    ("annotations", "conditions", "why"),
    [
        ({"nodeset.slinky.slurm.net/node-cordon-reason": " new\nkernel "}, None, "new kernel"),
        ({"slinky.slurm.net/node-cordon-reason": "old name"}, None, "old name"),
        ({"nodeset.slinky.slurm.net/node-cordon-reason": "x" * 999}, None, "x" * 256),
        ({}, None, "DiskPressure: the disk is full"),
        ({}, [], ""),
        ({}, [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}], "not Ready: NodeStatusUnknown"),
        ({}, [{"type": "Ready", "status": "False"}, {"type": "Odd", "status": "True"}], "not Ready; Odd"),
    ],
)
def test_why_a_node_is_cordoned(annotations: dict[str, str], conditions: list[dict[str, str]] | None, why: str) -> None:
    node = machine(unschedulable=True)
    node["metadata"]["annotations"] = annotations
    if conditions is not None:
        node["status"]["conditions"] = conditions

    assert kubernetes_nodes.read(node).why_cordoned == why
