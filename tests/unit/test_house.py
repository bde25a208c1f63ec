"""The house is as its doors say: tables list the modules there are, contracts name each package, rules call nobody.

Parts of a Cluster know each other only as far as is written here, and records stay small.
"""

from __future__ import annotations

import ast
import importlib
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

IMPORTS = {"slinky_operator/cluster": 10.8, "": 8.0}
"""Percent of lines that are imports, at most, of a folder and of all else: walls that are only walls raise it."""

CALLERS = re.compile(
    r"(slinky_operator\.kube\.(calls|client)|slurm_client\.connection|httpx|aiohttp|kubernetes|kopf)\b"
)
"""What sends requests."""

CLUSTER = ROOT / "slinky_operator" / "cluster"
PARTS = "slinky_operator.cluster.parts"

FREE = re.compile(r"findings|manifests|(\w+_)?question")
"""Modules of parts that anybody in the room may read: what was found out, objects, and what can be asked."""

UNKNOWN = (
    ("forbidden_modules", "The plugin starts at once", {"slinky_operator.autoscaling"}),
    ("forbidden_modules", "What runs inside Slurm's pods starts", set[str]()),
    ("forbidden_modules", "The conversion of Slinky's values starts", set[str]()),
    ("source_modules", "Only custom_resource_watch knows kopf", set[str]()),
)
"""Contracts that name each controller, by the key with the names and the beginning of theirs, and whom they do not: the
plugin knows pure rules of autoscaling."""

KNOWN = {
    "accounting.condition": {"parts.accounts"},
    "accounting.in_conf": {"parts.slurmctld", "parts.slurmrestd", "rollout"},
    "accounting.known_users": {"parts.accounts"},
    "accounting.mariadb": {"parts.daemons", "parts.keys"},
    "accounting.slurmdbd": {"parts.daemons", "parts.upgrade"},
    "accounting.stored": {"parts.keys"},
    "accounting.variants": {"parts.accounts", "parts.exporter", "parts.keys", "parts.slurmrestd", "preview"},
    "accounts.faults": {"parts.accounting"},
    "claims.writes": {"parts.deletion"},
    "configuration.part": {"parts.workloads"},
    "connection.slurm_connection": {"spec"},
    "job_counts.unopened_files": {"parts.connection"},
    "keys.lifecycle": {"parts.workloads"},
    "keys.part": {"parts.configuration"},
    "keys.question_key": {"parts.connection"},
    "keys.stored_keys": {"parts.accounting", "parts.job_logs_key"},
    "slurmctld.pod": {"parts.workloads", "rollout", "trials"},
    "upgrade.asking": {"parts.workloads"},
    "upgrade.order": {"parts.workloads"},
}
"""Rules and findings of parts by who reads them outside their part. It can only shrink."""

MOST = 12
"""Fields of a dataclass of the Cluster, at most."""

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


def test_each_part_of_a_cluster_says_what_it_is_about() -> None:
    folders = [path.parent / "__init__.py" for path in (CLUSTER / "parts").glob("*/*.py")]
    assert [of(path) for path in folders if not docstring(path)] == []


LARGE = [path for path in doors() if len(children(path)) >= MANY and path.parent != CLUSTER / "parts"]


@pytest.mark.parametrize("door", LARGE, ids=of)
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


def test_controllers_are_named_wherever_they_are_unknown() -> None:
    found = contracts()
    (layers,) = [one["layers"] for one in found if one["name"].startswith("Layers of the operator")]
    (controllers,) = [{*one.split(" | ")} for one in layers if "slinky_operator.nodeset" in one]
    for key, beginning, but in UNKNOWN:
        (contract,) = [one for one in found if one["name"].startswith(beginning)]
        assert controllers - {*contract[key]} == but, contract["name"]


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


def readers_of_parts() -> set[tuple[str, str]]:
    """Modules of parts that others than the plan and the executor import: `keys.lifecycle`, and the room or part."""
    found = set()
    for path in (ROOT / "slinky_operator").rglob("*.py"):
        reader = list(path.relative_to(ROOT / "slinky_operator").with_suffix("").parts)
        in_cluster = reader[1:] if reader[0] == "cluster" else reader
        room = ".".join(in_cluster[: 2 if in_cluster[0] == "parts" else 1])
        if room in {"plan", "executor"}:
            continue
        for name in imported(path):
            module = part_module(name)
            if module and room != f"parts.{module[0]}" and not FREE.fullmatch(module[-1]):
                found.add((".".join(module), room))
    return found


def part_module(name: str) -> list[str]:
    """The module of a part that an import names, below `parts`; empty for any other import."""
    if not name.startswith(f"{PARTS}."):
        return []
    words, place = name.removeprefix(f"{PARTS}.").split("."), CLUSTER / "parts"
    if not (place / words[0] / "__init__.py").exists():
        return []
    for number, word in enumerate(words):
        place = place / word
        if not place.is_dir() and not place.with_suffix(".py").exists():
            return words[:number]
    return words


def test_parts_of_a_cluster_are_known_outside_their_folders_as_far_as_is_written_here() -> None:
    written = {(module, reader) for module, readers in KNOWN.items() for reader in readers}
    found = readers_of_parts()
    assert len(found) > 20
    assert sorted(found - written) == [], "a part knows others through the state of the pass"
    assert sorted(written - found) == [], "no longer needed: take it out of KNOWN"
    assert [module for module in KNOWN if module.endswith(".step")] == [], "steps are for the plan alone"


def dataclasses_of_the_cluster() -> dict[str, int]:
    """Names of dataclasses, and how many fields they have."""
    return {
        node.name: sum(isinstance(one, ast.AnnAssign) for one in node.body)
        for path in CLUSTER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in node.decorator_list)
    }


def test_no_dataclass_of_the_cluster_grows_past_what_one_can_read() -> None:
    found = dataclasses_of_the_cluster()
    assert len(found) > 100
    assert {name: fields for name, fields in found.items() if fields > MOST} == {}


@pytest.mark.parametrize("folder", IMPORTS)
def test_imports_take_no_larger_share_of_lines(folder: str) -> None:
    named = [ROOT / name for name in IMPORTS if name]
    tops = [ROOT / folder] if folder else [ROOT / name for name in PACKAGES]
    paths = [path for top in tops for path in top.rglob("*.py") if folder or not {*path.parents} & {*named}]
    trees = [ast.parse(path.read_text()) for path in paths]
    lines = sum(len(path.read_text().splitlines()) for path in paths)
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    taken = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
    assert 100 * taken / lines < IMPORTS[folder]


IN_TEXTS = re.compile(r"^from (slinky_operator[\w.]*) import ([\w, ]+)$", re.MULTILINE)


def imports_in_texts() -> Iterator[tuple[Path, str, str]]:
    """What programs import that tests hand to a process as a text: no type checker reads them."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for module, names in re.findall(
                    r"^from (slinky_operator[\w.]*) import ([\w, ]+)$", node.value, re.MULTILINE
                ):
                    yield from ((path, module, name.split(" as ")[0].strip()) for name in names.split(","))


def exists(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.import_module(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


def test_what_programs_in_texts_import_exists() -> None:
    found = list(imports_in_texts())
    assert len(found) > 10
    missing = [f"{path.relative_to(ROOT)}: {module}.{name}" for path, module, name in found if not exists(module, name)]
    assert missing == []
