"""Each kind of the API is in every list of kinds that is written by hand.

Files of CRDs are compared elsewhere (`tests/unit/api/test_crd_files.py`), and controllers with their rights
(`tests/unit/helm/test_rights.py`).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from hack.packaging.render import OPERATOR_CHART, ROOT, render
from kubectl_slurm.access import kinds
from slinky_api.resource import Resource
from slinky_api.sylabs import OLD_JOB_KINDS
from slinky_api.v1alpha1 import JOB_KINDS, KINDS
from slinky_api.v1alpha1.common import ApiObject
from slinky_operator.kube import resources
from slinky_operator.metrics import objects
from tests.unit.helm.test_rights import grants

READ: Final = {"get", "list", "watch"}
CHANGE: Final = {"create", "update", "patch", "delete", "deletecollection"}
CHARTS: Final = (
    (OPERATOR_CHART, KINDS),
    (ROOT / "helm" / "slurm-jobs", JOB_KINDS),
    (ROOT / "helm" / "slurm-sylabs-jobs", OLD_JOB_KINDS),
)


def of(listed: tuple[tuple[Resource, Any], ...]) -> list[Resource]:
    return [resource for resource, _ in listed]


def operators(resource: Resource) -> resources.Resource:
    """The kind as the operator has it."""
    return resources.Resource(resource.group, resource.version, resource.plural, resource.kind)


OURS: Final = of((*KINDS, *JOB_KINDS))
ALL: Final = [*OURS, *of(OLD_JOB_KINDS)]


@pytest.mark.parametrize("resource", ALL, ids=lambda one: one.full_name)
def test_the_operator_knows_the_kind(resource: Resource) -> None:
    assert operators(resource) in vars(resources).values()


def test_each_kind_of_jobs_is_counted() -> None:
    assert {*objects.JOB_KINDS} == {operators(resource) for resource in of((*JOB_KINDS, *OLD_JOB_KINDS))}


def test_the_plugin_knows_the_kinds_of_this_project() -> None:
    known = [(one.group, one.version, one.plural, one.name) for one in kinds.OURS]
    assert known == [(one.group, one.version, one.plural, one.kind) for one in OURS]


def test_make_uninstall_looks_for_objects_of_each_kind() -> None:
    command = ["make", "--print-data-base", "--question", "help"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    (listed,) = re.findall(r"^KINDS := (.*)$", printed, re.MULTILINE)
    assert sorted(listed.split()) == sorted(one.plural for one in OURS)


@pytest.mark.parametrize("resource", KINDS, ids=lambda one: one[0].full_name)
def test_the_fields_of_each_kind_are_tried(resource: tuple[Resource, type[ApiObject]]) -> None:
    """Of jobs `tests/unit/slurmjob/test_fields.py` does; that a field of a NodeSet acts, its own tests show."""
    spec = resource[1].model_fields["spec"].annotation
    assert isinstance(spec, type)
    tests = ROOT / "tests" / "unit"
    assert f"silent({spec.__name__}, " in (tests / "test_every_field_counts.py").read_text()
    asked = re.compile(rf"fields_of\({spec.__name__}\)|\({spec.__name__}, [A-Z]+\)")
    acting = [path for path in tests.glob("test_every_field_*acts.py") if asked.search(path.read_text())]
    assert acting or resource[0].kind == "NodeSet"


@pytest.mark.parametrize(
    ("folder", "listed"),
    [("config/crd", KINDS), ("config/crd/jobs", JOB_KINDS), ("config/crd/jobs/sylabs", OLD_JOB_KINDS)],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_kustomize_installs_each_kind(folder: str, listed: tuple[tuple[Resource, Any], ...]) -> None:
    files = yaml.safe_load((ROOT / folder / "kustomization.yaml").read_text())["resources"]
    assert sorted(files) == sorted(f"{one.group}_{one.plural}.yaml" for one in of(listed))


@pytest.mark.parametrize(("chart", "listed"), CHARTS, ids=lambda one: one.name if isinstance(one, Path) else "")
def test_users_of_a_namespace_may_read_and_change_objects_of_each_kind(
    chart: Path, listed: tuple[tuple[Resource, Any], ...]
) -> None:
    roles = [one for one in render(chart) if "aggregate" in str(one["metadata"].get("labels"))]
    granted = {pair for role in roles for pair in grants(role)}
    wanted = {(one.full_name, verb) for one in of(listed) for verb in READ | CHANGE}
    scaled = [f"{one.plural}/scale.{one.group}" for one in of(listed) if one.scale is not None]
    wanted |= {(name, verb) for name in scaled for verb in READ | {"update", "patch"}}
    assert granted == wanted
