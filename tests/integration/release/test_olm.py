"""The bundle for the Operator Lifecycle Manager has the objects and the rights of the chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.packaging.render import OPERATOR_CHART, render
from hack.release import version

pytestmark = pytest.mark.full

VERSION = version.current()


@pytest.fixture(scope="module")
def manifests(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.name: yaml.safe_load(path.read_text()) for path in sorted((folder / "olm/manifests").glob("*.yaml"))}


@pytest.fixture(scope="module")
def said(manifests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = manifests["slurm-operator.clusterserviceversion.yaml"]
    return found


def test_it_has_the_version_and_all_kinds(said: dict[str, Any], manifests: dict[str, dict[str, Any]]) -> None:
    assert said["metadata"]["name"] == f"slurm-operator.v{VERSION}"
    owned = [one["name"] for one in said["spec"]["customresourcedefinitions"]["owned"]]
    assert owned == [one["metadata"]["name"] for one in manifests.values() if one["kind"] == "CustomResourceDefinition"]
    assert len(owned) == len(list((OPERATOR_CHART / "crds").glob("*.yaml")))


def test_the_operator_has_the_rights_that_the_chart_gives_it(said: dict[str, Any]) -> None:
    install = said["spec"]["install"]["spec"]
    rendered = render()
    for field, kind in (("clusterPermissions", "ClusterRole"), ("permissions", "Role")):
        bound = {
            one["roleRef"]["name"]
            for one in rendered
            if one["kind"] == f"{kind}Binding" and one["subjects"][0]["kind"] == "ServiceAccount"
        }
        wanted = [
            rule
            for one in rendered
            if one["kind"] == kind and one["metadata"]["name"] in bound
            for rule in one["rules"]
        ]
        given = [rule for one in install[field] for rule in one["rules"]]
        assert sorted(given, key=yaml.safe_dump) == sorted(wanted, key=yaml.safe_dump)
        assert given
    (deployment,) = install["deployments"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"].endswith(f"/slurm-operator:{VERSION}")


def test_what_lies_beside_it_belongs_to_no_namespace(manifests: dict[str, dict[str, Any]]) -> None:
    beside = {
        (one["kind"], one["metadata"]["name"])
        for one in manifests.values()
        if one["kind"] not in {"CustomResourceDefinition", "ClusterServiceVersion"}
    }
    assert beside == {
        *(("Role", "slurm-operator-lease-view"), ("RoleBinding", "slurm-operator-lease-view")),
        ("Service", "slurm-operator-metrics"),
    }
    assert not any(one["metadata"].get("namespace") for one in manifests.values())


def test_the_bundle_says_what_it_is(folder: Path) -> None:
    said = yaml.safe_load((folder / "olm/metadata/annotations.yaml").read_text())["annotations"]
    assert said["operators.operatorframework.io.bundle.package.v1"] == "slurm-operator"
    assert said["operators.operatorframework.io.bundle.manifests.v1"] == "manifests/"
