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
from tests.support.served import apply_job_crds

OPERATOR = "--as=system:serviceaccount:slurm-operator:slurm-operator"
TEAM, SLURM_ONLY = "bridge-team", "bridge-slurm-only"
NODE = "worker-1"
RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": TEAM}
ACCOUNT = {"kind": "ServiceAccount", "name": "slurm-operator", "namespace": "slurm-operator"}
USER = f"--as=system:serviceaccount:{TEAM}:user"
"""Who may edit everything in the namespace."""

EDITOR = {"kind": "ServiceAccount", "name": "user", "namespace": TEAM}
# What the role edit is made of: the controller that does so is not here.
EDIT = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:aggregate-to-edit"}
VIEW = {**EDIT, "name": "system:aggregate-to-view"}
JOB_RIGHTS = [{"apiGroups": ["slinky.slurm.net"], "resources": ["slurmjobs"], "verbs": ["*"]}]
UID = "0b4ed1b6-6f2a-4d35-9d6c-2f1f7f6f0001"
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
    apply_job_crds(kubectl)
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
        *(
            {
                **RBAC,
                "kind": "RoleBinding",
                "metadata": {"name": role["name"].rpartition("-")[2], "namespace": TEAM},
                "roleRef": role,
                "subjects": [EDITOR],
            }
            for role in (EDIT, VIEW)
        ),
        # As the chart slurm-jobs adds it to the role edit, and the operator's own chart to the operator's.
        {
            **RBAC,
            "kind": "Role",
            "metadata": {"name": "jobs", "namespace": TEAM},
            "rules": JOB_RIGHTS,
        },
        {
            **RBAC,
            "kind": "RoleBinding",
            "metadata": {"name": "jobs", "namespace": TEAM},
            "roleRef": {**EDIT, "kind": "Role", "name": "jobs"},
            "subjects": [EDITOR, ACCOUNT],
        },
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
    wait_for(lambda: "slurm-operator makes" in created(control_plane, slurmjob("early"), "--dry-run=server"))
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


