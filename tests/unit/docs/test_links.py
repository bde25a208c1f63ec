"""Each link of a page leads to a file of the repository, and to a heading that the file has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hack.documents.site import links
from hack.localkube.paths import PROJECT

PAGES = sorted(
    path
    for folder in ("", "docs", "helm", "slurm_client")
    for path in (PROJECT / folder).glob("**/*.md" if folder else "*.md")
)

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:")


@cache
def headings(page: Path) -> frozenset[str]:
    """All that a link to a page can say after ``#``."""
    return links.anchors(page.read_text(encoding="utf-8"))


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Lines of a page that are no code, with their numbers."""
    return links.prose(page.read_text(encoding="utf-8"))


def broken(page: Path) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for number, line in prose(page):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if ELSEWHERE.match(target):
                continue
            file, _, heading = target.partition("#")
            path = (page.parent / file).resolve() if file else page
            if not path.exists() or (heading and path.suffix == ".md" and heading not in headings(path)):
                yield f"{page.name}:{number}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert not list(broken(page))


def test_a_link_to_a_missing_file_or_heading_is_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `title`, with marks\n## Again\n## Again\n"
        "[right](#a-title-with-marks) [right](page.md#again-1) [there](https://example.com/#x) `[code](no.md)`\n"
        "```\n[in a block](no.md)\n```\n"
        "[wrong](no.md) ![wrong](#again-2)\n"
    )
    assert list(broken(page)) == ["page.md:8: no.md", "page.md:8: #again-2"]
