"""Render a chart with the real helm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hack.localkube.programs import build
from hack.packaging.errors import RenderFailed

ROOT = Path(__file__).parents[2]
OPERATOR_CHART = ROOT / "helm" / "slurm-operator"
SLURM_CHART = ROOT / "helm" / "slurm"
EXPORTER_CHART = ROOT / "helm" / "slurm-exporter"
OPERATOR_NAMESPACE = "slurm-operator"

KUBE_VERSION = build.KUBERNETES_VERSION
"""Told to helm, which renders without a cluster and would otherwise assume a version of its own."""


def helm(
    *arguments: str, stdin: str | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run helm, built if need be; the caller looks at the return code.

    Parameters
    ----------
    environment
        Put over the process's own.
    """
    build.ensure(build.HELM)
    return subprocess.run(
        [str(build.tool("helm")), *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
    )


def render(
    chart: Path = OPERATOR_CHART,
    values: Mapping[str, Any] | None = None,
    *,
    release: str = "slurm-operator",
    namespace: str = OPERATOR_NAMESPACE,
    extra: Sequence[str] = (),
    tests: bool = False,
) -> list[dict[str, Any]]:
    """Render a chart without its CRDs.

    Parameters
    ----------
    chart
        Folder of the chart.
    values
        Put over the chart's own.
    extra
        Further arguments of ``helm template``.
    tests
        Whether to render what ``helm test`` runs, too.

    Returns
    -------
    list
        The objects, in helm's order of installation.

    Raises
    ------
    RenderFailed
        If helm refuses the values or the templates.
    """
    place = (f"--namespace={namespace}", f"--kube-version={KUBE_VERSION}")
    arguments = ["template", release, str(chart), *place, *([] if tests else ["--skip-tests"]), *extra]
    run = helm(*arguments, "--values=-", stdin=yaml.safe_dump(dict(values or {})))
    if run.returncode != 0:
        raise RenderFailed(chart, run.stderr)
    return [document for document in yaml.safe_load_all(run.stdout) if document]
