"""The screens of docs/kubectl-slurm.md, made of the samples: ``python -m tests.unit.kubectl_slurm.screens``."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from kubectl_slurm.rules import status, tokens, verification
from kubectl_slurm.rules.jobs import job
from kubectl_slurm.rules.nodes import node
from kubectl_slurm.screen.blocks import Screen
from kubectl_slurm.screen.printing import Printer
from tests.unit.kubectl_slurm import samples

PAGE = Path(__file__).parents[3] / "docs" / "kubectl-slurm.md"
BEGIN = "<!-- written by python -m tests.unit.kubectl_slurm.screens: {} -->\n"
END = "<!-- end -->"


def screens() -> Mapping[str, Screen]:
    """Each screen by its command."""
    return {
        "status": status.screen(samples.OVERVIEW),
        "explain job/4120": job.screen(job.find("4120", samples.JOBS), samples.ACCOUNTED),
        "explain job/4121": job.screen(job.find("4121", samples.JOBS), samples.ACCOUNTED),
        "explain node/cpu-2": node.screen("cpu-2", samples.ACCOUNTED, samples.POD, samples.NODESETS[0]),
        "preflight": samples.PREFLIGHT,
        "verify": verification.screen(samples.RESULTS),
        "token": tokens.screen(samples.TOKENS, "slurm", samples.NOW),
    }


def text(screen: Screen) -> str:
    """A screen as it is printed where there is no terminal."""
    stream = io.StringIO()
    Printer(stream, colours=False).show(screen)
    return stream.getvalue()


def with_screens(page: str) -> str:
    """The page with the screens as they are to be."""
    for name, screen in screens().items():
        before, rest = page.split(BEGIN.format(name), 1)
        page = f"{before}{BEGIN.format(name)}```text\n{text(screen)}```\n{END}{rest.split(END, 1)[1]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_screens(PAGE.read_text()))
