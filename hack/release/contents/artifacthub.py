"""What Artifact Hub shows of a chart: its kinds, images and licence, as annotations of its Chart.yaml.

They are put on when a chart is packed, since each of them is said elsewhere already: kinds in the CRDs, images in what
the chart renders, changes in the changelog.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from hack.images.names import MARIADB, SLURM_IMAGES, SLURM_SUITES, SLURMD_OCI, SSSD
from hack.release import changes
from hack.release.parameters import Parameters

CATEGORIES: Final[Mapping[str, str]] = {"slurm-exporter": "monitoring-logging"}
CATEGORY: Final = "ai-machine-learning"

OPERATOR: Final = "slurm-operator"
MANY: Final = 60
"""Changes that are listed at most."""

_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def described(chart: Path, parameters: Parameters, root: Path) -> dict[str, str]:
    """Return the annotations of a chart."""
    found: dict[str, Any] = {
        "license": "Apache-2.0",
        "category": CATEGORIES.get(chart.name, CATEGORY),
        "prerelease": str("-" in parameters.version).lower(),
        "links": [{"name": "source", "url": parameters.source}] if parameters.source else None,
        "crds": list(_kinds(chart)) or None,
    }
    if chart.name == OPERATOR:
        found |= {
            "operator": "true",
            "operatorCapabilities": "Deep Insights",
            "images": [{"name": name, "image": image} for name, image in images(parameters)],
            "changes": list(_changes(root, parameters.version))[:MANY] or None,
        }
    return {
        f"artifacthub.io/{key}": value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False, width=200)
        for key, value in found.items()
        if value is not None
    }


def images(parameters: Parameters) -> Iterator[tuple[str, str]]:
    """Yield the images of a release by a name of their own."""
    yield OPERATOR, f"{parameters.registry}/{OPERATOR}:{parameters.version}"
    for slurm in SLURM_SUITES:
        for name in (*SLURM_IMAGES, SLURMD_OCI):
            yield f"{name}-{slurm}", f"{parameters.registry}/{name}:{slurm}"
    for name, tag in (("mariadb", MARIADB), ("sssd", SSSD)):
        yield name, f"{parameters.registry}/{name}:{tag}"


def _kinds(chart: Path) -> Iterator[dict[str, str]]:
    for path in sorted(chart.glob("crds/*.yaml")):
        crd = yaml.safe_load(path.read_text(encoding="utf-8"))
        (version,) = crd["spec"]["versions"]
        kind = crd["spec"]["names"]["kind"]
        yield {
            "kind": kind,
            "version": version["name"],
            "name": crd["metadata"]["name"],
            "displayName": kind,
            "description": version["schema"]["openAPIV3Schema"]["description"].splitlines()[0],
        }


def _changes(root: Path, version: str) -> Iterator[dict[str, str]]:
    """The first sentence of each change, without Markdown: of the release, or else of those since the last one."""
    try:
        section = changes.section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    except changes.NoSection:
        found = [(name.split(".")[1], text) for name, text in changes.fragments(root / "changes").items()]
    else:
        found = list(changes.entries(section))
    for kind, text in found:
        plain = _LINK.sub(r"\1", text.partition(" ([docs]")[0]).replace("**", "").replace("`", "")
        yield {"kind": kind, "description": plain.partition(". ")[0].rstrip(".")}
