"""The chart and the kustomize base on a real API server: accepted unchanged, with the documented rights."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml

from hack.localkube.kubectl import KubectlFailed, wait_for
from hack.packaging.render import OPERATOR_CHART, ROOT, SLURM_CHART, render
from tests.integration.helm.helm_commands import refused, run_helm
from tests.support.control_plane import ControlPlane
from tests.support.served import CRDS, apply_crds, wait_until_allowed, wait_until_kinds_are_served

pytestmark = pytest.mark.long

Install = Callable[..., str]
Question = tuple[str, str, str | None]
"""Verb, `resource.group/subresource`, and namespace, or `None` for all of them."""


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A namespace that lets in only pods without privileges."""
    name = f"helm-{uuid.uuid4().hex[:10]}"
    control_plane.kubectl("create", "namespace", name)
    control_plane.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    return name


@pytest.fixture
def install(control_plane: ControlPlane, namespace: str) -> Install:
    def install(values: dict[str, Any] | None = None) -> str:
        chart = str(OPERATOR_CHART)
        return run_helm(
            control_plane, "install", "slurm-operator", chart, f"--namespace={namespace}", values=values or {}
        )

    return install


def allowed(control_plane: ControlPlane, user: str, asked: Sequence[Question]) -> set[Question]:
    """Ask the API server what of all this a user may do."""
    reviews = []
    for verb, resource, namespace in asked:
        name, _, group = resource.partition(".")
        group, _, subresource = group.partition("/")
        name, _, core_subresource = name.partition("/")
        attributes = {
            "verb": verb,
            "resource": name,
            "group": group,
            "subresource": subresource or core_subresource,
            "namespace": namespace or "",
        }
        spec = {"user": user, "resourceAttributes": attributes}
        reviews.append({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews})
    answers = control_plane.kubectl(
        "create", "--filename=-", '--output=jsonpath={.status.allowed}{"\\n"}', stdin=body
    ).split()
    return {question for question, answer in zip(asked, answers, strict=True) if answer == "true"}


def test_install_upgrade_uninstall(control_plane: ControlPlane, namespace: str, install: Install) -> None:
    notes = install()
    for words in ("rollout status", "kind: Cluster", "kind: NodeSet", "kubectl describe", "delete NodeSets"):
        assert words in notes
    kubectl = control_plane.kubectl
    wait_until_kinds_are_served(kubectl)
    # What the guide says about CRDs, after helm itself has written them.
    kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(OPERATOR_CHART / "crds"))
    upgraded = run_helm(
        control_plane, "upgrade", "slurm-operator", str(OPERATOR_CHART), f"--namespace={namespace}", "--set=replicas=2"
    )
    assert "kubectl apply --server-side --force-conflicts -f crds/" in upgraded
    assert kubectl.get("deployment", "slurm-operator", f"--namespace={namespace}")["spec"]["replicas"] == 2
    run_helm(control_plane, "uninstall", "slurm-operator", f"--namespace={namespace}")
    assert not kubectl.get("deployments,roles", f"--namespace={namespace}")["items"]
    assert {crd["metadata"]["name"] for crd in kubectl.get("crd")["items"]} >= set(CRDS)


def test_its_pod_is_let_into_a_restricted_namespace(
    control_plane: ControlPlane, namespace: str, install: Install
) -> None:
    install()
    (deployment,) = [obj for obj in render(namespace=namespace) if obj["kind"] == "Deployment"]
    pod = {"apiVersion": "v1", "kind": "Pod", **deployment["spec"]["template"]}
    pod["metadata"] = {"name": "operator", "namespace": namespace}
    control_plane.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(pod))
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(KubectlFailed, match="violates PodSecurity"):
        control_plane.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(pod))


def test_with_all_namespaces_it_may_do_its_work_anywhere(
    control_plane: ControlPlane, namespace: str, install: Install
) -> None:
    install()
    user = f"system:serviceaccount:{namespace}:slurm-operator"
    its_work: list[Question] = [
        ("watch", "clusters.slinky.slurm.net", None),
        ("patch", "nodesets.slinky.slurm.net/status", None),
        ("create", "pods", None),
        ("patch", "pods/status", None),
        ("get", "secrets", None),
        ("create", "statefulsets.apps", None),
        ("watch", "nodes", None),
        ("create", "leases.coordination.k8s.io", namespace),
    ]
    not_its_work: list[Question] = [
        ("list", "secrets", None),
        ("watch", "secrets", None),
        ("create", "clusters.slinky.slurm.net", None),
        ("delete", "nodesets.slinky.slurm.net", None),
        ("patch", "nodes", None),
        ("create", "pods/exec", None),
        ("list", "namespaces", None),
        ("update", "leases.coordination.k8s.io", None),
        ("create", "leases.coordination.k8s.io", "default"),
        ("create", "clusterroles.rbac.authorization.k8s.io", None),
    ]
    # Roles and bindings count a moment after they were made.
    wait_for("it may do its work", lambda: allowed(control_plane, user, its_work) == set(its_work), 60)
    assert allowed(control_plane, user, its_work + not_its_work) == set(its_work)


