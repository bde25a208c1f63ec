"""The page about versions and limits says what the code has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
import yaml

from hack.documents.tables.limits import PAGE, TABLES, Limit, shown, with_tables
from hack.images.names import SLURM_SUITES
from hack.localkube.paths import PROJECT
from slurm_client import wire

TEXT: Final = PAGE.read_text(encoding="utf-8")
VERSIONS: Final = dict(re.findall(r"(?m)^\| ([^|]+?) \| ([^|]+?) \|", TEXT.partition("## Limits")[0]))


def test_the_page_is_up_to_date() -> None:
    assert with_tables(TEXT) == TEXT, "python -m hack.documents.tables.limits"


def test_no_limit_is_told_twice() -> None:
    constants = [limit.constant for limits in TABLES.values() for limit in limits]
    assert len(constants) == len(set(constants))


@pytest.mark.parametrize("chart", sorted((PROJECT / "helm").glob("*/Chart.yaml")), ids=lambda path: path.parent.name)
def test_the_release_of_kubernetes_is_that_of_the_charts(chart: Path) -> None:
    least = yaml.safe_load(chart.read_text())["kubeVersion"]
    assert f">={VERSIONS['Kubernetes'].split()[0]}.0-0" == least


def test_the_releases_of_slurm_are_those_with_images() -> None:
    assert all(release in VERSIONS["Slurm, run by the operator"] for release in SLURM_SUITES)


def test_the_data_parsers_are_those_of_the_client() -> None:
    assert VERSIONS["data parsers of slurmrestd"] == ", ".join(wire.PARSERS)


@pytest.mark.parametrize("project", ["pyproject.toml", "slurm_client/pyproject.toml"])
def test_the_release_of_python_is_that_of_the_packages(project: str) -> None:
    least = tomllib.loads((PROJECT / project).read_text())["project"]["requires-python"]
    assert least == f">={VERSIONS['Python of the client and of the operator'].split()[0]}"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2**20 * 4, "bytes", "4 MiB"),
        (900_000, "bytes", "900,000 bytes"),
        (20.0, "seconds", "20 seconds"),
        (0.1, "of the volume", "10% of the volume"),
    ],
)
def test_how_values_are_written(value: float, unit: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limit, "value", lambda _: value)
    assert shown(Limit("a:B", "what", unit, "")) == text
