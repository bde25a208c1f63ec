"""Artifact Hub gets kinds, images and changes of the charts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hack.release.contents import artifacthub
from hack.release.parameters import ROOT, Parameters
from slinky_api.v1alpha1 import KINDS

GIVEN = Parameters("1.2.3", "registry.example.com/slurm", "https://git.example.com/s", "abc", is_dirty=False, epoch=0)


def said(chart: str) -> dict[str, str]:
    found = artifacthub.described(ROOT / "helm" / chart, GIVEN, ROOT)
    return {key.removeprefix("artifacthub.io/"): value for key, value in found.items()}


def test_the_operators_chart_names_its_kinds_and_images() -> None:
    found = said("slurm-operator")
    assert found["operator"] == "true"
    kinds = yaml.safe_load(found["crds"])
    assert [kind["kind"] for kind in kinds] == sorted(kind.kind for kind, _ in KINDS)
    assert all(kind["name"].endswith(".slinky.slurm.net") and kind["description"] for kind in kinds)
    images = {one["name"]: one["image"] for one in yaml.safe_load(found["images"])}
    assert images["slurm-operator"] == "registry.example.com/slurm/slurm-operator:1.2.3"
    assert images["slurmd-26.05"] == "registry.example.com/slurm/slurmd:26.05"
    # All that the chart's defaults and the documents name.
    shipped = {path.name for path in (ROOT / "containers").iterdir() if path.is_dir()} - {"slurm", "operator"}
    not_released = {"operator-sync", "pyxis", "slapd", "slurmd-entrypoint"}
    assert shipped - not_released <= {name.removesuffix("-26.05") for name in images}


def test_changes_of_a_release_are_those_of_its_section(tmp_path: Path) -> None:
    (tmp_path / "changes").mkdir()
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.3\n\n### Fixed\n\n- **A** of `b`. More.\n\n## 1.2.2\n"
    )
    found = artifacthub.described(ROOT / "helm" / "slurm-operator", GIVEN, tmp_path)
    assert yaml.safe_load(found["artifacthub.io/changes"]) == [{"kind": "fixed", "description": "A of b"}]


def test_changes_are_sentences_without_markdown() -> None:
    for change in yaml.safe_load(said("slurm-operator").get("changes", "[]")):
        assert change["kind"] in {"added", "changed", "fixed"}
        assert change["description"]
        assert not re.search(r"\*\*|`|\]\(", change["description"]), change


@pytest.mark.parametrize(
    "chart",
    [
        "slurm",
        "slurm-bridge",
        "slurm-exporter",
        "slurm-jobs",
        "slurm-node-life",
        "slurm-sylabs-jobs",
        "slurm-virtual-nodes",
    ],
)
def test_other_charts_say_what_they_have(chart: str) -> None:
    found = said(chart)
    assert found["license"] == "Apache-2.0"
    assert ("crds" in found) == (ROOT / "helm" / chart / "crds").is_dir()
    assert "operator" not in found
