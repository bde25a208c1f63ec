"""The table of Kubernetes and Slurm versions: what runs in tests here, what runs in kind, and what is accepted."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from hack.images.names import SLURM_SUITES
from hack.packaging.render import KUBE_VERSION, OPERATOR_CHART
from hack.release.parameters import ROOT

WORKFLOW: Final = ROOT / ".github/workflows/kubernetes.yaml"
"""Where other releases of Kubernetes are tried, in kind."""

OF_KUBERNETES: Final = range(29, 36)
"""Minor versions."""

PAGE: Final = ROOT / "docs/releases.md"
BEGIN: Final = "<!-- written by python -m hack.release support --write -->\n"
END: Final = "\n<!-- end -->"

TESTED: Final = "tests"
IN_KIND: Final = "kind"


def oldest() -> int:
    """Return the oldest minor version that the chart accepts."""
    chart = yaml.safe_load((OPERATOR_CHART / "Chart.yaml").read_text(encoding="utf-8"))
    found = re.search(r">=\s*1\.(\d+)\.", chart["kubeVersion"])
    if found is None:
        raise ValueError(f"kubeVersion of the chart has no oldest version: {chart['kubeVersion']}")
    return int(found[1])


def workflow() -> dict[str, Any]:
    """Return the job that runs in kind."""
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["kind"]
    return found


def in_kind() -> list[str]:
    """Return the minor versions that the workflow tries, as ``1.29``."""
    tags: list[str] = workflow()["strategy"]["matrix"]["kubernetes"]
    return [tag.rpartition(".")[0] for tag in tags]


def table() -> str:
    """Lay the table out in Markdown."""
    here = ".".join(KUBE_VERSION.removeprefix("v").split(".")[:2])
    head = ["Kubernetes", *(f"Slurm {slurm} ({suite})" for slurm, suite in SLURM_SUITES.items())]
    lines = [_row(head), _row(["---"] * len(head))]
    for minor in OF_KUBERNETES:
        version = f"1.{minor}"
        where = TESTED if version == here else IN_KIND if version in in_kind() else "not run"
        lines.append(_row([version, *[where] * len(SLURM_SUITES)]))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: str) -> str:
    """Return a page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{end}{after}"