def test_with_named_namespaces_it_may_do_nothing_elsewhere(
    control_plane: ControlPlane, namespace: str, install: Install
) -> None:
    served = f"{namespace}-served"
    control_plane.kubectl("create", "namespace", served)
    install({"watchNamespaces": [served]})
    user = f"system:serviceaccount:{namespace}:slurm-operator"
    its_work: list[Question] = [("watch", "pods", served), ("get", "secrets", served)]
    elsewhere = (namespace, "default", None)
    not_its_work: list[Question] = [
        ("list", "secrets", served),
        ("list", "nodes", None),
        *(("list", "pods", place) for place in elsewhere),
        *(("get", "secrets", place) for place in elsewhere),
    ]
    # Roles and bindings count a moment after they were made.
    wait_for("it may do its work", lambda: allowed(control_plane, user, its_work) == set(its_work), 60)
    assert allowed(control_plane, user, its_work + not_its_work) == set(its_work)


def test_who_has_rights_in_two_namespaces_only_can_install(control_plane: ControlPlane, namespace: str) -> None:
    kubectl = control_plane.kubectl
    served, user = f"{namespace}-served", f"owner-of-{namespace}"
    kubectl("create", "namespace", served)
    apply_crds(kubectl)
    for place in (namespace, served):
        kubectl("create", "role", "owner", "--verb=*", "--resource=*.*", f"--namespace={place}")
        kubectl("create", "rolebinding", "owner", "--role=owner", f"--user={user}", f"--namespace={place}")
        wait_until_allowed(kubectl, user, "create", "roles.rbac.authorization.k8s.io", place)
    chart = ("slurm-operator", str(OPERATOR_CHART), f"--namespace={namespace}", f"--kube-as-user={user}")
    run_helm(control_plane, "install", *chart, "--skip-crds", f"--set=watchNamespaces={{{served}}}")
    run_helm(control_plane, "upgrade", *chart, "--skip-crds", "--reset-then-reuse-values", "--set=replicas=2")
    found = kubectl.get("deployment", "slurm-operator", f"--namespace={namespace}")
    assert found["spec"]["replicas"] == 2
    assert f"--namespaces={served}" in found["spec"]["template"]["spec"]["containers"][0]["args"]


def test_who_lacks_rights_is_told_which(control_plane: ControlPlane, namespace: str) -> None:
    apply_crds(control_plane.kubectl)
    chart = ("install", "slurm-operator", str(OPERATOR_CHART), f"--namespace={namespace}", "--kube-as-user=somebody")
    said = refused(control_plane, *chart)
    assert 'User "somebody" cannot' in said
    assert "is forbidden" in said
    assert "customresourcedefinitions" in said
    # What templates look for can be left out by the values that the guide names.
    looking = "error calling lookup: "
    assert f"{looking}leases.coordination.k8s.io is forbidden" in refused(control_plane, *chart, "--skip-crds")
    unlooked = (*chart, "--skip-crds", "--set=checkOtherOperators=false")
    assert f"{looking}customresourcedefinitions.apiextensions.k8s.io " in refused(control_plane, *unlooked)
    assert looking not in refused(control_plane, *unlooked, "--set=checkCrds=false")


