"""One version in all places."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.release import version
from hack.release.version import NoVersion


def test_every_place_has_the_version_of_the_project() -> None:
    assert version.others() == []
    paths = {place.path for place in version.places()}
    assert {
        "pyproject.toml",
        "slurm_client/version.py",
        "helm/slurm/Chart.yaml",
        "slinky_operator/settings.py",
    } <= paths


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "helm/slurm-jobs").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.3"\n')
    (tmp_path / "helm/slurm-jobs/Chart.yaml").write_text('version: 1.2.3\nappVersion: "1.2.2"\n')
    return tmp_path


def test_another_version_is_found(tree: Path) -> None:
    assert [(place.path, place.version) for place in version.others(tree)] == [("helm/slurm-jobs/Chart.yaml", "1.2.2")]


def test_a_version_is_written_to_all_places_and_nowhere_else(tree: Path) -> None:
    assert version.write("1.3.0-rc.1", tree) == [
        *("pyproject.toml", "helm/slurm-jobs/Chart.yaml", "helm/slurm-jobs/Chart.yaml"),
    ]
    assert (tree / "helm/slurm-jobs/Chart.yaml").read_text() == 'version: 1.3.0-rc.1\nappVersion: "1.3.0-rc.1"\n'
    assert (tree / "pyproject.toml").read_text() == '[project]\nname = "x"\nversion = "1.3.0-rc.1"\n'
    assert version.others(tree) == []


@pytest.mark.parametrize("text", ["", "1.2", "v1.2.3", "1.2.3.4", "1.2.3 4"])
def test_what_is_no_version_is_refused(tree: Path, text: str) -> None:
    with pytest.raises(NoVersion, match="is no version"):
        version.write(text, tree)


def test_a_file_without_its_version_is_an_error(tree: Path) -> None:
    (tree / "helm/slurm-jobs/Chart.yaml").write_text("name: x\n")
    with pytest.raises(NoVersion, match=r"helm/slurm-jobs/Chart\.yaml has nothing like"):
        list(version.places(tree))
