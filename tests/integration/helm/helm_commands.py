"""The real helm against a control plane."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from hack.packaging.render import helm
from tests.support.control_plane import ControlPlane

EARLIER = Path(__file__).parent / "charts_0_1_0"
"""Charts as `helm package` made them before they had values of Slinky's, for upgrades from there."""


def run_helm(control_plane: ControlPlane, *arguments: str, values: dict[str, Any] | None = None) -> str:
    """Run helm, which must succeed, and return what it prints."""
    run = try_helm(control_plane, *arguments, values=values)
    assert run.returncode == 0, run.stderr
    return run.stdout


def refused(control_plane: ControlPlane, *arguments: str, values: dict[str, Any] | None = None) -> str:
    """Run helm, which must fail, and return what it says."""
    run = try_helm(control_plane, *arguments, values=values)
    assert run.returncode != 0, run.stdout
    return run.stderr


def try_helm(
    control_plane: ControlPlane, *arguments: str, values: dict[str, Any] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run helm."""
    cache = str(control_plane.kubeconfig.parent / "kubectl-cache")
    if values is not None:
        arguments = (*arguments, "--values=-")
    return helm(
        f"--kubeconfig={control_plane.kubeconfig}",
        *arguments,
        stdin=None if values is None else yaml.safe_dump(values),
        environment={"KUBECACHEDIR": cache},
    )
