"""Every dependency is imported somewhere, and is explained."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("slinky_operator", "slurm_client", "slurm_exporter", "api/slinky_api")
MODULES = {"cryptography": "jwt", "pyjwt": "jwt", "pyyaml": "yaml", "sniffio": "httpx"}
"""Where the name to import is another one; PyJWT uses cryptography for RS256, and httpx looks for sniffio."""

DEPENDENCIES = tuple(
    re.split(r"[<>=!~\[; ]", one)[0]
    for one in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
)


@functools.cache
def imported() -> set[str]:
    found = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {one.name.split(".")[0] for one in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("name", DEPENDENCIES)
def test_a_dependency_is_imported_and_explained(name: str) -> None:
    assert MODULES.get(name, name.replace("-", "_")) in imported()
    explained = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| .*\b{name}\b", explained, re.MULTILINE)
