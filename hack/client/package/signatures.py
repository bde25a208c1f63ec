"""Reads the calls of the asynchronous client from its source: names, parameters, types, first lines of docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "slurm_client"


class Kind(Enum):
    """How a call gives its result."""

    AWAITED = "a coroutine"
    STREAM = "an asynchronous iterator"
    READER = "a reader of a watch"
    VALUE = "a property"
    PLAIN = "an ordinary call"


@dataclass(frozen=True)
class Function:
    """One public call: its definition, the overloads before it, and what it gives."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    overloads: tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]
    kind: Kind

    @property
    def name(self) -> str:
        """Name of the call."""
        return self.node.name

    @property
    def summary(self) -> str:
        """First paragraph of its docstring, in one line."""
        text = ast.get_docstring(self.node) or ""
        return " ".join(text.partition("\n\n")[0].split())


@dataclass(frozen=True)
class Group:
    """A class of calls: the module that has it, its name, its bases, its constructor and its calls."""

    path: Path
    module: str
    name: str
    bases: tuple[str, ...]
    constructor: ast.FunctionDef | None
    functions: tuple[Function, ...]
    imports: dict[str, str]


def groups() -> list[Group]:
    """Return all classes of calls: the client, what it is made of, and what it gives calls of as a property."""
    found: dict[str, Group] = {}
    _follow("slurm_client.client", "SlurmClient", found)
    return sorted(found.values(), key=lambda group: group.module)


def _follow(module: str, name: str, found: dict[str, Group]) -> bool:
    """Add a class, its bases and what its properties give; False if it is no class of calls."""
    if name in found:
        return True
    path = _path(module)
    if path is None:
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = {**_defined(tree, module), **dict(_imports(tree))}
    node = next((each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == name), None)
    if node is None or name == _BASE:
        return False
    bases = tuple(ast.unparse(base) for base in node.bases)
    if not any(base == _BASE or _follow(imports.get(base, ""), base, found) for base in bases):
        return False
    group = Group(path, module, name, bases, _constructor(node), tuple(_functions(node)), imports)
    found[name] = group
    for base in bases:
        _follow(imports.get(base, ""), base, found)
    for function in group.functions:
        if function.kind is Kind.VALUE and function.node.returns is not None:
            given = ast.unparse(function.node.returns)
            _follow(imports.get(given, ""), given, found)
    return True


_BASE = "Operations"
"""The class all of them come from."""


def _path(module: str) -> Path | None:
    """Return the file of a module of the package."""
    below = ROOT / module.replace(".", "/")
    candidates = (below.with_suffix(".py"), below / "__init__.py") if module.startswith("slurm_client") else ()
    return next((path for path in candidates if path.is_file()), None)


def _defined(tree: ast.Module, module: str) -> dict[str, str]:
    """Return what a module defines itself."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = module
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = module
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = module
    return found


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Return each name that a module imports, with the module it is from; ``""`` for modules themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield from ((alias.asname or alias.name, node.module or "") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name, "") for alias in node.names)


def _constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)


def _functions(node: ast.ClassDef) -> Iterator[Function]:
    overloads: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    for each in node.body:
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) or each.name.startswith("_"):
            continue
        marks = {ast.unparse(mark) for mark in each.decorator_list}
        if "overload" in marks:
            overloads.append(each)
            continue
        if "staticmethod" not in marks and "classmethod" not in marks:
            yield Function(each, tuple(overloads), _kind(each, marks))
        overloads = []


def _kind(node: ast.FunctionDef | ast.AsyncFunctionDef, marks: set[str]) -> Kind:
    given = ast.unparse(node.returns) if node.returns is not None else ""
    if given.startswith(("AsyncIterator[", "AsyncGenerator[")):
        return Kind.STREAM
    if isinstance(node, ast.AsyncFunctionDef):
        return Kind.AWAITED
    if "property" in marks:
        return Kind.VALUE
    return Kind.READER if given.startswith("Reader[") else Kind.PLAIN
