"""The house is as its doors say: tables list the modules there are, contracts name each package, rules call nobody."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("slinky_operator", "slurm_exporter", "kubectl_slurm")

MANY = 8
"""Modules from which on a package names each of them."""

CALLERS = re.compile(
    r"(slinky_operator\.kube\.(calls|client)|slurm_client\.connection|httpx|aiohttp|kubernetes|kopf)\b"
)
"""What sends requests."""

TABLE = re.compile(r"^=+ +=+\n.+\n=+ +=+\n((?:.+\n)+?)=+ +=+$", re.MULTILINE)


def doors() -> list[Path]:
    """The `__init__` of each package with modules of its own."""
    found = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("__init__.py"))]
    return [path for path in found if children(path)]


def children(door: Path) -> set[str]:
    """Modules and packages of a package."""
    folder = door.parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    return modules | {path.name for path in folder.iterdir() if (path / "__init__.py").exists()}


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def of(path: Path) -> str:
    return str(path.parent.relative_to(ROOT))


def rows(text: str) -> list[str]:
    """Names in the first column of a table."""
    found = TABLE.search(text)
    lines = found[1].splitlines() if found else ()
    return [name for line in lines if line.startswith("`") for name in re.findall(r"`([a-z_]+)`", line.split("  ")[0])]


def imported(path: Path) -> Iterator[str]:
    """Modules that a module imports, and names that it takes from them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}" for one in node.names)


@pytest.mark.parametrize("door", [path for path in doors() if rows(docstring(path))], ids=of)
def test_the_table_of_a_package_lists_exactly_its_modules(door: Path) -> None:
    listed, folders = rows(docstring(door)), {path.name for path in door.parent.iterdir() if path.is_dir()}
    assert len(listed) == len({*listed})
    assert {*listed} - (folders - children(door)) == children(door)
    assert {*listed} <= children(door) | folders


@pytest.mark.parametrize("door", [path for path in doors() if len(children(path)) >= MANY], ids=of)
def test_a_large_package_names_each_of_its_modules(door: Path) -> None:
    named = {word.split(".")[0] for word in re.findall(r"`([\w.]+)`", docstring(door))}
    assert children(door) - named == set()


def contracts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    return found


@pytest.mark.parametrize(
    "package", [path.name for path in sorted((ROOT / "slinky_operator").iterdir()) if (path / "__init__.py").exists()]
)
def test_each_package_is_in_a_contract_about_what_it_may_import(package: str) -> None:
    name = f"slinky_operator.{package}"
    about = [
        one for contract in contracts() for key in ("source_modules", "containers") for one in contract.get(key, ())
    ]
    assert any(one == name or one.startswith(f"{name}.") for one in about)


def test_a_module_that_calls_itself_pure_calls_nobody() -> None:
    pure = [
        path
        for path in (ROOT / "slinky_operator").rglob("*.py")
        if re.search(r"\b(Pure\.|[Pp]ure[:;]|; pure)", docstring(path).split("\n\n")[0])
    ]
    assert len(pure) > 50
    assert [
        f"{path.relative_to(ROOT)}: {name}" for path in pure for name in imported(path) if CALLERS.match(name)
    ] == []
