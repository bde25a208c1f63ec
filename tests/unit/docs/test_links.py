"""Each link of a page leads to a file of the repository, and to a heading that the file has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hack.localkube.paths import PROJECT

PAGES = sorted(
    path
    for folder in ("", "docs", "helm", "slurm_client")
    for path in (PROJECT / folder).glob("**/*.md" if folder else "*.md")
)

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:")


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """Lines of a page that are no code, with their numbers."""
    in_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def anchor(heading: str) -> str:
    """Return what a link says after ``#`` to lead to a heading, without the number of a repeated one."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return all that a link to a page can say after ``#``."""
    seen: Counter[str] = Counter()
    found = set()
    for _, line in prose(page):
        if heading := re.match(r"#{1,6} (.+)", line):
            name = anchor(heading[1])
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return frozenset(found)


def broken(page: Path) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for number, line in prose(page):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if ELSEWHERE.match(target):
                continue
            file, _, heading = target.partition("#")
            path = (page.parent / file).resolve() if file else page
            if not path.exists() or (heading and path.suffix == ".md" and heading not in anchors(path)):
                yield f"{page.name}:{number}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert not list(broken(page))


def test_every_page_is_in_the_index_by_reader() -> None:
    index = (PROJECT / "docs" / "README.md").read_text(encoding="utf-8")
    docs = PROJECT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.glob("**/*.md")} - {"README.md"}
    assert pages == pages & set(re.findall(r"\]\(([\w/-]+\.md)\)", index))


def test_a_link_to_a_missing_file_or_heading_is_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `title`, with marks\n## Again\n## Again\n"
        "[right](#a-title-with-marks) [right](page.md#again-1) [there](https://example.com/#x) `[code](no.md)`\n"
        "```\n[in a block](no.md)\n```\n"
        "[wrong](no.md) ![wrong](#again-2)\n"
    )
    assert list(broken(page)) == ["page.md:8: no.md", "page.md:8: #again-2"]