def test_it_may_make_dependents_that_block_a_nodesets_deletion(
    control_plane: ControlPlane, namespace: str, install: Install
) -> None:
    install()
    kubectl = control_plane.kubectl
    wait_until_kinds_are_served(kubectl)
    api_version = "slinky.slurm.net/v1alpha1"
    about = {"name": "slurm", "namespace": namespace}
    kubectl.apply([{"apiVersion": api_version, "kind": "NodeSet", "metadata": about, "spec": {"clusterName": "slurm"}}])
    user = f"system:serviceaccount:{namespace}:slurm-operator"
    wait_until_allowed(kubectl, user, "create", "configmaps", namespace)
    owner = kubectl.get("nodesets.slinky.slurm.net", "slurm", f"--namespace={namespace}")["metadata"]
    reference = {
        "apiVersion": api_version,
        "kind": "NodeSet",
        "name": "slurm",
        "uid": owner["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    dependent = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "dependent", "namespace": namespace, "ownerReferences": [reference]},
    }
    kubectl("apply", "--server-side", f"--as={user}", "--filename=-", stdin=yaml.safe_dump(dependent))


def test_the_kustomize_base_is_taken(control_plane: ControlPlane) -> None:
    path = f"--kustomize={ROOT / 'config/default'}"
    kubectl = control_plane.kubectl
    kubectl("apply", path)
    dry = kubectl("apply", "--dry-run=server", path)
    assert {line.split()[1] for line in dry.splitlines()} == {"unchanged"}


def test_everything_optional_is_taken(control_plane: ControlPlane, namespace: str) -> None:
    values: dict[str, Any] = {
        "replicas": 3,
        "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "extraEnv": [{"name": "A", "value": "b"}],
        "imagePullSecrets": [{"name": "registry"}],
    }
    objects = render(values=values, namespace=namespace)
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    control_plane.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=items)


def test_what_the_notes_show_can_be_applied(control_plane: ControlPlane, namespace: str, install: Install) -> None:
    notes = install()
    wait_until_kinds_are_served(control_plane.kubectl)
    shown = notes.partition("<<EOF\n")[2].partition("EOF\n")[0]
    manifests = "\n".join(line.removeprefix("  ") for line in shown.splitlines())
    assert "kind: NodeSet" in manifests
    arguments = ("apply", "--dry-run=server", "--validate=strict", f"--namespace={namespace}")
    control_plane.kubectl(*arguments, "--filename=-", stdin=manifests)
    for sample in sorted((ROOT / "config/samples").glob("*.yaml")):
        control_plane.kubectl(*arguments, f"--filename={sample}")


def test_a_slurm_cluster_can_be_installed_by_helm(control_plane: ControlPlane, namespace: str) -> None:
    kubectl = control_plane.kubectl
    apply_crds(kubectl)
    release = ("slurm", str(SLURM_CHART), f"--namespace={namespace}")
    run_helm(control_plane, "install", *release)
    kubectl("scale", "nodesets.slinky.slurm.net", "compute", "--replicas=5", f"--namespace={namespace}")
    compute = {"replicas": 2, "partition": {"config": "Default=YES"}}
    more = {"nodesets": {"burst": {"replicas": 0, "features": ["spot"]}, "compute": compute}}
    run_helm(control_plane, "upgrade", *release, values=more)
    found = kubectl.get("nodesets.slinky.slurm.net", f"--namespace={namespace}")["items"]
    # An upgrade that does not touch the number leaves alone what was scaled by hand.
    assert {obj["metadata"]["name"]: obj["spec"]["replicas"] for obj in found} == {"burst": 0, "compute": 5}
    run_helm(control_plane, "uninstall", "slurm", f"--namespace={namespace}")
    assert not kubectl.get("clusters.slinky.slurm.net,nodesets.slinky.slurm.net", f"--namespace={namespace}")["items"]


def test_a_release_may_have_a_name_that_yaml_takes_for_a_truth_value(
    control_plane: ControlPlane, namespace: str
) -> None:
    kubectl = control_plane.kubectl
    apply_crds(kubectl)
    run_helm(
        control_plane, "install", "on", str(SLURM_CHART), f"--namespace={namespace}", values={"nodesets": {"off": {}}}
    )
    (nodeset,) = kubectl.get("nodesets.slinky.slurm.net", f"--namespace={namespace}")["items"]
    assert (nodeset["metadata"]["name"], nodeset["spec"]) == ("off", {"clusterName": "on"})


def test_values_of_slinkys_chart_install_nothing(control_plane: ControlPlane, namespace: str) -> None:
    kubectl = control_plane.kubectl
    apply_crds(kubectl)
    slinky = {"nodesets": {"slinky": {"enabled": True, "slurmd": {"resources": {"limits": {"nvidia.com/gpu": 1}}}}}}
    with pytest.raises(AssertionError, match=r"nodesets\.slinky\.slurmd\.resources: resources of the NodeSet"):
        run_helm(control_plane, "install", "slurm", str(SLURM_CHART), f"--namespace={namespace}", values=slinky)
    assert not kubectl.get("clusters.slinky.slurm.net,nodesets.slinky.slurm.net", f"--namespace={namespace}")["items"]
