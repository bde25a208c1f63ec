"""The chart slurm-bridge on a real API server: who may let pods go, who may change them, and who may do without."""

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
TEAM, SLURM_ONLY = "bridge-team", "bridge-slurm-only"
NODE = "worker-1"
RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": TEAM}
ACCOUNT = {"kind": "ServiceAccount", "name": "slurm-operator", "namespace": "slurm-operator"}
OWN_RIGHTS = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["get"]},
]
GATE = {"schedulingGates": [{"name": labels.GATE_BRIDGE}]}
LABEL = {labels.LABEL_BRIDGE_POD: "true"}
PLACE = {labels.ANNOTATION_BRIDGE_SLURMJOB: "bridge-1", labels.ANNOTATION_BRIDGE_SLOT: "0"}
DEADLINE = {labels.ANNOTATION_BRIDGE_DEADLINE: "2030-01-01T00:00:00Z"}
LIFT = {
    "metadata": {"annotations": {**PLACE, **DEADLINE}},
    "spec": {"schedulingGates": None, "tolerations": [{"key": labels.TAINT_BRIDGE, "operator": "Exists"}]},
}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The rights and the policies, and a namespace for pods of Slurm alone."""
    kubectl = control_plane.kubectl
    chart = render(ROOT / "helm" / "slurm-bridge", {}, release="slurm-bridge")
    required = {labels.LABEL_BRIDGE_REQUIRED: "true"}
    made: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SLURM_ONLY, "labels": required}},
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
            for namespace in (TEAM, SLURM_ONLY)
        ),
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}},
        # What the operator has by its own chart, and what kubectl reads before it writes.
        {**RBAC, "kind": "ClusterRole", "metadata": {"name": TEAM}, "rules": OWN_RIGHTS},
        {**RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": TEAM}, "roleRef": ROLE, "subjects": [ACCOUNT]},
        *chart,
    ]
    kubectl.apply(made)
    # A policy counts once the API server has read it.
    wait_for(lambda: "both or none" in created(control_plane, pod("early", gate=True, label=False), "--dry-run=server"))
    wait_for(lambda: "Slurm places pods" in created(control_plane, pod("early", SLURM_ONLY), "--dry-run=server"))
    assert not created(control_plane, pod("foreign", nodeName=NODE))
    wait_for(lambda: "may only change pods" in changed(control_plane, "foreign", annotated(a="b"), OPERATOR))
    yield control_plane
    remove(control_plane, chart)
    for namespace in (TEAM, SLURM_ONLY):
        kubectl("delete", "pods", "--all", "-n", namespace, "--grace-period=0", "--force")
    kubectl("delete", "nodes", NODE)


def remove(cluster: ControlPlane, objects: list[dict[str, Any]]) -> None:
    """Delete what a chart has made."""
    items = {"apiVersion": "v1", "kind": "List", "items": objects}
    cluster.kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=false", stdin=json.dumps(items))


def pod(name: str, namespace: str = TEAM, *, gate: bool = False, label: bool = False, **spec: Any) -> dict[str, Any]:
    about: dict[str, Any] = {"name": name, "namespace": namespace, "labels": dict(LABEL) if label else {"a": "b"}}
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {**(GATE if gate else {}), "containers": [container], **spec},
    }


def annotated(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}}


def answer(cluster: ControlPlane, *arguments: str, stdin: str | None = None) -> str:
    """What the API server says; empty if it does as asked."""
    try:
        cluster.kubectl(*arguments, stdin=stdin)
    except KubectlFailed as failed:
        return failed.stderr
    return ""


def created(cluster: ControlPlane, body: dict[str, Any], *more: str) -> str:
    return answer(cluster, "create", "-f", "-", *more, stdin=json.dumps(body))


def changed(cluster: ControlPlane, name: str, patch: dict[str, Any], *more: str) -> str:
    return answer(cluster, "patch", "pod", name, "-n", TEAM, "--type=merge", f"--patch={json.dumps(patch)}", *more)


def placed(cluster: ControlPlane, name: str) -> None:
    """Make a pod that the operator has let go."""
    assert not created(cluster, pod(name, gate=True, label=True))
    assert not changed(cluster, name, LIFT, OPERATOR)


def test_gate_and_label_go_together_in_every_namespace(cluster: ControlPlane) -> None:
    together = "has the scheduling gate bridge.slinky.slurm.net/slurm and the label bridge.slinky.slurm.net/pod"
    assert not created(cluster, pod("both", gate=True, label=True))
    assert not created(cluster, pod("none"))
    assert together in created(cluster, pod("gate", gate=True))
    assert together in created(cluster, pod("label", label=True))


def test_only_the_operator_removes_the_gate(cluster: ControlPlane) -> None:
    assert not created(cluster, pod("waiting", gate=True, label=True))
    refused = changed(cluster, "waiting", {"spec": {"schedulingGates": None}})
    assert "only slurm-operator removes the scheduling gate bridge.slinky.slurm.net/slurm" in refused
    # What others may do with a pod that waits.
    assert not changed(cluster, "waiting", {"spec": {"nodeSelector": {"zone": "a"}}})
    assert not changed(cluster, "waiting", annotated(**{f"{labels.BRIDGE_PREFIX}partition": "gpu"}))
    assert not changed(cluster, "waiting", LIFT, OPERATOR)
    found = cluster.kubectl.get("pod", "waiting", "-n", TEAM)
    assert "schedulingGates" not in found["spec"]
    assert found["metadata"]["annotations"][labels.ANNOTATION_BRIDGE_SLOT] == "0"


def test_gates_of_others_are_theirs(cluster: ControlPlane) -> None:
    other = {"name": "example.com/other"}
    assert not created(
        cluster, pod("two-gates", gate=True, label=True, schedulingGates=[*GATE["schedulingGates"], other])
    )
    assert not changed(cluster, "two-gates", {"spec": GATE})


def test_a_pod_that_waits_has_no_place_yet(cluster: ControlPlane) -> None:
    said = "slurm-operator writes the annotations bridge.slinky.slurm.net/slurmjob and slot, once"
    body = pod("forged", gate=True, label=True)
    body["metadata"]["annotations"] = PLACE
    assert said in created(cluster, body)
    # Without gate and label, too: a pod like one that has been let go.
    alone = pod("forged")
    alone["metadata"]["annotations"] = PLACE
    assert said in created(cluster, alone)
    assert not created(cluster, pod("unplaced", gate=True, label=True))
    assert said in changed(cluster, "unplaced", annotated(**PLACE))
    assert said in changed(cluster, "unplaced", annotated(**PLACE), OPERATOR)
    assert "writes the annotation bridge.slinky.slurm.net/deadline" in changed(
        cluster, "unplaced", annotated(**DEADLINE)
    )


def test_the_place_of_a_pod_that_was_let_go_stays(cluster: ControlPlane) -> None:
    placed(cluster, "placed")
    elsewhere = annotated(**{labels.ANNOTATION_BRIDGE_SLOT: "1"})
    for who in ((), (OPERATOR,)):
        assert "and slot, once, when it removes" in changed(cluster, "placed", elsewhere, *who)
    nowhere = {"metadata": {"annotations": dict.fromkeys(PLACE)}}
    assert "and slot, once, when it removes" in changed(cluster, "placed", nowhere)
    # Nor does the status, of which kubelets write much, lead there.
    assert "and slot, once, when it removes" in changed(cluster, "placed", elsewhere, "--subresource=status")
    later = annotated(**{labels.ANNOTATION_BRIDGE_DEADLINE: "2031-01-01T00:00:00Z"})
    assert "writes the annotation bridge.slinky.slurm.net/deadline" in changed(cluster, "placed", later)
    assert not changed(cluster, "placed", later, OPERATOR)
    assert not changed(cluster, "placed", annotated(mine="yes"))


def test_the_label_stays_as_long_as_the_pod(cluster: ControlPlane) -> None:
    placed(cluster, "labelled")
    without = {"metadata": {"labels": {labels.LABEL_BRIDGE_POD: None}}}
    for who in ((), (OPERATOR,)):
        assert "the label bridge.slinky.slurm.net/pod stays" in changed(cluster, "labelled", without, *who)
    assert not created(cluster, pod("plain"))
    assert "with the scheduling gate" in changed(cluster, "plain", {"metadata": {"labels": LABEL}})


def test_pods_that_slurm_places_are_not_resized(cluster: ControlPlane) -> None:
    placed(cluster, "resized")
    larger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    patch = ("--subresource=resize", "-n", TEAM, "--type=strategic", f"--patch={json.dumps(larger)}")
    assert not created(cluster, pod("ordinary"))
    assert not answer(cluster, "patch", "pod", "ordinary", *patch)
    assert "are those of its job, which do not change" in answer(cluster, "patch", "pod", "resized", *patch)


def test_chosen_namespaces_have_no_other_pods(cluster: ControlPlane) -> None:
    assert not created(cluster, pod("both", SLURM_ONLY, gate=True, label=True))
    assert "add the label bridge.slinky.slurm.net/pod" in created(cluster, pod("none", SLURM_ONLY))
    assert "leave spec.nodeName out" in created(cluster, pod("pinned", SLURM_ONLY, nodeName=NODE))
    # Pods that show the output of jobs are the operator's.
    assert not created(cluster, pod("output", SLURM_ONLY), OPERATOR)


def test_the_operator_changes_pods_of_the_bridge_and_its_own(cluster: ControlPlane) -> None:
    assert not created(cluster, pod("another", nodeName=NODE))
    status = {"status": {"conditions": [{"type": "Slurm", "status": "False", "reason": "Priority"}]}}
    for patch, more in ((annotated(a="b"), ()), (status, ("--subresource=status",))):
        said = changed(cluster, "another", patch, *more, OPERATOR)
        assert "may only change pods that it has made, and pods with the label bridge.slinky.slurm.net/pod" in said
    assert "may only change pods" in answer(cluster, "delete", "pod", "another", "-n", TEAM, OPERATOR)
    assert not created(cluster, pod("shown", gate=True, label=True))
    assert not changed(cluster, "shown", status, "--subresource=status", OPERATOR)
    own = pod("daemon", nodeName=NODE)
    own["metadata"]["labels"] = {labels.LABEL_NODESET_UID: "u"}
    assert not created(cluster, own)
    assert not changed(cluster, "daemon", annotated(a="b"), OPERATOR)


def test_pods_on_virtual_nodes_are_left_to_the_policy_of_their_chart(cluster: ControlPlane) -> None:
    assert not created(cluster, pod("virtual", nodeName="slurm-site-cpu"))
    assert not created(cluster, pod("other-site", nodeName="slurm-other-cpu"))
    assert not changed(cluster, "other-site", annotated(a="b"), OPERATOR)
    chart = render(
        ROOT / "helm" / "slurm-virtual-nodes", {"policy": {"hosts": ["site"]}}, release="slurm-virtual-nodes"
    )
    cluster.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "slurm-operator"}}, *chart])
    own = "slurm-operator may only change pods on virtual Nodes"
    wait_for(lambda: own in changed(cluster, "other-site", annotated(a="c"), OPERATOR))
    assert not changed(cluster, "virtual", annotated(a="b"), OPERATOR)
    placed(cluster, "beside")
    remove(cluster, chart)


def test_the_operator_evicts_pods(cluster: ControlPlane) -> None:
    placed(cluster, "evicted")
    about = {"name": "evicted", "namespace": TEAM}
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": about,
        "deleteOptions": {"gracePeriodSeconds": 0},
    }
    path = f"/api/v1/namespaces/{TEAM}/pods/evicted/eviction"
    raw = ("create", "--raw", path, "-f", "-")
    assert not answer(cluster, *raw, OPERATOR, stdin=json.dumps(body))
