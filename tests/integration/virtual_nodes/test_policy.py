"""The chart slurm-virtual-nodes on a real API server: what the operator may do with Nodes, pods and Leases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hack.localkube.kubectl import KubectlFailed
from hack.packaging.render import ROOT, render
from slinky_api.labels import LABEL_VIRTUAL_NODE
from tests.support.control_plane import ControlPlane
from tests.support.job_logs import wait_for

OPERATOR = "--as=system:serviceaccount:slurm-operator:slurm-operator"
TEAM = "vn-policy"
READY = {"conditions": [{"type": "Ready", "status": "True", "reason": "Test"}]}
RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}
READ = {"apiGroups": [""], "resources": ["nodes/status", "pods/status"], "verbs": ["get"]}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": TEAM}
ACCOUNT = {"kind": "ServiceAccount", "name": "slurm-operator", "namespace": "slurm-operator"}
VIRTUAL, REAL = "slurm-site-policy", "real-1"


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The rights and the policy, a real Node, a foreign pod on it, and a pod on the virtual Node."""
    kubectl = control_plane.kubectl
    chart = render(
        ROOT / "helm" / "slurm-virtual-nodes", {"policy": {"hosts": ["site"]}}, release="slurm-virtual-nodes"
    )
    about = {"namespace": TEAM}
    made = [
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (TEAM, "slurm-operator")),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", **about}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": REAL}},
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, **about},
                "spec": {"nodeName": node, "containers": [{"name": "main", "image": "x"}]},
            }
            for name, node in (("foreign", REAL), ("ours", VIRTUAL))
        ),
        *chart,
        # kubectl reads a status before it writes it; the operator does not.
        {**RBAC, "kind": "ClusterRole", "metadata": {"name": TEAM}, "rules": [READ]},
        {**RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": TEAM}, "roleRef": ROLE, "subjects": [ACCOUNT]},
    ]
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    # A policy counts once the API server has read it.
    wait_for(lambda: "may only change Nodes" in refusal(control_plane, "annotate", "node", REAL, "--overwrite", "a=b"))
    wait_for(
        lambda: (
            "may only change pods" in refusal(control_plane, "delete", "pod", "foreign", "-n", TEAM, "--dry-run=server")
        )
    )
    yield control_plane
    kubectl(
        "delete",
        "-f",
        "-",
        "--ignore-not-found",
        "--wait=false",
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": chart}),
    )
    kubectl("delete", "pods", "--all", "-n", TEAM, "--grace-period=0", "--force")
    kubectl("delete", "nodes", REAL, VIRTUAL, "--ignore-not-found")


def refusal(cluster: ControlPlane, *arguments: str, stdin: str | None = None) -> str:
    """What the API server says to the operator's account; empty if it does as asked."""
    try:
        cluster.kubectl(*arguments, OPERATOR, stdin=stdin)
    except KubectlFailed as failed:
        return failed.stderr
    return ""


def node(name: str, **labels: str) -> str:
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    return json.dumps(made | {"status": READY})


def status(kind: str, name: str, value: Any, *more: str) -> tuple[str, ...]:
    return ("patch", kind, name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": value}), *more)


def test_it_keeps_nodes_with_its_label(cluster: ControlPlane) -> None:
    assert not refusal(cluster, "create", "-f", "-", stdin=node(VIRTUAL, **{LABEL_VIRTUAL_NODE: "cpu"}))
    assert not refusal(cluster, *status("node", VIRTUAL, READY))
    assert not refusal(cluster, "patch", "node", VIRTUAL, "-p", json.dumps({"spec": {"unschedulable": True}}))
    assert not refusal(cluster, "delete", "node", VIRTUAL)


def test_it_makes_no_other_nodes_and_changes_none(cluster: ControlPlane) -> None:
    own = "may only change Nodes with the label virtual-node.slinky.slurm.net/partition"
    assert own in refusal(cluster, "create", "-f", "-", stdin=node("real-2"))
    assert own in refusal(cluster, *status("node", REAL, READY))
    assert own in refusal(cluster, "delete", "node", REAL)
    assert own in refusal(cluster, "patch", "node", REAL, "-p", json.dumps({"spec": {"unschedulable": True}}))
    # kubectl cordon prints a refusal and ends with 0.
    _ = refusal(cluster, "cordon", REAL)
    assert "unschedulable" not in cluster.kubectl.get("node", REAL)["spec"]
    # Nor does it make one its own by a label.
    assert own in refusal(cluster, "label", "node", REAL, f"{LABEL_VIRTUAL_NODE}=cpu")


def test_it_writes_the_status_of_pods_on_virtual_nodes_only(cluster: ControlPlane) -> None:
    value, where = {"phase": "Running"}, ("-n", TEAM)
    assert not refusal(cluster, *status("pod", "ours", value, *where))
    assert "may only change pods on virtual Nodes, and its own" in refusal(
        cluster, *status("pod", "foreign", value, *where)
    )
    assert "may only change pods" in refusal(cluster, "delete", "pod", "foreign", *where)
    assert not refusal(cluster, "delete", "pod", "ours", *where, "--grace-period=0", "--force", "--dry-run=server")


def test_it_renews_leases_of_virtual_nodes_only(cluster: ControlPlane) -> None:
    def lease(name: str) -> str:
        about = {"name": name, "namespace": "kube-node-lease"}
        return json.dumps(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": about,
                "spec": {"holderIdentity": name},
            }
        )

    assert "may only renew Leases of virtual Nodes" in refusal(cluster, "create", "-f", "-", stdin=lease(REAL))
    assert not refusal(cluster, "create", "-f", "-", stdin=lease(VIRTUAL))
    cluster.kubectl("delete", "lease", VIRTUAL, "-n", "kube-node-lease")


def test_others_are_not_concerned(cluster: ControlPlane) -> None:
    cluster.kubectl("label", "node", REAL, "site=here", "--overwrite")


def status_patch(cluster: ControlPlane, patch: dict[str, Any]) -> str:
    """What the API server says to a patch of the real Node's status by the operator."""
    return refusal(
        cluster, "patch", "node", REAL, "--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}"
    )


def test_with_node_labels_real_nodes_get_labels_and_resources_and_nothing_else(cluster: ControlPlane) -> None:
    labelled = {
        "metadata": {"labels": {"slinky.example/features": "a"}},
        "status": {"capacity": {"example.com/x": "1"}},
    }
    assert "may only change Nodes" in status_patch(cluster, labelled)
    values = {"policy": {"hosts": ["site"], "nodeLabels": True}}
    chart = render(ROOT / "helm" / "slurm-virtual-nodes", values, release="slurm-virtual-nodes")
    items = {"apiVersion": "v1", "kind": "List", "items": chart}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(items))
    wait_for(lambda: not status_patch(cluster, labelled))
    found = json.loads(cluster.kubectl("get", "node", REAL, "-o", "json"))
    assert found["metadata"]["labels"]["slinky.example/features"] == "a"
    assert found["status"]["capacity"]["example.com/x"] == "1"
    for refused in (
        {"status": READY},
        {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]}},
        {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 10350}}}},
        {"metadata": {"labels": {LABEL_VIRTUAL_NODE: "cpu"}}},
    ):
        assert "may only change Nodes" in status_patch(cluster, refused), refused
    cordon = json.dumps({"spec": {"unschedulable": True}})
    assert "may only change Nodes" in refusal(cluster, "patch", "node", REAL, "-p", cordon)
