"""The table of all keys of Slinky's values in docs/from-slinky.md, made of the converter's own tables.

Which keys there are, and in which releases, is in `slinky_keys.yaml`; what becomes of each is in
`slinky_operator.conversion.tables`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from hack.packaging.render import ROOT
from slinky_operator.conversion.rules import ON, At, Rule, Shape
from slinky_operator.conversion.tables.operator import OPERATOR
from slinky_operator.conversion.tables.slurm import SLURM

PAGE: Final = ROOT / "docs" / "from-slinky.md"
BEGIN: Final = "<!-- written by python -m hack.packaging write: keys of {} -->\n"
END: Final = "\n<!-- end -->"

RELEASES: Final = ("0.1", "0.2", "0.3", "0.4", "1.0", "1.1", "1.2", "1.3")
TABLES: Final[Mapping[str, Any]] = {"slurm": SLURM, "slurm-operator": OPERATOR}
KEYS: Final[Mapping[str, Mapping[str, list[str]]]] = yaml.safe_load(
    (Path(__file__).parent / "slinky_keys.yaml").read_text(encoding="utf-8")
)
"""Names of values by chart, and by the releases that have them."""

TRUE_OR_FALSE: Final = "true or false"
"""Of a key that changes nothing, whichever of both it has."""

SCOPES: Final[Mapping[str, str]] = {
    "chart": "",
    "each": "template.spec of each daemon and NodeSet: ",
    "login": "cluster.login[].",
    "name": "clusterName",
    "nodeset": "nodesets.NAME.",
    "partition": "cluster.partitions[].",
    "release": "",
}
"""How the page names where rows of a scope go."""


def files() -> dict[str, str]:
    """The page by its path from the root of the repository."""
    return {str(PAGE.relative_to(ROOT)): with_tables(PAGE.read_text(encoding="utf-8"))}


def keys_of(chart: str, release: str) -> list[str]:
    """The names of the values of one release."""
    found = []
    for span, keys in KEYS[chart].items():
        first, _, last = span.partition("-")
        if RELEASES.index(first) <= RELEASES.index(release) <= RELEASES.index(last or first):
            found += keys
    return found


def row(table: Any, key: str) -> tuple[str, Rule] | None:
    """The row of a key, and the part of the key that the row is about."""
    path, found = _found(table, key)
    return (path, found) if isinstance(found, Rule) else None


def _found(table: Any, key: str) -> tuple[str, Any]:
    at: Any = table
    around: dict[str, Any] = {"enabled": True}
    path = ""
    parts = re.split(r"\.|(?=\[\])", key)
    for number, part in enumerate(parts, 1):
        at = at.get("*" if part == "[]" else part, at.get("*"))
        path = f"{path}{part}" if part == "[]" or not path else f"{path}.{part}"
        while isinstance(at, Shape):
            below: Any = {"metadata": {}} if part == "service" else {"a": "b"}
            at = at.of(below if number < len(parts) else ON, At(part, around))
        if at is None or isinstance(at, Rule):
            break
    return path, at


def _rows(path: str, found: Any) -> Iterator[tuple[str, Rule]]:
    """The row of a key, or those below it."""
    if isinstance(found, Rule):
        yield path, found
    elif isinstance(found, Mapping):
        for name, below in found.items():
            yield from _rows(f"{path}.{name}", below)


def with_tables(text: str) -> str:
    """The page with the tables as they are to be."""
    for chart in TABLES:
        begin = BEGIN.format(chart)
        before, rest = text.split(begin, 1)
        lines = ["| Slinky | releases | here |", "|---|---|---|", *_lines(chart)]
        text = f"{before}{begin}" + "\n".join(lines) + f"{END}{rest.split(END, 1)[1]}"
    return text


def _lines(chart: str) -> Iterator[str]:
    found: dict[str, tuple[Rule, set[int]]] = {}
    for number, release in enumerate(RELEASES):
        for key in keys_of(chart, release):
            for path, rule in _rows(*_found(TABLES[chart], key)):
                found.setdefault(path.replace(".slinky", ".NAME"), (rule, set()))[1].add(number)
    for path, (rule, numbers) in sorted(found.items()):
        yield f"| `{path}` | {_releases(numbers)} | {_said(path, rule)} |"


def _releases(numbers: set[int]) -> str:
    first, last = RELEASES[min(numbers)], RELEASES[max(numbers)]
    return first if first == last else f"{first} to {last}"


def _said(path: str, rule: Rule) -> str:
    if not rule.to:
        if rule.why == TRUE_OR_FALSE:
            return f"not needed: {rule.because}"
        return f"{'not needed' if rule.needless and not rule.because else 'not kept'}: {rule.why}"
    scope, _, rest = rule.to.partition(".")
    where = rest.replace("container", "template.spec.containers[]").replace("*", path.rpartition(".")[2])
    if not rest and scope == "nodeset":
        return "fields of the NodeSet (`features`, `gres`, `weight`), the rest in `extraConf`"
    named = f"`{SCOPES.get(scope, f'{scope}.')}{where}`" if scope != "each" else f"`{where}` of each daemon and NodeSet"
    return f"{named} ({rule.why})" if rule.why else named
