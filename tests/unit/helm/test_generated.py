"""Files generated from the chart are committed unchanged."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from hack.localkube.programs import build
from hack.packaging.__main__ import generated, main
from hack.packaging.errors import UndocumentedValue
from hack.packaging.render import OPERATOR_CHART, ROOT, SLURM_CHART, render
from hack.packaging.values_table import values
from slinky_api.v1alpha1 import KINDS


def test_nothing_has_drifted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0, capsys.readouterr().out


def test_a_drift_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write"], tmp_path) == 0
    assert main(["check"], tmp_path) == 0
    deployment = tmp_path / "config/manager/deployment.yaml"
    deployment.write_text(deployment.read_text().replace("replicas: 1", "replicas: 2"))
    assert main(["check"], tmp_path) == 1
    assert "-  replicas: 2\n+  replicas: 1\n" in capsys.readouterr().out


def test_no_file_is_left_over() -> None:
    folders = {ROOT / "config" / name for name in ("rbac", "manager", "default")}
    there = {str(path.relative_to(ROOT)) for folder in folders for path in folder.iterdir()}
    assert there == {path for path in generated() if path.startswith("config/")}


def test_kustomize_builds_all_that_the_chart_renders() -> None:
    build.ensure(build.KUBERNETES)
    command = [str(build.tool("kubectl")), "kustomize", str(ROOT / "config/default")]
    built = list(yaml.safe_load_all(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in built}
    crds = {("CustomResourceDefinition", f"{kind.plural}.{kind.group}") for kind, _ in KINDS}
    assert names == {(obj["kind"], obj["metadata"]["name"]) for obj in render()} | crds | {
        ("Namespace", "slurm-operator")
    }
    assert not any("helm.sh/chart" in obj["metadata"].get("labels", {}) for obj in built)


def test_every_value_is_described() -> None:
    table = list(values(OPERATOR_CHART / "values.yaml"))
    assert len({value.path for value in table}) == len(table)
    assert {"replicas", "watchNamespaces", "slurm.images.slurmd", "affinity"} <= {value.path for value in table}


def test_a_value_without_words_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("# What a is.\na: 1\nb:\n  # What c is.\n  c: []\n\n  d: {}\n")
    with pytest.raises(UndocumentedValue, match=r"b\.d"):
        list(values(file))


def test_the_installation_guide_names_only_values_that_exist() -> None:
    known = {value.path for chart in (OPERATOR_CHART, SLURM_CHART) for value in values(chart / "values.yaml")}
    guide = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    given = set(re.findall(r"--set(?:-string)? '?([\w.]+)=", guide))
    assert given
    assert given <= known
