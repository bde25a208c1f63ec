"""What the operator's account may do to Nodes and requests to drain, and what not, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed
from hack.packaging.render import ROOT, render
from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import DRAIN_REQUESTS
from slinky_operator.nodeset.execute.hosts.drain_requests import DrainRequests
from slinky_operator.nodeset.observation.indexes import INDEXES_OF_PODS
from tests.integration.nodeset.test_drain_requests import CRD
from tests.support import service_account
from tests.support.control_plane import ControlPlane
from tests.support.job_logs import wait_for
from tests.support.served import wait_until_allowed

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


class Looked(Exception):
    """Requests have been looked at once."""


async def look_once(kube: KubeClient, namespace: str) -> DrainRequests:
    """Serve the requests of a namespace once."""

    async def stop(_: float) -> None:
        raise Looked

    requests = DrainRequests(kube, namespace, Store(INDEXES_OF_PODS), lambda _: None, sleep=stop)
    _ = requests.by_host()
    with pytest.raises(Looked):
        await requests.run()
    return requests


async def test_it_may_complete_requests_to_drain_of_one_namespace_and_no_more(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    kubectl, own = cluster.kubectl, f"{DRAIN_REQUESTS.plural}.{DRAIN_REQUESTS.group}"
    chart = render(values={"drainRequestsNamespace": "nvsentinel"})
    names = ("slurm-operator", "nvsentinel", "elsewhere")
    account = {"name": service_account.NAME, "namespace": "slurm-operator"}
    kubectl.apply(
        [
            CRD,
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names),
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
            *(one for one in chart if one["metadata"]["name"].endswith("drain-requests")),
            *(one for one in chart if one["kind"] in {"ClusterRole", "ClusterRoleBinding"}),
        ]
    )
    kubectl("wait", "--for=condition=Established", "crd", own)
    asked = {
        "apiVersion": DRAIN_REQUESTS.api_version,
        "kind": DRAIN_REQUESTS.kind,
        "spec": {"nodeName": "no-such-node"},
    }
    kubectl.apply([{**asked, "metadata": {"name": "one", "namespace": name}} for name in names[1:]])
    wait_until_allowed(kubectl, service_account.user_of("slurm-operator"), "list", own, "nvsentinel")
    wait_until_allowed(kubectl, service_account.user_of("slurm-operator"), "list", "pods", "elsewhere")
    file = service_account.kubeconfig_of(kubectl, cluster.kubeconfig, "slurm-operator", tmp_path / "kubeconfig")

    async with await Connection.connect(file) as connection:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
        served = await look_once(kube, "nvsentinel")
        refused = await look_once(kube, "elsewhere")
        assert set(served.by_host() or ()) == {"no-such-node"}
        assert refused.by_host() is None
        for forbidden in (
            kube.create(DRAIN_REQUESTS, {**asked, "metadata": {"name": "two"}}, "nvsentinel"),
            kube.merge_patch(DRAIN_REQUESTS, "one", {"spec": {"nodeName": NODE}}, "nvsentinel"),
            kube.delete(DRAIN_REQUESTS, "one", "nvsentinel", uid=None),
            kube.patch_status(DRAIN_REQUESTS, "one", {"conditions": []}, "elsewhere"),
        ):
            with pytest.raises(errors.Forbidden):
                await forbidden

    (condition,) = kubectl.get(own, "one", "--namespace=nvsentinel")["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("DrainComplete", "True", "NoPods")
