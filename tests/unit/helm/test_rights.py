"""The rights that the chart gives the operator: no more than it needs, and only where requested."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from hack.packaging.render import ROOT, render
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.controllers import wanted
from slinky_operator.kube import resources
from slinky_operator.nodeset.model.pods import guard
from slinky_operator.settings import Settings
from tests.unit.test_controllers import EVERYTHING

NODESET = NodeSet.parse({"metadata": {"name": "a", "uid": "u"}, "spec": {"clusterName": "c"}})
READ_MANY = {"list", "watch", "deletecollection"}
CASES = [
    pytest.param({}, id="all namespaces"),
    pytest.param({"watchNamespaces": ["a", "b"]}, id="two namespaces"),
    pytest.param({"watchNamespaces": ["a"], "watchNodes": True}, id="one namespace and Nodes"),
    pytest.param({"watchNodes": False}, id="without Nodes"),
    pytest.param({"nodeLabels": {"enabled": True}}, id="labels of Nodes"),
    pytest.param({"jobs": {"enabled": True, "sylabs": True}}, id="jobs"),
]


def roles(values: dict[str, Any], *, users: bool = False) -> list[dict[str, Any]]:
    """Roles of the operator itself, or those of its users too."""
    return [
        obj
        for obj in render(values=values)
        if obj["kind"] in {"Role", "ClusterRole"}
        and (users or not any("aggregate" in label for label in obj["metadata"]["labels"]))
    ]


def grants(role: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Pairs of `resource.group` and verb."""
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield (f"{resource}.{group}" if group else resource), verb


@pytest.mark.parametrize("values", CASES)
def test_nothing_is_granted_by_wildcard(values: dict[str, Any]) -> None:
    for role in roles(values, users=True):
        for rule in role["rules"]:
            assert "nonResourceURLs" not in rule
            assert not any("*" in word for words in rule.values() for word in words)


@pytest.mark.parametrize("values", CASES)
def test_secrets_can_be_read_by_name_only(values: dict[str, Any]) -> None:
    for role in roles(values, users=True):
        assert not {verb for resource, verb in grants(role) if resource == "secrets"} & READ_MANY


@pytest.mark.parametrize("values", CASES)
def test_no_right_leads_to_more_rights(values: dict[str, Any]) -> None:
    for role in roles(values):
        for resource, verb in grants(role):
            assert verb not in {"bind", "escalate", "impersonate", "deletecollection"}
            assert resource not in {"pods/exec", "pods/attach", "pods/ephemeralcontainers", "serviceaccounts/token"}
            assert not resource.endswith((".rbac.authorization.k8s.io", ".admissionregistration.k8s.io"))
            # Users own these; the operator only writes down what it has seen. A Cluster's spec may have LoginSets, and
            # an exporter with a Token; SlurmJobs go after their time, and are made of objects of the old kinds.
            if resource.endswith("s.slinky.slurm.net") and not resource.startswith(
                ("loginsets.", "tokens.", "slurmjobs.")
            ):
                assert verb not in {"create", "delete"}


def test_outside_namespaces_only_nodes_are_read() -> None:
    cluster_wide = [role for role in roles({}) if role["kind"] == "ClusterRole"]
    verbs = {verb for role in cluster_wide for resource, verb in grants(role) if resource == "nodes"}
    assert verbs == {"get", "list", "watch"}


def test_labels_of_nodes_are_written_through_their_status_and_only_if_asked_for() -> None:
    (plain,) = [role for role in roles({}) if role["kind"] == "ClusterRole"]
    (more,) = [role for role in roles({"nodeLabels": {"enabled": True}}) if role["kind"] == "ClusterRole"]
    assert set(grants(more)) - set(grants(plain)) == {("nodes/status", "patch")}


def test_requests_to_drain_are_listed_in_their_namespace_and_only_if_asked_for() -> None:
    group = "nvsentinel.nvidia.com"
    found = [role for role in roles({"drainRequestsNamespace": "nv"}) if any(group in one for one, _ in grants(role))]

    assert [(role["kind"], role["metadata"]["namespace"]) for role in found] == [("Role", "nv")]
    assert {verb for _, verb in grants(found[0])} == {"list", "patch"}
    assert not [role for role in roles({}) if any(group in one for one, _ in grants(role))]


def test_a_namespaced_install_has_nothing_outside_its_namespaces() -> None:
    objects = render(values={"watchNamespaces": ["a", "b"]}, namespace="ops")
    assert not [obj["kind"] for obj in objects if obj["kind"].startswith("Cluster")]
    assert {obj["metadata"]["namespace"] for obj in objects} == {"a", "b", "ops"}
    bound = {
        obj["metadata"]["namespace"]: {(subject["name"], subject["namespace"]) for subject in obj["subjects"]}
        for obj in objects
        if obj["kind"] == "RoleBinding" and not obj["metadata"]["name"].endswith("-lease-view")
    }
    assert bound == {name: {("slurm-operator", "ops")} for name in ("a", "b", "ops")}


