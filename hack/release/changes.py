"""Make a release in CHANGELOG.md of the files in ``changes/``: ``python -m hack.release.changes 0.2.0``.

What a file is to say is in ``changes/README.md``. What the release is, in a few lines, is written by hand afterwards.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[2]
CHANGELOG: Final = PROJECT / "CHANGELOG.md"
FOLDER: Final = PROJECT / "changes"
KINDS: Final = ("added", "changed", "fixed")
UNRELEASED: Final = "## Unreleased\n\nOne file a change in [changes](changes/README.md).\n"


def fragments(folder: Path) -> dict[str, str]:
    """The text of each file of a change, by the file's name.

    Raises
    ------
    ValueError
        A file's name has no kind, or its text is no single paragraph.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        text = path.read_text(encoding="utf-8").strip()
        if path.name.split(".")[1:] not in [[kind, "md"] for kind in KINDS]:
            raise ValueError(f"{path.name}: the name must be <what-it-is>.<kind>.md, with a kind of {', '.join(KINDS)}")
        if not text.startswith("**") or "\n\n" in text:
            raise ValueError(f"{path.name}: the text must be one paragraph that begins with the thing in bold")
        found[path.name] = text
    return found


def released(text: str, version: str, found: Mapping[str, str]) -> str:
    """The text of CHANGELOG.md with a release of these changes."""
    if text.count(UNRELEASED) != 1:
        raise ValueError("CHANGELOG.md must have the heading Unreleased once, with the sentence below it and no change")
    sections = []
    for kind in KINDS:
        lines = [
            f"- {change}\n".replace("\n", "\n  ").rstrip() for name, change in found.items() if f".{kind}." in name
        ]
        if lines:
            sections.append(f"### {kind.capitalize()}\n\n" + "\n".join(lines) + "\n")
    return text.replace(UNRELEASED, f"{UNRELEASED}\n## {version}\n\n" + "\n".join(sections))


class NoSection(Exception):
    """CHANGELOG.md has no section of a release."""


def section(text: str, version: str) -> str:
    """The section of a release in CHANGELOG.md, without its heading: the notes of that release.

    Raises
    ------
    NoSection
        There is none.
    """
    _, found, rest = f"\n{text}".partition(f"\n## {version}\n")
    if not found:
        raise NoSection(f"CHANGELOG.md has no section {version}: run `python -m hack.release.changes {version}`")
    return rest.partition("\n## ")[0].strip() + "\n"


def entries(section: str) -> Iterator[tuple[str, str]]:
    """The kind and the text of each change in a section of CHANGELOG.md; without a heading it is new."""
    kind = KINDS[0]
    for part in re.split(r"\n(?=### |- )", f"\n{section}"):
        heading, rest = part.partition(" ")[::2]
        if heading == "###":
            kind = rest.strip().lower()
        elif heading == "-":
            yield kind, " ".join(rest.split())


if __name__ == "__main__":
    changes = fragments(FOLDER)
    _ = CHANGELOG.write_text(released(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1], changes), encoding="utf-8")
    for file in changes:
        (FOLDER / file).unlink()
