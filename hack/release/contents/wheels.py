"""Wheels of all Python packages of the project, built from a copy of the tree, without network.

The operator's wheel has the client's modules too, so that its image is one package; the client's own is for programs
that have nothing of Kubernetes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from hack.release.parameters import ROOT, Parameters

PACKAGES: Final = ("slurm_client", "kubectl_slurm")
"""Folders with a package of their own."""

WITH_THE_OPERATOR: Final = ("kubectl_slurm",)
"""Those that import modules of the operator's package. It is on no index, so their lock files cannot name it."""

_OPERATOR: Final = ("slinky_operator", "slurm_client", "slurm_exporter", "api/slinky_api")
_FILES: Final = ("pyproject.toml", "README.md", "LICENSE")


class WheelFailed(Exception):
    """A wheel could not be built; the text has the words of the builder."""


def build(parameters: Parameters, target: Path, root: Path = ROOT) -> list[Path]:
    """Build all wheels into a folder.

    Raises
    ------
    WheelFailed
        A build failed.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wheels-") as scratch:
        operator = Path(scratch) / "operator"
        for name in _OPERATOR:
            _copy(root / name, operator / name)
        for name in _FILES:
            shutil.copy2(root / name, operator / name)
        _wheel(operator, target, parameters)
        for name in PACKAGES:
            project = Path(scratch) / name
            _copy(root / name, project)
            if name in WITH_THE_OPERATOR:
                _require(project / "pyproject.toml", f"slinky-operator=={parameters.version}")
            _wheel(project, target, parameters)
    return sorted(target.glob("*.whl"))


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist"))


def _require(file: Path, requirement: str) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("dependencies = [\n", f'dependencies = [\n  "{requirement}",\n', 1), encoding="utf-8")


def _wheel(project: Path, target: Path, parameters: Parameters) -> None:
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(target), str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=parameters.environment)
    if done.returncode != 0:
        raise WheelFailed(f"the wheel of {project.name}: {done.stderr.strip() or done.stdout.strip()}")
