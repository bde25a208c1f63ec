"""The report of a conversion, key by key, as text and as JSON.

Every key of an input is in exactly one list. Values are shortened, and those that may hold a password are not shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

SHOWN: Final = 80
"""Characters of a value that are shown."""

_SECRET: Final = re.compile(r"(?i)passw|storagepass|private key|bind_?pw|authtok")


class Fate(StrEnum):
    """What has become of a key."""

    KEPT = "kept"
    CHANGED = "changed"
    LOST = "lost"
    WITHOUT = "without counterpart"
    OVERRIDDEN = "overridden"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of the input: its name and value, and what has become of both."""

    key: str
    fate: Fate
    old: str
    to: str = ""
    new: str = ""
    why: str = ""
    missed: bool = False
    """Without a counterpart, and in effect before."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that the input does not set, and that is otherwise here."""

    about: str
    slinky: str
    here: str


@dataclass(slots=True)
class Report:
    """All that is to be said of one conversion."""

    source: str
    form: str = ""
    entries: list[Entry] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    def of(self, fate: Fate) -> list[Entry]:
        """The entries of one list."""
        return [entry for entry in self.entries if entry.fate is fate]

    @property
    def lossless(self) -> bool:
        """Whether nothing that had an effect is missing."""
        return not any(entry.fate is Fate.LOST or entry.missed for entry in self.entries)

    def differs(self, about: str, slinky: str, here: str) -> None:
        """Note a default that is another one here."""
        self.differences.append(Difference(about, slinky, here))


def shown(value: object) -> str:
    """A value in one line, shortened; a possible password is not shown."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if _SECRET.search(text):
        return "(not shown)"
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def as_text(report: Report) -> str:
    """The report for people."""
    made = [f"{report.source}: {report.form}"]
    for fate in Fate:
        found = report.of(fate)
        if found:
            made += ["", f"{fate} ({len(found)}):", *(f"  {_line(entry)}" for entry in found)]
    if report.differences:
        made += ["", f"defaults that differ ({len(report.differences)}):"]
        made += [
            f"  {difference.about}: Slinky: {difference.slinky}; here: {difference.here}"
            for difference in report.differences
        ]
    counts = ", ".join(f"{len(report.of(fate))} {fate}" for fate in Fate if fate is not Fate.OVERRIDDEN)
    made += ["", f"{counts}, {len(report.differences)} defaults that differ"]
    return "\n".join(made) + "\n"


def as_object(report: Report) -> dict[str, Any]:
    """The report for programs."""
    names: Mapping[Fate, str] = {Fate.WITHOUT: "withoutCounterpart"}
    return {
        "source": report.source,
        "form": report.form,
        "lossless": report.lossless,
        **{names.get(fate, fate.value): [_fields(entry) for entry in report.of(fate)] for fate in Fate},
        "defaults": [
            {"about": difference.about, "slinky": difference.slinky, "here": difference.here}
            for difference in report.differences
        ],
    }


def _fields(entry: Entry) -> dict[str, Any]:
    found = {"key": entry.key, "value": entry.old, "to": entry.to, "newValue": entry.new, "why": entry.why}
    return {name: text for name, text in found.items() if text or name in {"key", "value"}} | (
        {"hadEffect": True} if entry.missed else {}
    )


def _line(entry: Entry) -> str:
    if entry.fate is Fate.KEPT:
        return f"{entry.key}: {entry.old}{f' ({entry.why})' if entry.why else ''}"
    if entry.fate is Fate.CHANGED:
        value = entry.new if entry.new == entry.old else f"{entry.old} -> {entry.new}"
        return f"{entry.key} -> {entry.to}: {value}{f' ({entry.why})' if entry.why else ''}"
    effect = " It was in effect." if entry.missed else ""
    return f"{entry.key}: {entry.old}: {entry.why}{effect}"
