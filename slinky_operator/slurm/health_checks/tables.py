"""Checks of a spec as the files that the program on a node reads: tables, scripts and parameters. Pure.

A table is a text of a few lines: its revision, and the name of each check with contexts, timeout, script and
parameters. Scripts and parameters are files named after what is in them, so that two tables can stand side by side: the
one that all nodes run (`approved`), and the one that a node of its own tries (`trial`). No text of a user is in a table
but names that the schema has checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from slinky_api.v1alpha1.nodeset.checks import BuiltInCheck, Check, CheckContext
from slinky_operator.slurm.health_checks import programs

APPROVED: Final = "approved"
TRIAL: Final = "trial"
"""Names of the files with tables."""

NOTHING: Final = "nothing"
"""In place of a revision where no table has been tried yet."""

_SCRIPTS: Final[Mapping[BuiltInCheck, str]] = {
    BuiltInCheck.GPU: "gpu",
    BuiltInCheck.GPU_DIAGNOSTICS: "gpu-diagnostics",
    BuiltInCheck.INFINIBAND: "infiniband",
    BuiltInCheck.MOUNTS: "mounts",
    BuiltInCheck.MEMORY: "memory",
    BuiltInCheck.DISK: "disk",
    BuiltInCheck.TIME: "time",
}
"""The file of each check that comes with the operator."""

_LETTERS: Final = {CheckContext.HEALTH_CHECK: "H", CheckContext.PROLOG: "P", CheckContext.EPILOG: "E"}


@dataclass(frozen=True, slots=True)
class Table:
    """Checks that a node runs."""

    revision: str = NOTHING
    lines: Mapping[str, str] = field(default_factory=dict)
    """What is to be run, by name of the check."""

    def text(self, node: str = "") -> str:
        """The file; with the node that it is for, if it is for one."""
        head = [f"revision {self.revision}", *([f"node {node}"] if node else [])]
        return "".join(f"{line}\n" for line in (*head, *(f"check {name} {line}" for name, line in self.lines.items())))

    @property
    def files(self) -> frozenset[str]:
        """Names of the files that it needs."""
        words = (word for line in self.lines.values() for word in line.split()[2:])
        return frozenset(word for word in words if word != "-")


def table(checks: Iterable[Check]) -> tuple[Table, dict[str, str]]:
    """The table of a spec, and the files that it needs, by name."""
    lines: dict[str, str] = {}
    files: dict[str, str] = {}
    for check in sorted(checks, key=lambda one: one.name):
        script = _file("script", check.script or programs.script(_SCRIPTS[BuiltInCheck(check.use or "")]), files)
        pairs = "".join(f"{name}={value}\n" for name, value in sorted(check.parameters.items()))
        parameters = _file("parameters", pairs, files) if pairs else "-"
        contexts = "".join(letter for context, letter in _LETTERS.items() if context in check.contexts)
        lines[check.name] = f"{contexts} {check.timeout_seconds} {script} {parameters}"
    text = "\n".join(f"{name} {line}" for name, line in lines.items())
    return Table(_hash(text), lines), files


def read(text: str) -> tuple[Table, str]:
    """A table and its node, as `Table.text` has written them; of another text, what can be read of it."""
    revision, node, lines = NOTHING, "", {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "revision":
            revision = rest
        elif word == "node":
            node = rest
        elif word == "check":
            name, _, what = rest.partition(" ")
            lines[name] = what
    return Table(revision, lines), node


def _file(kind: str, text: str, files: dict[str, str]) -> str:
    name = f"{kind}-{_hash(text)}"
    files[name] = text
    return name


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
