"""The fenced blocks of a Markdown page, and what tests do with each.

A comment before a block, which readers do not see, determines this:

``<!-- run -->``
    Commands are run in the order of the page; other languages are run by a separate test.
``<!-- run until it shows -->``
    A read-only command is repeated until it prints what the next block shows.
``<!-- run in a terminal, typing: WORDS -->``
    A command that opens a shell; these words are typed when it has shown its prompt.
``<!-- file: NAME -->``
    The text is saved in a file of that name, for later commands.
``<!-- shows -->``, ``<!-- shows, varying: 12s 17 -->``
    The output of the commands before it. The words named match any word; a line ``…`` matches any lines.
``<!-- not run: REASON -->``
    It is not run, for the given reason.

Running is left to `tests.support.shell` and to the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from hack.localkube.paths import PROJECT

CODE = ("sh", "yaml", "python")
"""Languages of blocks that must say what becomes of them."""

_FENCE = re.compile(r"^```(\w*)\s*$")
_COMMENT = re.compile(r"^<!-- (.*) -->$")
_WORDS = re.compile(
    r"(?P<run>run)|(?P<repeat>run until it shows)|run in a terminal, typing: (?P<typed>.+)|file: (?P<file>\S+)"
    r"|not run: (?P<reason>.+)"
    r"|(?P<shows>shows)(?:, varying: (?P<varying>.+))?"
)


class Action(Enum):
    """What becomes of a block."""

    NONE = "nothing is said"
    RUN = "run"
    REPEAT = "run until it shows"
    TERMINAL = "run in a terminal"
    FILE = "file"
    SHOWS = "shows"
    NOT_RUN = "not run"


WHOLE_SITE = "A whole site"
"""Heading of the README that a test of samples follows, in a Kubernetes that has the operator."""

RUNNING = (Action.RUN, Action.REPEAT, Action.TERMINAL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Attributes
    ----------
    page
        Path of its page from the root of the repository.
    line
        Number of its first line, the fence, from 1.
    heading
        Text of the last heading before it.
    language
        The fence's word, empty if it has none.
    text
        What is between the fences.
    action
        What becomes of it.
    words
        What the comment says beside that: a reason, a file's name, words that vary or are typed.
    """

    page: str
    line: int
    heading: str
    language: str
    text: str
    action: Action = Action.NONE
    words: str = ""

    @property
    def place(self) -> str:
        """Page and line, as editors and people write them."""
        return f"{self.page}:{self.line}"


def blocks(page: str, text: str | None = None) -> list[Block]:
    """Return the fenced blocks of a page in their order.

    Parameters
    ----------
    page
        Path from the root of the repository.
    text
        Its content; read from the file when absent.
    """
    return list(_read(page, (PROJECT / page).read_text(encoding="utf-8") if text is None else text))


def _read(page: str, text: str) -> Iterator[Block]:
    heading, comment, start, language = "", "", 0, ""
    content: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if start:
            if fence and not fence[1]:
                action, words = _action(comment)
                yield Block(page, start, heading, language, "".join(content), action, words)
                comment, start, content = "", 0, []
            else:
                content.append(f"{line}\n")
        elif fence:
            start, language = number, fence[1]
        elif found := _COMMENT.match(line):
            comment = found[1]
        elif line.strip():
            comment = ""
            heading = line.lstrip("# ") if line.startswith("#") else heading


def _action(comment: str) -> tuple[Action, str]:
    found = _WORDS.fullmatch(comment)
    if found is None:
        return Action.NONE, comment
    if found["file"]:
        return Action.FILE, found["file"]
    if found["typed"]:
        return Action.TERMINAL, found["typed"]
    if found["reason"]:
        return Action.NOT_RUN, found["reason"]
    if found["shows"]:
        return Action.SHOWS, found["varying"] or ""
    return (Action.REPEAT if found["repeat"] else Action.RUN), ""


def problems(found: Sequence[Block]) -> list[str]:
    """Return what is wrong with how the blocks of a page are marked, one line each."""
    lines = []
    before: Block | None = None
    for block in found:
        if block.language in CODE and block.action is Action.NONE:
            said = (
                f"`{block.words}` is not understood" if block.words else "it says neither `run` nor `not run: reason`"
            )
            lines.append(f"{block.place}: {said}")
        if block.action is Action.SHOWS and (before is None or before.action not in RUNNING):
            lines.append(f"{block.place}: shows what no block before it prints")
        if before is not None and before.action is Action.REPEAT and block.action is not Action.SHOWS:
            lines.append(f"{before.place}: no block shows what it waits for")
        before = block
    if before is not None and before.action is Action.REPEAT:
        lines.append(f"{before.place}: no block shows what it waits for")
    return lines


def agrees(shown: Block, printed: str) -> bool:
    """Whether commands printed what a block shows; blanks between words count as one."""
    varying = set(shown.words.split())
    pattern = "".join(_pattern(line, varying) for line in shown.text.splitlines())
    lines = (" ".join(line.split()) for line in printed.splitlines())
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines if line)) is not None


def _pattern(line: str, varying: set[str]) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*"
    words = [r"\S+" if word in varying else re.escape(word) for word in line.split()]
    return " ".join(words) + r"\n" if words else ""