def test_a_namespaced_install_has_the_same_rights_there() -> None:
    (everywhere,) = [role for role in roles({"watchNodes": False}) if role["kind"] == "ClusterRole"]
    here = [role for role in roles({"watchNamespaces": ["a", "b"]}) if role["metadata"]["namespace"] in {"a", "b"}]
    reviews = "subjectaccessreviews.authorization.k8s.io"
    wanted = {(f"local{resource}" if resource == reviews else resource, verb) for resource, verb in grants(everywhere)}
    assert [set(grants(role)) for role in here] == [wanted] * 2


def test_nodes_alone_can_be_granted_beside_a_namespace() -> None:
    (cluster_wide,) = [
        role for role in roles({"watchNamespaces": ["a"], "watchNodes": True}) if role["kind"] == "ClusterRole"
    ]
    assert {resource for resource, _ in grants(cluster_wide)} == {"nodes"}


def test_the_lease_is_the_only_one_it_may_change() -> None:
    role, view = (role for role in roles({}) if role["kind"] == "Role")
    assert role["metadata"]["namespace"] == view["metadata"]["namespace"] == "slurm-operator"
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in role["rules"]] == [
        (["create"], None),
        (["get", "update"], ["slurm-operator"]),
    ]


def test_every_service_account_may_read_the_lease_and_no_other() -> None:
    """Releases for some namespaces, which may not list Leases elsewhere, see by it who serves theirs."""
    for values in ({}, {"watchNamespaces": ["a"]}):
        (view,) = [role for role in roles(values) if role["metadata"]["name"] == "slurm-operator-lease-view"]
        (rule,) = view["rules"]
        assert (rule["resources"], rule["resourceNames"], rule["verbs"]) == (["leases"], ["slurm-operator"], ["get"])
        bindings = [obj for obj in render(values=values) if obj["kind"] == "RoleBinding"]
        (binding,) = [one for one in bindings if one["roleRef"]["name"] == "slurm-operator-lease-view"]
        assert [one["name"] for one in binding["subjects"]] == ["system:serviceaccounts"]


def test_two_installs_do_not_share_roles() -> None:
    names = [
        (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"])
        for namespace in ("ops", "slurm-operator", "other")
        for obj in render(values={}, namespace=namespace)
        if obj["kind"] in {"ClusterRole", "ClusterRoleBinding"}
    ]
    assert len(names) == len(set(names))


def test_rights_can_be_left_to_others() -> None:
    assert not roles({"rbac": {"create": False}}, users=True)


METHODS: dict[str, set[str]] = {
    "create": {"create"},
    "apply": {"create", "patch"},
    "merge_patch": {"patch"},
    "json_patch": {"patch"},
    "patch_status": {"patch"},
    "apply_status": {"patch"},
    "replace": {"update"},
    "scale": {"patch"},
    "delete": {"delete"},
    # Actions of the Cluster controller; its children are applied, and deleted with it.
    "Child": {"create", "patch", "delete"},
    "SetFinalizer": {"patch"},
}
"""What a call with a resource as its first argument needs; `kube/calls/writing.py` sends it."""
FUNCTIONS: dict[str, set[str]] = {"set_finalizer": {"patch"}}
"""What a function needs whose first argument is the API server, and its second one a resource."""


def written_in_code() -> set[tuple[str, str]]:
    """Pairs of resource and verb that some call in the operator needs."""
    # The skeleton of all controllers writes the status of each one's kind.
    found = {(f"{controller.resource.plural}/status", "patch") for controller in wanted(Settings(**EVERYTHING))}
    for path in (ROOT / "slinky_operator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            verbs, of = (FUNCTIONS[name], node.args[1:2]) if name in FUNCTIONS else (METHODS.get(name), node.args[:1])
            resource = getattr(resources, of[0].id, None) if of and isinstance(of[0], ast.Name) else None
            if verbs is None or not isinstance(resource, resources.Resource):
                continue
            parts = [_text(one.value) for one in node.keywords if one.arg == "subresource"]
            parts += ["status"] if name.endswith("status") else []
            where = f"{resource.plural}/{parts[0]}" if parts else resource.plural
            found |= {(where, verb) for verb in verbs}
    return found


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


def test_no_right_to_write_is_granted_that_no_call_needs() -> None:
    granted = {
        (resource.split(".")[0], verb)
        for role in roles({})
        for resource, verb in grants(role)
        if verb not in {"get", "list", "watch"}
    }
    # The API server asks for it because of owners that their dependents block.
    assert any(one.get("blockOwnerDeletion") for one in guard.owners(NODESET, "uid"))
    assert granted - written_in_code() == {("nodesets/finalizers", "update")}


def test_owners_whose_finalizers_may_not_be_updated_are_not_blocked() -> None:
    assert [one["kind"] for one in guard.owners(NODESET, "uid") if one.get("blockOwnerDeletion")] == ["NodeSet"]
