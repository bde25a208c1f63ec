"""The defaults of a released chart are images of the release, in its values and in its page."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hack.images.names import REGISTRY
from hack.release.contents import charts
from hack.release.parameters import ROOT, Parameters

GIVEN = Parameters("1.2.3", "registry.example.com/slurm", "https://git.example.com/s", "abc", is_dirty=False, epoch=0)
CHARTS = sorted(path.parent for path in (ROOT / "helm").glob("*/Chart.yaml"))


@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.name)
def test_no_default_is_an_image_of_a_developer(chart: Path, tmp_path: Path) -> None:
    staged = charts.stage(chart, tmp_path, GIVEN)
    for path in (staged / "values.yaml", *staged.glob("README.md"), *staged.glob("templates/**/*.*")):
        text = path.read_text(encoding="utf-8")
        assert REGISTRY not in text
        assert "slurm-operator:dev" not in text
        assert '"dev"' not in text
        assert "tag: dev" not in text


def test_the_test_of_the_chart_slurm_runs_in_the_operators_image(tmp_path: Path) -> None:
    staged = charts.stage(ROOT / "helm" / "slurm", tmp_path, GIVEN)
    values = yaml.safe_load((staged / "values.yaml").read_text(encoding="utf-8"))
    assert values["test"]["image"] == "registry.example.com/slurm/slurm-operator:1.2.3"
    assert "registry.example.com/slurm/slurm-operator:1.2.3" in (staged / "README.md").read_text(encoding="utf-8")
