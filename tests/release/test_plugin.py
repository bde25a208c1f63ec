"""The plugin of a release folder is one file that runs by itself: no package of this machine, no repository beside it.

Not part of `make test`: `make release-check` runs it on the folder that `make release` has filled.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
import yaml

from hack.packaging.render import ROOT
from hack.release import version
from kubectl_slurm import cli
from slurm_client.testing import threaded
from tests.unit.kubectl_slurm.kubernetes_world import KubernetesWorld, running

FOLDER = Path(os.environ.get("RELEASE", f"dist/{version.current()}")).resolve() / "plugin"
PROGRAM = FOLDER / "kubectl-slurm"
SITE = ROOT / "tests" / "unit" / "conversion" / "sites" / "gke.yaml"
KEY = b"k" * 32


def run(folder: Path, *arguments: str, code: int = 0, kubectl: str = "kubectl") -> str:
    """Run it in an empty folder, by an isolated Python; returns what it prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "KUBECTL": kubectl}
    command = [sys.executable, "-I", "-S", str(PROGRAM), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_says_its_version_and_helps_with_each_command(tmp_path: Path) -> None:
    assert version.current() in run(tmp_path, "--version")
    for command in cli.slurm.commands:
        # That of convert is that of slurm-operator.
        assert re.match(
            rf"usage: (kubectl-slurm|slurm-operator) {command} ", run(tmp_path, command, "--help"), re.IGNORECASE
        )


def test_it_converts_and_completes(tmp_path: Path) -> None:
    assert "a3-mega" in run(tmp_path, "convert", "-f", str(SITE), code=3)
    assert "kubectl_slurm" in run(tmp_path, "completion", "bash").replace("-", "_")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KubernetesWorld]:
    """A namespace with a Cluster, and a slurmrestd behind its Service."""
    with threaded.running(key=KEY) as slurm, running(tmp_path) as made:
        slurm.add_node("w-0")
        made.add("clusters", "slurm", status={"isReady": True})
        made.services["slurm-restapi"] = slurm.url
        times = {"iat": 1_000_000_000, "exp": 4_000_000_000}
        made.token_of = lambda user: jwt.encode({"sun": user, **times}, KEY, algorithm="HS256")
        yield made


def test_it_asks_kubernetes_and_slurm(tmp_path: Path, world: KubernetesWorld) -> None:
    kubectl = str(world.kubectl)
    assert "Cluster slurm in namespace slurm" in run(tmp_path, "status", "--namespace=slurm", kubectl=kubectl)
    assert "Node w-0" in run(tmp_path, "explain", "node/w-0", "--namespace=slurm", kubectl=kubectl)
    manifest = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": "Cluster", "metadata": {"name": "slurm"}}
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump({**manifest, "spec": {"extraConf": "SchedulerTimeSlice=31"}}))
    shown = json.loads(
        run(tmp_path, "preflight", f"--filename={file}", "--namespace=slurm", "-o", "json", kubectl=kubectl)
    )
    assert shown["trials"][0]["verdict"] == "not tried"


def test_krew_gets_the_same_file_with_its_licence(tmp_path: Path) -> None:
    (archive,) = FOLDER.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        assert sorted(packed.getnames()) == ["LICENSE", "kubectl-slurm"]
        packed.extractall(tmp_path, filter="data")
    assert (tmp_path / "kubectl-slurm").read_bytes() == PROGRAM.read_bytes()
    assert os.access(tmp_path / "kubectl-slurm", os.X_OK)
    for manifest in FOLDER.glob("slurm.yaml"):
        (platform,) = yaml.safe_load(manifest.read_text())["spec"]["platforms"]
        assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
