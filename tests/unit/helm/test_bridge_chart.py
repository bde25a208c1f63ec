"""The chart slurm-bridge: rights on pods that Slurm places, where they count, and the policies that bound them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.packaging.errors import RenderFailed
from hack.packaging.render import ROOT, helm, render
from slinky_api import labels
from tests.unit.helm.test_rights import grants, roles

CHART = ROOT / "helm" / "slurm-bridge"


def rendered(values: dict[str, Any] | None = None, *extra: str) -> list[dict[str, Any]]:
    return render(CHART, values or {}, release="slurm-bridge", extra=extra)


def granted(values: dict[str, Any] | None = None, kind: str = "ClusterRole", namespace: str | None = None) -> set[Any]:
    found = [one for one in rendered(values) if one["kind"] == kind and one["metadata"].get("namespace") == namespace]
    return {pair for role in found for pair in grants(role)}


def policies(values: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Policies by the last word of their names."""
    return {
        one["metadata"]["name"].removeprefix("slurm-bridge-"): one["spec"]
        for one in rendered(values)
        if one["kind"] == "ValidatingAdmissionPolicy"
    }


def test_lint_has_no_complaint() -> None:
    run = helm("lint", "--strict", str(CHART))
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_operators_own_chart_evicts_nobody() -> None:
    own = {pair for role in roles({"jobs": {"enabled": True}}) for pair in grants(role)}
    assert ("pods/eviction", "create") not in own
    assert not {verb for resource, verb in own if resource == "jobs.batch"}


def test_nodes_are_read_and_nothing_is_bound() -> None:
    everywhere = granted()
    assert {verb for resource, verb in everywhere if resource.startswith("nodes")} == {"get", "list", "watch"}
    assert not {verb for resource, verb in everywhere if resource.startswith(("secrets", "pods/binding", "bindings"))}
    assert {verb for resource, verb in everywhere if resource == "pods"} == {"get", "list", "watch", "patch"}
    assert not any("*" in f"{resource}{verb}" for resource, verb in everywhere)


def test_rights_to_write_may_be_those_of_tenants_alone() -> None:
    values = {"tenants": ["physics", "chemistry"]}
    everywhere = granted(values)
    of_tenants = granted(values, "Role", "physics")
    assert {verb for _, verb in everywhere} == {"get", "list", "watch"}
    assert ("pods/eviction", "create") in of_tenants
    assert of_tenants == granted(values, "Role", "chemistry")
    assert of_tenants == granted() - everywhere


def test_everything_is_bound_to_the_operators_account() -> None:
    values = {"operator": {"namespace": "ops", "serviceAccount": "op"}, "tenants": ["physics"]}
    bindings = [one for one in rendered(values) if one["kind"].endswith("RoleBinding")]
    assert {one["metadata"].get("namespace") for one in bindings} == {None, "physics"}
    for one in bindings:
        assert one["subjects"] == [{"kind": "ServiceAccount", "name": "op", "namespace": "ops"}]
    user = "request.userInfo.username == 'system:serviceaccount:ops:op'"
    found = policies(values)
    assert found["operator"]["matchConditions"][0]["expression"] == user
    (exempt,) = found["namespaces"]["matchConditions"]
    assert exempt["expression"].startswith(f"!({user} && ")
    assert "owner.kind == 'SlurmJob'" in exempt["expression"]
    assert {"name": "isOperator", "expression": user} in found["gate"]["variables"]


def test_each_policy_is_bound_and_denies() -> None:
    bindings = [one["spec"] for one in rendered() if one["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert [one["policyName"] for one in bindings] == [f"slurm-bridge-{name}" for name in policies()]
    assert all(one["validationActions"] == ["Deny"] for one in bindings)
    assert all(one["failurePolicy"] == "Fail" for one in policies().values())


def test_kubernetes_without_policies_gets_none() -> None:
    rights = rendered({"policy": {"create": False}})
    assert not [one for one in rights if "Admission" in one["kind"]]
    assert rendered({}, "--kube-version=1.29.0") == rights


def test_names_are_those_of_the_code() -> None:
    text = json.dumps(policies())
    for name in (
        labels.GATE_BRIDGE,
        labels.LABEL_BRIDGE_POD,
        labels.ANNOTATION_BRIDGE_SLURMJOB,
        labels.ANNOTATION_BRIDGE_SLOT,
        labels.ANNOTATION_BRIDGE_DEADLINE,
        labels.LABEL_BRIDGE_GROUP,
        labels.ANNOTATION_BRIDGE_MEMBERS,
        labels.ANNOTATION_BRIDGE_RANKS,
    ):
        assert f"'{name}'" in text
    chosen = policies()["namespaces"]["matchConstraints"]["namespaceSelector"]
    assert chosen == {"matchLabels": {labels.LABEL_BRIDGE_REQUIRED: "true"}}


def test_namespaces_are_chosen_by_any_labels() -> None:
    expression = {"key": "team", "operator": "Exists"}
    instead = {"matchLabels": {labels.LABEL_BRIDGE_REQUIRED: None}, "matchExpressions": [expression]}
    found = policies({"policy": {"namespaces": instead}})["namespaces"]["matchConstraints"]["namespaceSelector"]
    assert found == {"matchExpressions": [expression]}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"tenants": ["A"]}, "tenants"),
        ({"operator": {"namespace": ""}}, "namespace"),
        ({"operator": {"serviceAccount": "a'b"}}, "serviceAccount"),
        ({"policy": {"namespaces": {"matchLabels": None}}}, "would choose every namespace"),
        ({"policy": {"namespaces": {"matchLabels": {labels.LABEL_BRIDGE_REQUIRED: None}}}}, "every namespace"),
    ],
)
def test_values_that_would_break_a_policy_are_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(RenderFailed, match=words):
        rendered(values)


def test_devices_of_claims_are_a_right_of_their_own() -> None:
    assert not any("resource.k8s.io" in resource for resource, _ in granted())
    assert "claims" not in policies()
    values = {"devices": True, "tenants": ["physics"]}
    more = granted(values) - granted({"tenants": ["physics"]})
    kinds = {resource for resource, _ in more}
    assert kinds == {f"{one}.resource.k8s.io" for one in ("deviceclasses", "resourceclaims", "resourceslices")}
    assert {verb for _, verb in more} == {"get", "list", "watch"}
    of_tenants = granted(values, "Role", "physics") - granted({"tenants": ["physics"]}, "Role", "physics")
    assert {verb for _, verb in of_tenants} == {"patch"}
    assert {resource.partition(".")[0] for resource, _ in of_tenants} == {"resourceclaims", "resourceclaims/status"}
    assert policies(values)["claims"]["matchConditions"][0]["name"] == "is-the-operator"
