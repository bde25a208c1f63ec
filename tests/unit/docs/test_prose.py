"""Prose has one sentence or one paragraph a line, so that a diff shows what has changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.documents.site.links import prose
from hack.localkube.paths import PROJECT

GENERATED = {"api-reference.md", "helm-values.md"}
PAGES = sorted(
    page
    for page in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *(PROJECT / "docs").glob("**/*.md"))
    if page.name not in GENERATED
)

WRAPPED_BY_HAND = {"reliability-journal.md"}
"""Pages of before this rule."""

BEGINS = re.compile(r"\s*([-*]|\d+\.) |[#|<>]")
"""A list item, a heading, a table, a comment: no line goes on from there to here."""

ENDS = re.compile(r"[.!?:;…][*`\"')]*$")


def wrapped(text: str) -> Iterator[int]:
    """Lines that end in the middle of a sentence."""
    before, end = 0, ""
    for number, line in prose(text):
        goes_on = number == before + 1 and line.strip() and not BEGINS.match(line)
        if goes_on and not ENDS.search(end) and not re.match(r"[#|<>]", end):
            yield before
        before, end = (number, line.rstrip()) if line.strip() else (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_no_line_ends_in_the_middle_of_a_sentence(page: Path) -> None:
    found = list(wrapped(page.read_text(encoding="utf-8")))
    assert not found or page.name in WRAPPED_BY_HAND, f"one sentence or paragraph a line: {found}"


@pytest.mark.parametrize("name", sorted(WRAPPED_BY_HAND))
def test_pages_of_before_are_still_wrapped(name: str) -> None:
    (page,) = (one for one in PAGES if one.name == name)
    assert list(wrapped(page.read_text(encoding="utf-8")))


def test_what_a_wrapped_line_is() -> None:
    text = (
        "# A title\nText that goes on\nhere. A sentence.\nAnother one:\n\n- an item\n- that goes\n  on\n\n"
        "| a | b |\n|---|---|\n\n```\ncode\ncode\n```\n**Bold.**\nText.\n"
    )
    assert list(wrapped(text)) == [2, 7]
