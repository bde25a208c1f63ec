"""One YAML file for each set of CRDs, and one for the operator, for those who install without helm."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from hack.packaging.kustomize import HELM_LABELS, NAMESPACE
from hack.packaging.render import OPERATOR_CHART, render
from hack.release.contents import charts
from hack.release.parameters import ROOT, Parameters

OPERATOR: Final = "slurm-operator.yaml"


def build(parameters: Parameters, target: Path, root: Path = ROOT) -> list[Path]:
    """Write the files into a folder."""
    target.mkdir(parents=True, exist_ok=True)
    made = []
    for folder in sorted((root / "helm").glob("*/crds")):
        texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))]
        made.append(_write(target / f"{folder.parent.name}-crds.yaml", parameters, texts))
    objects = [yaml.safe_dump(one, sort_keys=False) for one in (NAMESPACE, *_operator(parameters, root))]
    return [*made, _write(target / OPERATOR, parameters, objects)]


def _operator(parameters: Parameters, root: Path) -> list[dict[str, Any]]:
    """What the chart renders with its own values, without what helm alone understands."""
    with tempfile.TemporaryDirectory(prefix="manifests-") as scratch:
        staged = charts.stage(root / OPERATOR_CHART.relative_to(ROOT), Path(scratch), parameters)
        objects = render(staged)
    for one in objects:
        for label in HELM_LABELS:
            one["metadata"]["labels"].pop(label)
    return objects


def _write(path: Path, parameters: Parameters, texts: list[str]) -> Path:
    head = f"# slurm-operator {parameters.version}\n"
    path.write_text(head + "".join(f"---\n{text.removeprefix('---').lstrip()}" for text in texts), encoding="utf-8")
    return path
