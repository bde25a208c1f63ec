"""The golden trace: what stories tell, kept in files beside, and written again by this program.

``python -m tests.unit.cluster.stories.golden`` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.unit.cluster.stories.site import Site, live
from tests.unit.cluster.stories.table import FIRST, TABLE
from tests.unit.cluster.stories.telling import Flat

FOLDER = Path(__file__).parent.parent / "golden"

MARK = "=== "
"""Before the name of a story."""

CONTEXT = 12
"""Lines before the first difference."""

SHOWN = 60
"""Lines of a difference."""


@cache
def references() -> Mapping[str, Flat]:
    """The first object of each kind."""
    found: dict[str, Flat] = {}
    for chapter, name in FIRST:
        told(chapter, name, found)
    return found


def told(chapter: str, name: str, references: dict[str, Flat]) -> str:
    """Live through a story."""
    site = Site({}, references)
    return live(TABLE[chapter][name], site)


def tell(chapter: str, name: str) -> str:
    """What a story tells now."""
    if (chapter, name) in FIRST:
        known: dict[str, Flat] = {}
        for first in FIRST[: FIRST.index((chapter, name))]:
            told(*first, known)
        return told(chapter, name, known)
    return told(chapter, name, dict(references()))


def file_of(chapter: str) -> Path:
    """Where a chapter is kept."""
    return FOLDER / f"{chapter.replace(' ', '_')}.txt"


@cache
def stored(chapter: str) -> Mapping[str, str]:
    """The stories of a chapter as they are kept."""
    path = file_of(chapter)
    parts = path.read_text().split(f"\n{MARK}") if path.exists() else []
    found = {}
    for part in parts[1:]:
        name, _, text = part.partition("\n")
        found[name] = f"{text.rstrip(chr(10))}\n"
    return found


def first_difference(before: str, after: str) -> Iterator[str]:
    """The first pass that differs, for people: what was told, with a minus, and what is, with a plus."""
    old, new = before.split("\n"), after.split("\n")
    at = next((n for n, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), min(len(old), len(new)))
    begin = max((n for n in range(at + 1) if n < len(old) and old[n].startswith("- ")), default=0)
    if at - begin > CONTEXT:
        yield f"  {old[begin]}"
        yield "  ..."
    yield from (f"  {line}" for line in old[max(begin, at - CONTEXT) : at])
    yield from (f"- {line}" for line in _pass(old, at))
    yield from (f"+ {line}" for line in _pass(new, at))


def _pass(lines: list[str], at: int) -> list[str]:
    end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("- ")), len(lines))
    return lines[at : min(end, at + SHOWN)]


def write() -> None:
    """Write all chapters."""
    FOLDER.mkdir(exist_ok=True)
    for chapter, stories in TABLE.items():
        parts = [f"\n{MARK}{name}\n{tell(chapter, name)}" for name in stories]
        file_of(chapter).write_text(f"{chapter.capitalize()}, told by `make golden`.\n{''.join(parts)}")


if __name__ == "__main__":
    write()
