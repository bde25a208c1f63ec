"""The pages of the site and their navigation, read from the index by reader (``docs/README.md``).

The index is the only list: a heading of it is a part of the site, a heading below that a group of pages, and each link
to a Markdown file a page. Files of other kinds that a page links to (samples, pictures, examples) come with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hack.documents.site.links import anchors, run_on, targets

PROJECT: Final = Path(__file__).parents[3]
HOME: Final = "README.md"
INDEX: Final = "docs/README.md"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the site, or a group of pages in one.

    Parameters
    ----------
    title
        Its heading in the index.
    pages
        Paths of its pages from the root of the repository, in their order.
    groups
        The groups below it.
    """

    title: str
    pages: list[str] = field(default_factory=list)
    groups: list[Part] = field(default_factory=list)

    def all_pages(self) -> Iterator[str]:
        """Its own pages, then those of its groups."""
        yield from self.pages
        for group in self.groups:
            yield from group.all_pages()


@dataclass(frozen=True, slots=True)
class Site:
    """All pages with their texts.

    Parameters
    ----------
    parts
        The navigation.
    texts
        The text of each page, by its path from the root of the repository.
    """

    parts: tuple[Part, ...]
    texts: Mapping[str, str]

    @property
    def files(self) -> list[str]:
        """Every other file that pages link to."""
        linked = {path for page, text in self.texts.items() for _, path, _ in targets(page, text)}
        return sorted(path for path in linked if not path.endswith(".md"))


def parts(index: str) -> Iterator[Part]:
    """The parts of the site that an index lists."""
    part: Part | None = None
    for line in index.splitlines():
        if heading := re.match(r"(##|###) (.+)", line):
            if heading[1] == "##":
                if part is not None:
                    yield part
                part = Part(heading[2])
            elif part is not None:
                part.groups.append(Part(heading[2]))
        elif part is not None and line.startswith("|"):
            place = part.groups[-1] if part.groups else part
            place.pages.extend(path for _, path, _ in targets(INDEX, line) if path.endswith(".md"))
    if part is not None:
        yield part


def site(root: Path = PROJECT) -> Site:
    """Read the site of a repository; pages that are listed and missing are left out."""
    listed = tuple(parts((root / INDEX).read_text(encoding="utf-8")))
    pages = [HOME, INDEX, *(page for part in listed for page in part.all_pages())]
    return Site(listed, {page: (root / page).read_text(encoding="utf-8") for page in pages if (root / page).is_file()})


def problems(root: Path = PROJECT) -> Iterator[str]:
    """What a reader of the site would miss, one line each: pages without a part, links to nowhere, lost headings."""
    built = site(root)
    listed = Counter(page for part in built.parts for page in part.all_pages())
    yield from (f"{INDEX}: {page} is in it {times} times" for page, times in listed.items() if times > 1)
    pages = (path.relative_to(root).as_posix() for path in sorted((root / "docs").rglob("*.md")))
    yield from (f"{INDEX}: {page} is not in it" for page in pages if page not in built.texts)
    for page, text in built.texts.items():
        yield from (f"{page}:{number}: an empty line is missing before this one" for number in run_on(text))
        for number, path, anchor_name in targets(page, text):
            if path.endswith(".md") and path not in built.texts and page != INDEX:
                yield f"{page}:{number}: {path} is not in {INDEX}"
            elif not (root / path).is_file():
                yield f"{page}:{number}: {path} is no file"
            elif anchor_name and path.endswith(".md") and anchor_name not in anchors(built.texts[path]):
                yield f"{page}:{number}: {path} has no heading #{anchor_name}"
