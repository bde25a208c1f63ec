"""The chart slurm-node-life: rights on Nodes and machines as the values name them, and a policy around them."""

from __future__ import annotations

from typing import Any

import pytest

from hack.packaging.errors import RenderFailed
from hack.packaging.render import ROOT, helm, render
from slinky_api import labels
from tests.unit.helm.test_rights import grants, roles

CHART = ROOT / "helm" / "slurm-node-life"
NODE_LIFE = {"namespaces": ["hpc"], "nodeLabel": "own=yes", "rebootBy": "example.com/reboot", "deleteNodes": True}


def rendered(values: dict[str, Any] | None = None, *extra: str) -> list[dict[str, Any]]:
    return render(CHART, values or {}, release="slurm-node-life", extra=extra)


def granted(**values: Any) -> set[tuple[str, str]]:
    return {pair for one in rendered(values) if one["kind"] == "ClusterRole" for pair in grants(one)}


def test_lint_has_no_complaint() -> None:
    run = helm("lint", "--strict", str(CHART))
    assert run.returncode == 0, run.stdout + run.stderr


def test_each_right_is_asked_for_by_name() -> None:
    least = {("nodes", "get"), ("nodes", "patch"), ("pods", "list")}
    assert granted() == least
    reboots = {("rebootnodes.janitor.dgxc.nvidia.com", "get"), ("rebootnodes.janitor.dgxc.nvidia.com", "create")}
    assert granted(rebootNodes=True) == least | reboots
    machines = {("machines.cluster.x-k8s.io", "get"), ("machines.cluster.x-k8s.io", "delete")}
    assert granted(machines=True) == least | machines
    assert granted(deleteNodes=True) == least | {("nodes", "delete")}


def test_the_operators_own_chart_writes_no_node() -> None:
    own = {pair for role in roles({"nodeLife": NODE_LIFE}) for pair in grants(role)}
    assert {verb for resource, verb in own if resource == "nodes"} == {"get", "list", "watch"}


def test_a_policy_bounds_what_is_written_on_nodes() -> None:
    kinds = {one["kind"] for one in rendered()}
    assert "ValidatingAdmissionPolicy" in kinds
    (policy,) = (one for one in rendered() if one["kind"] == "ValidatingAdmissionPolicy")
    assert f"'{labels.ANNOTATION_NODE_MACHINE}'" in policy["spec"]["variables"][0]["expression"]
    assert "ValidatingAdmissionPolicy" not in {one["kind"] for one in rendered({"policy": {"create": False}})}
    assert "ValidatingAdmissionPolicy" not in {one["kind"] for one in rendered({}, "--kube-version=1.29.0")}


def test_the_operators_settings_are_passed_on_and_off_by_default() -> None:
    def flags(values: dict[str, Any]) -> list[str]:
        (deployment,) = (one for one in render(ROOT / "helm" / "slurm-operator", values) if one["kind"] == "Deployment")
        arguments: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        return [one for one in arguments if one.startswith(("--machine", "--reboot", "--delete-nodes"))]

    assert flags({}) == []
    assert flags({"nodeLife": NODE_LIFE}) == [
        "--machine-namespaces=hpc",
        "--machine-label=own=yes",
        "--reboot-by=example.com/reboot",
        "--delete-nodes",
    ]


@pytest.mark.parametrize(
    "values", [{"watchNamespaces": ["hpc"]}, {"watchNodes": False}], ids=["some namespaces", "no Nodes"]
)
def test_without_nodes_it_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(RenderFailed, match=r"nodeLife\.namespaces"):
        render(ROOT / "helm" / "slurm-operator", {"nodeLife": NODE_LIFE, **values})


@pytest.mark.parametrize("field", [name for name in NODE_LIFE if name != "namespaces"])
def test_what_has_no_effect_without_namespaces_is_refused(field: str) -> None:
    with pytest.raises(RenderFailed, match=r"need nodeLife\.namespaces"):
        render(ROOT / "helm" / "slurm-operator", {"nodeLife": {field: NODE_LIFE[field]}})
