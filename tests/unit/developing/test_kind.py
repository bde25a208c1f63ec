"""``hack/developing/kind.sh`` as far as it runs without Docker: its settings, and the commands that it would run."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml

from hack.images.names import MARIADB, REGISTRY, SLURM_IMAGES, SLURM_SUITES
from hack.packaging.render import ROOT


def kind(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "hack/developing/kind.sh", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_it_has_a_node_for_the_control_plane_and_those_that_are_wanted() -> None:
    settings: dict[str, Any] = yaml.safe_load(kind("config", "--nodes", "3").stdout)
    assert settings["apiVersion"] == "kind.x-k8s.io/v1alpha4"
    assert [node["role"] for node in settings["nodes"]] == ["control-plane", "worker", "worker", "worker"]


@pytest.mark.parametrize(("slurm", "suite"), SLURM_SUITES.items())
def test_it_builds_and_loads_every_image_that_the_chart_names(slurm: str, suite: str) -> None:
    run = kind("--dry-run", "--slurm", slurm, "--name", "mine")
    assert run.returncode == 0, run.stderr
    built = re.findall(r"docker build .*--tag (\S+)", run.stdout)
    assert set(built) == {
        *(f"{REGISTRY}/{daemon}:{slurm}" for daemon in SLURM_IMAGES),
        *(f"{REGISTRY}/slurm-operator:dev", f"{REGISTRY}/mariadb:{MARIADB}"),
    }
    (loaded,) = re.findall(r"kind load docker-image --name mine (.*)", run.stdout)
    assert sorted(loaded.split()) == sorted(built)
    for file, stage in re.findall(r"--file (\S+)(?: .*--target (\S+))?", run.stdout):
        assert not stage or re.search(rf"(?m)^FROM .* AS {stage}$", (ROOT / file).read_text(encoding="utf-8"))
    assert f"DEBIAN_SUITE={suite}" in run.stdout
    # The operator's default is the release of these images.
    (deploy,) = re.findall(r"(?m)^make (deploy .*)$", run.stdout)
    planned = subprocess.run(
        ["make", "--dry-run", *deploy.split()], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert f"--set-string=slurm.version={slurm} " in planned
    assert "the current context of kubectl is now kind-mine" in run.stderr


@pytest.mark.parametrize(
    "arguments", [("--nodes", "0"), ("--nodes", "1;x"), ("--slurm", "23.02"), ("--name", "$(id)"), ("--name",), ("x",)]
)
def test_nonsense_is_refused(arguments: tuple[str, ...]) -> None:
    run = kind("--dry-run", *arguments)
    assert run.returncode == 2
    assert run.stderr.startswith("kind.sh: ")
    assert run.stdout == ""


def test_the_workflow_takes_kind_from_the_module_with_its_version() -> None:
    workflow = (ROOT / ".github/workflows/kubernetes.yaml").read_text(encoding="utf-8")
    assert "go -C hack/developing/go install sigs.k8s.io/kind\n" in workflow
    assert "kind@" not in workflow
    module = (ROOT / "hack/developing/go/go.mod").read_text(encoding="utf-8")
    assert re.search(r"(?m)^\tsigs\.k8s\.io/kind$", module)
