"""Goes through an input by a table: every key gets exactly one row of the report, none is passed over.

A key that no table has is lost, so that a mistyped one or one of a later release is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.conversion.documents import type_name
from slinky_operator.conversion.draft import Draft
from slinky_operator.conversion.errors import WrongType
from slinky_operator.conversion.report import Entry, Fate, Report, shown
from slinky_operator.conversion.rules import At, Mismatch, Missed, Rule, Shape, Table, WithoutEffect
from slinky_operator.conversion.texts import Unconvertible

ANY: Final = "*"
EMPTY: Final = "empty"
UNKNOWN: Final = (
    "no chart of Slinky 0.1 to 1.3 reads this key: it is misspelt, of a later release, or only an anchor for others"
)


def always(_: str) -> bool:
    """Every key of an input is one of the user's."""
    return True


@dataclass(frozen=True, slots=True)
class Walk:
    """One input on its way into a draft.

    Attributes
    ----------
    name
        Which NodeSet, set of logins or partition this part of the input is; empty for none.
    label
        How that is called in the report: `nodesets.gpu`, `cluster.login[front]`.
    reported
        Whether a key is one of the user's: with defaults for several NodeSets, each has keys that the report has once.
    off
        The reason why nothing of this part was in effect; it is reported and not written.
    refused
        The reason why nothing of this part can be written here.
    """

    draft: Draft
    report: Report
    name: str = ""
    label: str = ""
    reported: Callable[[str], bool] = always
    off: str = ""
    refused: str = ""

    def through(self, table: Table, value: object, path: str, around: At | None = None) -> None:
        """Go through a map."""
        if not isinstance(value, Mapping):
            raise WrongType(f"{self.report.source}: {path}: a map is needed, not {type_name(value)}")
        above = around.around if around else {}
        for key, below in value.items():
            self.visit(table, below, f"{path}.{key}" if path else key, At(key, value, above))

    def visit(self, table: Table, value: Any, path: str, at: At) -> None:
        """Find the row of a key, and follow it."""
        row = table.get(at.key, table.get(ANY))
        while isinstance(row, Shape):
            row = row.of(value, at)
        if row is None:
            self.note(path, Fate.LOST, value, why=UNKNOWN)
        elif value is None or value in ("", {}, []):
            self.note(path, Fate.KEPT, value, why=EMPTY)
        elif isinstance(row, Rule):
            self.follow(row, value, path, at)
        else:
            self.through(row, value, path, at)

    def follow(self, rule: Rule, value: Any, path: str, at: At) -> None:
        """Write a value where its row says, and report it."""
        if self.off:
            self.note(path, Fate.WITHOUT, value, why=self.off, secret=rule.secret)
            return
        if self.refused:
            self.note(path, Fate.LOST, value, why=self.refused, secret=rule.secret)
            return
        try:
            new = rule.take(value, at)
        except WithoutEffect as why:
            self.note(path, Fate.WITHOUT, value, why=str(why), secret=rule.secret)
        except Missed as why:
            self.note(path, Fate.WITHOUT, value, why=str(why), secret=rule.secret, missed=True)
        except Unconvertible as why:
            self.note(path, Fate.LOST, value, why=str(why), secret=rule.secret)
        except Mismatch as needed:
            raise WrongType(f"{self.report.source}: {path}: {needed} is needed, not {type_name(value)}") from None
        else:
            self._write(rule, value, new, path, at)

    def _write(self, rule: Rule, value: object, new: object, path: str, at: At) -> None:
        if not rule.to:
            fate = Fate.WITHOUT if rule.needless else Fate.LOST
            self.note(path, fate, value, why=rule.why, secret=rule.secret)
            return
        scope, _, rest = rule.to.partition(".")
        parts = rest.replace(ANY, at.key).split(".") if rest else []
        if new in ({}, [], ""):
            self.note(path, Fate.KEPT, value, why=rule.why or EMPTY)
            return
        if not parts:
            assert isinstance(new, dict)  # noqa: S101 rows that end in a dot give fields
            for key, one in new.items():
                self.draft.put(scope, self.name, [key], one)
            target = ", ".join(self.place(scope, [key]) for key in new)
        else:
            self.draft.put(scope, self.name, parts, new)
            target = self.place(scope, parts)
        kept = target == path and new == value
        self.note(path, Fate.KEPT if kept else Fate.CHANGED, value, target, new, why=rule.why, secret=rule.secret)

    def place(self, scope: str, parts: list[str]) -> str:
        """A path as the values have it."""
        where = ".".join(parts).replace("container", "template.spec.containers[]")
        if scope in {"nodeset", "login", "partition", "token"}:
            return f"{self.label}.{where}"
        return where if scope in {"chart", "release"} else f"{scope}.{where}"

    def note(
        self,
        path: str,
        fate: Fate,
        value: object,
        target: str = "",
        new: object = "",
        *,
        why: str = "",
        secret: bool = False,
        missed: bool = False,
    ) -> None:
        """Report one key."""
        if not self.reported(path):
            return
        old = "(not shown)" if secret else shown(value)
        self.report.entries.append(Entry(path, fate, old, target, shown(new) if target else "", why, missed=missed))


def complete(report: Report, value: object, path: str = "") -> None:
    """Report what no row covers: empty values below a default, which set nothing."""
    told = {entry.key for entry in report.entries}
    for leaf, found in _leaves(value, path):
        if told.isdisjoint(_prefixes(leaf)):
            fate, why = (Fate.KEPT, EMPTY) if found in ({}, [], "", None) else (Fate.LOST, UNKNOWN)
            report.entries.append(Entry(leaf, fate, shown(found), why=why))


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for number, below in enumerate(value):
            yield from _leaves(below, f"{path}[{number}]")
    else:
        yield path, value


def _prefixes(path: str) -> Iterator[str]:
    yield path
    for end, letter in enumerate(path):
        if letter in ".[":
            yield path[:end]
