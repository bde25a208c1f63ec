"""The kinds of sylabs' operators: their chart, and what the operator's chart adds for them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hack.packaging.render import ROOT, helm, render
from slinky_operator.settings import Settings
from slinky_operator.sylabs.kinds import KINDS
from tests.unit.helm.test_rights import grants, roles

CHART = ROOT / "helm" / "slurm-sylabs-jobs"
NAMES = {str(kind.resource) for kind in KINDS}


def test_lint_has_no_complaint() -> None:
    run = helm("lint", "--strict", str(CHART))
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_chart_has_the_kinds_that_the_operator_reads() -> None:
    crds = [yaml.safe_load(path.read_text()) for path in (CHART / "crds").iterdir()]
    assert {crd["metadata"]["name"] for crd in crds} == NAMES
    assert {
        (crd["spec"]["group"], crd["spec"]["names"]["plural"], crd["spec"]["versions"][0]["name"]) for crd in crds
    } == {(kind.resource.group, kind.resource.plural, kind.resource.version) for kind in KINDS}


def test_the_folder_of_kustomize_has_the_same_files() -> None:
    folder = ROOT / "config" / "crd" / "jobs" / "sylabs"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(path.name for path in (CHART / "crds").iterdir())
    for name in listed:
        assert (folder / name).read_text() == (CHART / "crds" / name).read_text()


@pytest.mark.parametrize("aggregate", [True, False])
def test_users_get_the_rights_of_their_namespace_only_if_wanted(aggregate: bool) -> None:
    found = render(CHART, {"rbac": {"aggregate": aggregate}}, release="old", namespace="ops")
    by_name = {role["metadata"]["name"]: set(grants(role)) for role in found}
    if not aggregate:
        assert by_name == {}
        return
    assert by_name["old-view"] == {(name, verb) for name in NAMES for verb in ("get", "list", "watch")}
    edit = ("create", "update", "patch", "delete", "deletecollection")
    assert by_name["old-edit"] == {(name, verb) for name in NAMES for verb in edit}


def granted(jobs: dict[str, Any]) -> set[tuple[str, str]]:
    return {pair for role in roles({"jobs": jobs}) for pair in grants(role)}


def test_the_operator_gets_no_more_rights_than_it_uses() -> None:
    more = granted({"enabled": True, "sylabs": True}) - granted({"enabled": True})
    reads = {(name, verb) for name in NAMES for verb in ("get", "list", "watch")}
    writes = {(f"{kind.resource.plural}/status.{kind.resource.group}", "patch") for kind in KINDS}
    assert more == reads | writes | {("slurmjobs.slinky.slurm.net", "create")}


def test_the_operator_runs_them_only_if_asked_to() -> None:
    for jobs in ({}, {"enabled": True}, {"enabled": True, "sylabs": True}):
        (deployment,) = [one for one in render(values={"jobs": jobs}) if one["kind"] == "Deployment"]
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert Settings.load(arguments, {}).sylabs_jobs is bool(jobs.get("sylabs"))
