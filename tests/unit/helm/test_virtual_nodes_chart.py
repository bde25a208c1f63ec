"""The chart slurm-virtual-nodes: rights of virtual Nodes, where they count, and the policy that bounds them."""

from __future__ import annotations

from typing import Any

import pytest

from hack.packaging.errors import RenderFailed
from hack.packaging.render import ROOT, helm, render
from slinky_api.labels import LABEL_VIRTUAL_NODE
from tests.unit.helm.test_rights import grants, roles

CHART = ROOT / "helm" / "slurm-virtual-nodes"


def rendered(values: dict[str, Any] | None = None, *extra: str) -> list[dict[str, Any]]:
    return render(CHART, values or {}, release="slurm-virtual-nodes", extra=extra)


def granted(values: dict[str, Any] | None = None, kind: str = "ClusterRole", namespace: str | None = None) -> set[Any]:
    found = [one for one in rendered(values) if one["kind"] == kind and one["metadata"].get("namespace") == namespace]
    return {pair for role in found for pair in grants(role)}


def test_lint_has_no_complaint() -> None:
    run = helm("lint", "--strict", str(CHART))
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_operators_own_chart_gives_none_of_the_dangerous_rights() -> None:
    own = {pair for role in roles({"jobs": {"enabled": True}}) for pair in grants(role)}
    for pair in (("nodes", "create"), ("nodes", "delete"), ("nodes", "patch"), ("nodes/status", "patch")):
        assert pair not in own
    assert not any(resource.startswith("tokenreviews") for resource, _ in own)


def test_only_what_section_and_policy_name_is_granted() -> None:
    everywhere = granted()
    assert ("nodes/status", "patch") in everywhere
    assert ("pods", "delete") in everywhere
    assert not {verb for resource, verb in everywhere if resource.startswith("secrets")}
    assert not any("*" in f"{resource}{verb}" for resource, verb in everywhere)
    assert granted(kind="Role", namespace="kube-node-lease") == {
        ("leases.coordination.k8s.io", verb) for verb in ("get", "create", "patch")
    }


def test_pods_are_asked_through_the_api_server_in_the_operators_own_namespace_only() -> None:
    values = {"operator": {"namespace": "ops", "serviceAccount": "op"}, "tenants": ["physics"]}
    where = {
        one["metadata"].get("namespace")
        for one in rendered(values)
        if one["kind"].endswith("Role") and any("/proxy" in resource for resource, _ in grants(one))
    }
    assert where == {"ops"}
    assert granted(values, "Role", "ops") == {("pods/proxy", "get")}


def test_rights_on_pods_may_be_those_of_tenants_alone() -> None:
    values = {"tenants": ["physics", "chemistry"]}
    everywhere = granted(values)
    of_tenants = granted(values, "Role", "physics")
    assert {verb for resource, verb in everywhere if resource == "pods"} == {"get", "list", "watch"}
    assert ("pods/status", "patch") not in everywhere
    assert of_tenants == granted(values, "Role", "chemistry")
    assert of_tenants == granted() - everywhere


def test_everything_is_bound_to_the_operators_account() -> None:
    values = {"operator": {"namespace": "ops", "serviceAccount": "op"}, "tenants": ["physics"]}
    bindings = [one for one in rendered(values) if one["kind"].endswith("RoleBinding")]
    assert {one["metadata"].get("namespace") for one in bindings} == {
        *(None, "kube-node-lease", "kube-system", "ops", "physics")
    }
    for one in bindings:
        assert one["subjects"] == [{"kind": "ServiceAccount", "name": "op", "namespace": "ops"}]


def test_each_policy_is_bound_denies_and_concerns_the_operator_alone() -> None:
    found = rendered({"operator": {"namespace": "ops", "serviceAccount": "op"}})
    policies = {one["metadata"]["name"]: one["spec"] for one in found if one["kind"] == "ValidatingAdmissionPolicy"}
    bindings = [one["spec"] for one in found if one["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert {one["policyName"] for one in bindings} == set(policies)
    assert len(policies) == 3
    assert all(one["validationActions"] == ["Deny"] for one in bindings)
    for policy in policies.values():
        assert policy["failurePolicy"] == "Fail"
        assert policy["matchConditions"][0]["expression"] == (
            "request.userInfo.username == 'system:serviceaccount:ops:op'"
        )
    assert any(LABEL_VIRTUAL_NODE in one["expression"] for one in policies["slurm-virtual-nodes-nodes"]["variables"])


def test_hosts_narrow_what_counts_as_virtual() -> None:
    found = rendered({"policy": {"hosts": ["a", "b"]}})
    (pods,) = [one for one in found if one["metadata"]["name"].endswith("-pods") and one["kind"].endswith("Policy")]
    (rule,) = pods["spec"]["validations"]
    assert rule["expression"] == "(variables.node.startsWith('slurm-a-') || variables.node.startsWith('slurm-b-'))"


@pytest.mark.parametrize(
    "values", [{"policy": {"hosts": ["a'b"]}}, {"tenants": ["A"]}, {"operator": {"namespace": ""}}]
)
def test_values_that_would_break_an_expression_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(RenderFailed):
        rendered(values)


def test_kubernetes_without_policies_gets_none() -> None:
    old = rendered({}, "--kube-version=1.29.0")
    assert not [one for one in old if "Admission" in one["kind"]]
    assert len(old) == len([one for one in rendered({"policy": {"create": False}}) if "Admission" not in one["kind"]])
