"""Links and headings of a Markdown page, as code hosts read them. Pages of the site are left to `navigation`."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

_LINK: Final = re.compile(r"(!?\[)((?:[^\[\]]|\[[^\]]*\](?:\([^)]*\))?)*)\]\(([^)\s]+)\)")
_ELSEWHERE: Final = re.compile(r"[a-z]+:")
_CODE: Final = re.compile(r"(`+[^`]*`+)")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a page that are no code, with their numbers."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


def targets(page: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Links of a page to the repository: the line, the path from the root of the repository, and the anchor."""
    for number, line in prose(text):
        for _, _, target in _LINK.findall(_CODE.sub("``", line)):
            if not _ELSEWHERE.match(target):
                yield number, *_resolved(page, target)


def rewritten(page: str, text: str, new: Callable[[str, str], tuple[str, str]]) -> str:
    """Return the page with other links to the repository.

    Parameters
    ----------
    page
        Its path from the root of the repository.
    text
        Its content.
    new
        From the text of a link and the path of its target to what the link has instead.
    """

    def link(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        if _ELSEWHERE.match(target) or target.startswith("#"):
            return found[0]
        path, anchor_name = _resolved(page, target)
        words, target = new(words, path)
        return f"{mark}{words}]({target}{'#' if anchor_name else ''}{anchor_name})"

    no_code = {number for number, _ in prose(text)}
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if number in no_code:
            spans = _CODE.findall(line)
            linked = _LINK.sub(link, _CODE.sub("\0", line))
            lines.append("".join(part + span for part, span in zip(linked.split("\0"), [*spans, ""], strict=True)))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def run_on(text: str) -> Iterator[int]:
    """Lines that begin a heading, a list or a table right after other text.

    Code hosts see that something else begins there; the generator takes it for more of what is above.
    """
    before, kind_before = 0, ""
    for number, line in prose(text):
        kind = _kind(line)
        is_next = number == before + 1 and kind_before not in {"", "comment"}
        if is_next and kind in {"heading", "list", "table"} and (kind == "heading" or kind_before == "text"):
            yield number
        before, kind_before = number, kind


def _kind(line: str) -> str:
    if line.startswith((" ", "\t")):
        return "more" if line.strip() else ""
    found = re.match(r"(?P<heading>#{1,6} )|(?P<list>[-*] |\d+\. )|(?P<table>\|)|(?P<comment><!--)|(?P<text>\S)", line)
    return (found.lastgroup or "") if found else ""


def anchor(heading: str) -> str:
    """Return what a link says after ``#`` to lead to a heading, without the number of a repeated one."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(text: str) -> frozenset[str]:
    """Return all that a link to a page can say after ``#``."""
    seen: Counter[str] = Counter()
    found = set()
    for _, line in prose(text):
        if heading := re.match(r"#{1,6} (.+)", line):
            name = anchor(heading[1])
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return frozenset(found)


def title(text: str) -> str:
    """The first heading of a page, without marks."""
    heading = next(line.removeprefix("# ") for _, line in prose(text) if line.startswith("# "))
    return re.sub(r"[`*]", "", heading)


def _resolved(page: str, target: str) -> tuple[str, str]:
    file, _, anchor_name = target.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page, anchor_name
