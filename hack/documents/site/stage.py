"""Lay the pages out for the generator, and write its navigation: ``python -m hack.documents.site.stage``.

A page of ``docs`` lies at the top of the site, the README is its first page, and everything else lies where it lies in
the repository; links between them are changed accordingly. Where a link's text is the name of a file, as readers of the
repository want it, the site has the title of that page.
"""

from __future__ import annotations

import posixpath
import shutil
from pathlib import Path
from typing import Any, Final

import yaml

from hack.documents.site.links import rewritten, title
from hack.documents.site.navigation import HOME, INDEX, PROJECT, Part, Site, problems, site

BUILD: Final = PROJECT / "build" / "docs"
PAGES: Final = BUILD / "pages"
SETTINGS: Final = BUILD / "mkdocs.yml"
"""What the generator is started with: the settings at the top of the repository, and the navigation."""

LOOKED_UP: Final = ("Developers", "Reference")
"""Parts whose pages name everything, and so would come first for every word that is searched for."""

_RANKS_LOWER: Final = "---\nsearch:\n  boost: 0.2\n---\n\n"

_FIRST: Final = {HOME: "index.md", INDEX: "pages.md"}


def staged(path: str) -> str:
    """Where a file of the repository lies in the site."""
    return _FIRST.get(path) or path.removeprefix("docs/")


def content(page: str, built: Site) -> str:
    """The text of a page as the site has it."""
    folder = posixpath.dirname(staged(page))

    def link(text: str, path: str) -> tuple[str, str]:
        is_name = text.endswith(".md") and posixpath.basename(path) == posixpath.basename(text)
        return title(built.texts[path]) if is_name and path in built.texts else text, posixpath.relpath(
            staged(path), folder or "."
        )

    return rewritten(page, built.texts[page], link)


def navigation(built: Site) -> list[dict[str, Any]]:
    """The navigation as the generator reads it."""

    def entry(page: str) -> dict[str, str]:
        return {title(built.texts[page]): staged(page)}

    def part(one: Part) -> dict[str, Any]:
        return {one.title: [*map(entry, one.pages), *map(part, one.groups)]}

    return [{"Home": [entry(HOME), entry(INDEX)]}, *map(part, built.parts)]


def write(built: Site, pages: Path, settings: Path) -> None:
    """Write all pages and files of the site, and the settings."""
    shutil.rmtree(pages, ignore_errors=True)
    lower = {page for part in built.parts if part.title in LOOKED_UP for page in part.all_pages()}
    for path in built.texts:
        text = (_RANKS_LOWER if path in lower else "") + content(path, built)
        _folder(pages / staged(path)).write_text(text, encoding="utf-8")
    for path in built.files:
        shutil.copyfile(PROJECT / path, _folder(pages / staged(path)))
    top = posixpath.relpath(PROJECT / "mkdocs.yml", settings.parent)
    settings.write_text(yaml.safe_dump({"INHERIT": top, "nav": navigation(built)}, sort_keys=False), encoding="utf-8")


def _folder(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def main() -> None:
    """Write them, or say what is wrong with the site."""
    if found := "\n".join(problems()):
        raise SystemExit(found)
    write(site(), PAGES, SETTINGS)


if __name__ == "__main__":
    main()
