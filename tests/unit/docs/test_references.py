"""Files and tests that the documentation names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ROOT / "slurm_client"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md"), *CLIENT.glob("*.md"), *(CLIENT / "docs").glob("*.md")]
)
TOPS = (
    "api",
    "config",
    "containers",
    "docs",
    "hack",
    "helm",
    "kubectl_slurm",
    "requirements",
    "slinky_operator",
    "slurm_client",
    "slurm_exporter",
    "tests",
)

PATH = re.compile(r"`([A-Za-z_.][\w.-]*(?:/[\w.-]+)+/?)`")
TEST = re.compile(r"`(test_\w+)(?:\[[^`]*\])?`")

TO_BE_MADE = re.compile(r"\btoken\b|slurmdbd|v0_0_NN|v1alpha1/__init__")
"""What "Add a controller", "Add a component" and "Add a data parser" tell a reader to create."""


def named(pattern: re.Pattern[str], page: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for found in pattern.finditer(line):
            yield number, found[1].rstrip("/")


@pytest.fixture(scope="module")
def files() -> frozenset[str]:
    """All files and folders of the repository, with a slash before."""
    found = {path for top in TOPS for path in (ROOT / top).rglob("*") if "__pycache__" not in path.parts}
    return frozenset(f"/{path.relative_to(ROOT)}" for path in found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path, files: frozenset[str]) -> None:
    missing = [
        f"{page.name}:{number}: {path}"
        for number, path in named(PATH, page)
        if (path.split("/")[0] in TOPS or path.endswith(".py"))
        and not TO_BE_MADE.search(path)
        and not any(file.endswith(f"/{path}") for file in files)
    ]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_are_named_exist(page: Path) -> None:
    modules = list((ROOT / "tests").rglob("test_*.py"))
    source = "\n".join(path.read_text() for path in modules)
    defined = frozenset(re.findall(r"def (test_\w+)\(", source)) | {path.stem for path in modules}
    missing = [f"{page.name}:{number}: {name}" for number, name in named(TEST, page) if name not in defined]
    assert not missing
