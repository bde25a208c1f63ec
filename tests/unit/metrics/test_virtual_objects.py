"""Virtual Nodes are counted by what keeps pods off them, pods on them by phase."""

from __future__ import annotations

from typing import Any

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import VIRTUAL_NODES, VIRTUAL_PODS
from slinky_operator.metrics.names import MOST_OBJECTS
from slinky_operator.metrics.virtual_objects import families
from tests.unit.metrics.test_objects import registry_of, values


def node(name: str, cluster: str = "hpc/slurm/u", taint: str | None = None) -> Object:
    taints = [{"key": "virtual-kubelet.io/provider", "value": "wlm", "effect": "NoSchedule"}]
    if taint is not None:
        taints.append({"key": labels.TAINT_VIRTUAL_NODE_UNAVAILABLE, "value": taint, "effect": "NoSchedule"})
    about = {"name": name, "uid": name, "resourceVersion": "1"}
    return {
        "apiVersion": VIRTUAL_NODES.api_version,
        "kind": VIRTUAL_NODES.kind,
        "metadata": {**about, "annotations": {labels.ANNOTATION_VIRTUAL_NODE_CLUSTER: cluster}},
        "spec": {"taints": taints},
    }


def pod(name: str, **status: Any) -> Object:
    about = {"name": name, "namespace": "hpc", "uid": name, "resourceVersion": "1"}
    return {"apiVersion": VIRTUAL_PODS.api_version, "kind": VIRTUAL_PODS.kind, "metadata": about, "status": status}


def test_nodes_are_counted_by_cluster_and_by_what_keeps_pods_off() -> None:
    found = registry_of(
        node("a"),
        node("b"),
        node("c", taint="PartitionNotUp"),
        node("d", taint="of a tenant's making"),
        node("e", "site/other/u"),
    )
    assert values(found, "virtual_nodes", ("namespace", "cluster", "state")) == {
        ("hpc", "slurm", "Available"): 2.0,
        ("hpc", "slurm", "PartitionNotUp"): 1.0,
        ("hpc", "slurm", "Unknown"): 1.0,
        ("site", "other", "Available"): 1.0,
    }


def test_pods_are_counted_by_phase() -> None:
    found = registry_of(pod("a"), pod("b", phase="Running"), pod("c", phase="Running"), pod("d", phase="new"))
    assert values(found, "virtual_node_pods", ("phase",)) == {
        ("Pending",): 1.0,
        ("Running",): 2.0,
        ("Succeeded",): 0.0,
        ("Failed",): 0.0,
        ("Unknown",): 1.0,
    }


def test_a_process_that_does_not_lead_counts_none() -> None:
    assert values(registry_of(node("a"), pod("b"), leads=False), "virtual_node_pods", ("phase",)) == {}


def test_clusters_are_bounded() -> None:
    many = (node(f"n-{number}", f"hpc/c-{number}/u") for number in range(MOST_OBJECTS + 10))
    nodes, _ = families(many, None)
    assert len(nodes.samples) == MOST_OBJECTS