def slurmjob(name: str = f"bridge-{UID}", **about: Any) -> dict[str, Any]:
    """A SlurmJob as the operator makes it for a pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": UID, "controller": True}
    return {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "SlurmJob",
        "metadata": {
            "name": name,
            "namespace": TEAM,
            "labels": {labels.LABEL_BRIDGE_GROUP: UID},
            "annotations": {labels.ANNOTATION_BRIDGE_MEMBERS: f"Pod/{UID}/"},
            "ownerReferences": [owner],
            **about,
        },
        "spec": {"clusterName": "slurm", "external": {}, "tasks": 1, "cpusPerTask": 1},
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


def owned(name: str, kind: str, **owner: Any) -> dict[str, Any]:
    """A pod as the operator makes it for an object of its kinds."""
    body = pod(name, SLURM_ONLY)
    about = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": kind, "name": "a", "uid": UID, "controller": True}
    body["metadata"]["ownerReferences"] = [about | owner]
    return body


def test_nor_does_the_operator_make_them_for_users(cluster: ControlPlane) -> None:
    """Who may edit NodeSets there would have pods of any template run beside Slurm."""
    said = "in this namespace Slurm places pods"
    for kind in ("NodeSet", "Cluster", "LoginSet"):
        assert said in created(cluster, owned("beside", kind), OPERATOR), kind
    assert said in created(cluster, pod("unowned", SLURM_ONLY), OPERATOR)
    for forged in ({"apiVersion": "wlm.sylabs.io/v1alpha1"}, {"controller": False}):
        assert said in created(cluster, owned("forged", "SlurmJob", **forged), OPERATOR)
    # Nobody else becomes the operator by an owner.
    assert said in created(cluster, owned("forged", "SlurmJob"))
    # Pods that show the output of jobs run a program of the operator's.
    assert not created(cluster, owned("output", "SlurmJob"), OPERATOR)


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


# Who may edit everything in a namespace of tenants


def test_no_way_of_writing_a_pod_removes_the_gate(cluster: ControlPlane) -> None:
    body = pod("edited", gate=True, label=True)
    assert not created(cluster, body, USER)
    said = "only slurm-operator removes the scheduling gate"
    for kind, patch in (
        ("merge", {"spec": {"schedulingGates": None}}),
        ("strategic", {"spec": {"schedulingGates": [{"$patch": "delete", "name": labels.GATE_BRIDGE}]}}),
        ("json", [{"op": "remove", "path": "/spec/schedulingGates"}]),
    ):
        arguments = ("patch", "pod", "edited", "-n", TEAM, f"--type={kind}", f"--patch={json.dumps(patch)}", USER)
        assert said in answer(cluster, *arguments), kind
    found = cluster.kubectl.get("pod", "edited", "-n", TEAM)
    del found["spec"]["schedulingGates"]
    assert said in answer(cluster, "replace", "-f", "-", USER, stdin=json.dumps(found))
    # Server-side apply removes what a manager has applied before, and leaves out.
    applied = pod("applied", gate=True, label=True)
    server_side = ("apply", "--server-side", "--force-conflicts", "-f", "-", USER)
    assert not answer(cluster, *server_side, stdin=json.dumps(applied))
    del applied["spec"]["schedulingGates"]
    assert said in answer(cluster, *server_side, stdin=json.dumps(applied))


def test_subresources_of_pods_lead_nowhere(cluster: ControlPlane) -> None:
    assert not created(cluster, pod("subs", gate=True, label=True), USER)
    binding = {"metadata": {"name": "subs"}, "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}}
    body = json.dumps({"apiVersion": "v1", "kind": "Binding", **binding})
    raw = ("create", "--raw", f"/api/v1/namespaces/{TEAM}/pods/subs/binding", "-f", "-")
    assert "cannot create resource" in answer(cluster, *raw, USER, stdin=body)
    # Nor may those bind it who bind pods.
    assert "has non-empty .spec.schedulingGates" in answer(cluster, *raw, stdin=body)
    for subresource in ("status", "resize"):
        patch = ("patch", "pod", "subs", "-n", TEAM, f"--subresource={subresource}", "--type=merge")
        gone = json.dumps({"spec": {"schedulingGates": None}, "status": {"phase": "Succeeded"}})
        assert answer(cluster, *patch, f"--patch={gone}", USER)
    shell = {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}], "schedulingGates": None}}
    path = ("patch", "pod", "subs", "-n", TEAM, "--subresource=ephemeralcontainers", "--type=strategic")
    # They request nothing, and leave the gate where it is.
    _ = answer(cluster, *path, f"--patch={json.dumps(shell)}")
    found = cluster.kubectl.get("pod", "subs", "-n", TEAM)
    assert found["spec"]["schedulingGates"] == GATE["schedulingGates"]
    assert not found["spec"].get("nodeName")
    assert found["status"]["phase"] == "Pending"


def test_slurmjobs_of_pods_are_made_by_the_operator_alone(cluster: ControlPlane) -> None:
    said = "slurm-operator makes the SlurmJobs of pods that Slurm places"
    assert said in created(cluster, slurmjob(), USER)
    assert said in created(cluster, slurmjob(labels={}, annotations={}, ownerReferences=[]), USER)
    assert said in created(cluster, slurmjob("mine"), USER)
    # Names and jobs of users' own are theirs.
    assert not created(cluster, slurmjob("bridge-building", labels={}), USER)
    assert not created(cluster, slurmjob(), OPERATOR)
    cluster.kubectl("delete", "slurmjobs", "--all", "-n", TEAM)


def edited(cluster: ControlPlane, patch: dict[str, Any], *who: str) -> str:
    """Change the SlurmJob of a pod."""
    name, written = f"bridge-{UID}", f"--patch={json.dumps(patch)}"
    return answer(cluster, "patch", "slurmjob", name, "-n", TEAM, "--type=merge", written, *who)


def test_nobody_else_writes_whose_a_job_is_and_that_it_has_ended(cluster: ControlPlane) -> None:
    assert not created(cluster, slurmjob(), OPERATOR)
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": UID, "controller": True}]
    members = {labels.ANNOTATION_BRIDGE_MEMBERS: "Pod/other/", labels.ANNOTATION_BRIDGE_RANKS: "0-3"}
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"spec": {"external": {"ended": {"exitCode": 0}}}}, "says in spec.external.ended that the pods"),
        ({"spec": {"cancelPolicy": "Keep"}}, "is cancelled with its SlurmJob"),
        ({"metadata": {"labels": {labels.LABEL_BRIDGE_GROUP: None}}}, "alone writes the label and the annotations"),
        ({"metadata": {"annotations": dict.fromkeys(members)}}, "alone writes the label and the annotations"),
        ({"metadata": {"annotations": members}}, "alone writes the label and the annotations"),
        ({"metadata": {"ownerReferences": None}}, "is what holds these pods together, and stays"),
        ({"metadata": {"ownerReferences": owners}}, "is what holds these pods together, and stays"),
    )
    for patch, said in refused:
        assert said in edited(cluster, patch, USER), patch
    # What users may do: hold it, mark it, and end it.
    for harmless in ({"spec": {"suspend": True}}, {"metadata": {"labels": {"mine": "yes"}}}, annotated(mine="yes")):
        assert not edited(cluster, harmless, USER)
    # The operator says how it has ended, and Kubernetes takes owners away that were deleted without it.
    assert not edited(cluster, {"spec": {"external": {"ended": {"exitCode": 0}}}}, OPERATOR)
    collector = "--as=system:serviceaccount:kube-system:generic-garbage-collector"
    assert not edited(cluster, {"metadata": {"ownerReferences": None}}, collector, "--as-group=system:masters")
    assert not answer(cluster, "delete", "slurmjob", f"bridge-{UID}", "-n", TEAM, USER)
