"""The chart slurm-node-life on a real API server: what the operator's account may do to Nodes, and what not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed
from hack.packaging.render import ROOT, render
from slinky_api import labels
from tests.support.control_plane import ControlPlane
from tests.support.job_logs import wait_for

OPERATOR = "--as=system:serviceaccount:slurm-operator:slurm-operator"
NODE, OTHER = "node-life-1", "node-life-2"
KEY = "example.com/reboot"
MARK = {labels.ANNOTATION_NODE_MACHINE: "ns/a Reboot boot 2026-01-01T00:00:00Z"}
VALUES = {"deleteNodes": True, "policy": {"create": True, "rebootAnnotation": KEY}}
CORDON: dict[str, Any] = {"metadata": {"annotations": MARK}, "spec": {"unschedulable": True}}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The rights and the policy, and two Nodes, one of them cordoned by somebody."""
    chart = render(ROOT / "helm" / "slurm-node-life", VALUES, release="slurm-node-life")
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "annotations": {"a": "b"}}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": OTHER}, "spec": {"unschedulable": True}},
    ]
    control_plane.kubectl.apply([*nodes, *chart])
    labelled = {"metadata": {"labels": {"x": "y"}}}
    # A policy counts once the API server has read it.
    wait_for(
        lambda: "may only cordon" in patched(control_plane, NODE, labelled, "--dry-run=server"),
        lambda: patched(control_plane, NODE, labelled, "--dry-run=server"),
    )
    yield control_plane
    items = {"apiVersion": "v1", "kind": "List", "items": chart}
    control_plane.kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=false", stdin=json.dumps(items))
    control_plane.kubectl("delete", "nodes", NODE, OTHER, "--ignore-not-found")


def patched(cluster: ControlPlane, name: str, patch: dict[str, Any], *flags: str) -> str:
    """Why the operator's account may not write this; empty if it may, and has."""
    try:
        cluster.kubectl("patch", "node", name, "--type=merge", f"--patch={json.dumps(patch)}", OPERATOR, *flags)
    except KubectlFailed as error:
        return error.stderr
    return ""


def annotated(**given: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": given}}


def test_it_may_write_its_cordon_with_its_mark_and_nothing_else(cluster: ControlPlane) -> None:
    assert "with its mark only" in patched(cluster, NODE, {"spec": {"unschedulable": True}})
    assert "its own annotations" in patched(cluster, NODE, annotated(a="c"))
    assert "its own annotations" in patched(cluster, NODE, annotated(a=None))
    taints = [{"key": "x", "effect": "NoExecute"}]
    assert "only cordon and uncordon" in patched(cluster, NODE, {"spec": {"taints": taints}})
    assert "only those that have it" in patched(cluster, OTHER, {"spec": {"unschedulable": None}})

    assert patched(cluster, NODE, CORDON) == ""
    assert patched(cluster, NODE, annotated(**{KEY: "now"})) == ""
    back = {"metadata": {"annotations": {labels.ANNOTATION_NODE_MACHINE: None, KEY: None}}}
    assert patched(cluster, NODE, {**back, "spec": {"unschedulable": None}}) == ""


def test_it_may_delete_only_what_it_has_cordoned(cluster: ControlPlane) -> None:
    with pytest.raises(KubectlFailed, match="only delete Nodes that it has cordoned"):
        cluster.kubectl("delete", "node", OTHER, OPERATOR, "--wait=false")
    assert patched(cluster, NODE, CORDON) == ""
    cluster.kubectl("delete", "node", NODE, OPERATOR, "--wait=false")
