"""User text as Slurm's own parser reads it: words `Key=Value`, and nothing that could be more.

Slurm reads several words from one line, joins lines that end in a backslash, cuts lines at `#`, takes keys in any case
and blanks around `=`. A check that looks at lines alone would therefore miss keys. Here every character of a text must
belong to a word that Slurm would read as exactly this word; what is left over is refused. Words are written again in
one form, so that what is rendered does not depend on how it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from typing_extensions import override

# Slurm's own expression, but for values: it takes any run of non-blanks, of which quotes and comment signs in the
# middle mean different things at different places.
_WORD: Final = re.compile(
    r"[ \t]*(?P<key>[A-Za-z0-9_.]+)[ \t]*(?P<operator>[-*+/]?)=[ \t]*"
    r'(?:"(?P<quoted>[^"\n]*)"|(?P<plain>[^\s"#]+))(?=[ \t]|$)',
    re.ASCII,
)
_BLANK: Final = re.compile(r"[ \t]*\Z")
_CONTROL: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]")
# As Slurm's parser: a '#' after an even number of backslashes begins a comment; blanks behind a last backslash do not
# count, and are what isspace(3) says.
_COMMENT: Final = re.compile(r"(?<!\\)((?:\\\\)*)#.*")
_TRAILING: Final = " \t\r\v\f"
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class TextProblem:
    """Why a text cannot go into a configuration."""

    reason: str
    """A sentence for the user."""

    @override
    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True, repr=False)
class Directive:
    """One word `Key=Value`."""

    key: str
    """As it was written; compare with `folded`."""

    value: str
    """Without quotes."""

    operator: str = ""
    """`+`, `-`, `*` or `/` where it stands before the `=`."""

    @property
    def folded(self) -> str:
        """The key as Slurm compares it."""
        return self.key.lower()

    @override
    def __str__(self) -> str:
        quoted = f'"{self.value}"' if not self.value or " " in self.value or "\t" in self.value else self.value
        return f"{self.key}{self.operator}={quoted}"

    # What is compared by its text (`held_nodesets`) has thousands of them.
    __repr__ = __str__


Words: TypeAlias = tuple[Directive, ...] | TextProblem
"""What a text says, or why it cannot go into a configuration."""


def parse_words(text: str, *, forbidden: Iterable[str] = ()) -> Words:
    """Read one line of words, such as what follows `PartitionName=…`.

    Parameters
    ----------
    text
        The user's words; may be empty.
    forbidden
        Keys that are written elsewhere.

    Returns
    -------
    tuple of Directive, or TextProblem
        In order, each key once; or what is wrong.
    """
    found = _words(text)
    if isinstance(found, TextProblem):
        return found
    refused = {key.lower() for key in forbidden}
    seen: set[str] = set()
    written = dict.fromkeys(f"{word.key}=" for word in found if word.folded in refused)
    if written:
        return TextProblem(f"must not contain {', '.join(written)}, which the operator writes")
    for word in found:
        if word.folded in seen:
            return TextProblem(f"{word.key} is given twice")
        seen.add(word.folded)
    return tuple(found)


def parse_lines(text: str) -> Words:
    """Read lines of a configuration file; comments are dropped, continued lines joined.

    Returns
    -------
    tuple of Directive, or TextProblem
        In order; a key may occur several times.
    """
    words: list[Directive] = []
    for number, line in logical_lines(text):
        found = _words(line)
        if isinstance(found, TextProblem):
            return TextProblem(f"line {number}: {found.reason}")
        words.extend(found)
    return tuple(words)


def logical_lines(text: str) -> tuple[tuple[int, str], ...]:
    """Lines that say something, with the numbers of their beginnings.

    As Slurm does it: first comments are cut off, then a line that ends in a backslash is joined with the next. The cost
    grows with the length of the text, however many lines are joined.
    """
    lines: list[tuple[int, str]] = []
    carried: list[str] = []
    first = 0
    physical = text.split("\n")
    for number, one in enumerate(physical, start=1):
        # Most lines have neither, and a file of the user's may have hundreds of thousands of lines.
        bare = _COMMENT.sub(r"\1", one) if "#" in one else one
        first = first or number
        if number < len(physical) and "\\" in bare and _is_continued(bare):
            carried.append(bare.rstrip(_TRAILING)[:-1])
            continue
        joined = "".join((*carried, bare)) if carried else bare
        if joined.strip(" \t"):
            lines.append((first, joined))
        carried.clear()
        first = 0
    return tuple(lines)


def _is_continued(line: str) -> bool:
    """Whether a line ends in a backslash that is not itself escaped; blanks behind it do not count."""
    bare = line.rstrip(_TRAILING)
    return (len(bare) - len(bare.rstrip("\\"))) % 2 == 1


def _words(text: str) -> list[Directive] | TextProblem:
    if _CONTROL.search(text) is not None:
        return TextProblem("must be one line without control characters")
    if text.rstrip(" \t").endswith("\\"):
        return TextProblem("must not end in a backslash, which would join it with the next line")
    if "#" in text:
        return TextProblem("must not contain '#', which begins a comment")
    words: list[Directive] = []
    at = 0
    while (match := _WORD.match(text, at)) is not None:
        key, operator, quoted, plain = match.groups()
        value = plain if quoted is None else quoted
        if value.endswith("\\"):
            # Written again without quotes, or last in its line, the word would join two lines.
            return TextProblem(f"{key} must not end in a backslash, which could join two lines")
        words.append(Directive(key, value, operator))
        at = match.end()
    if _BLANK.match(text, at) is None:
        rest = text[at:].strip()
        return TextProblem(f"must be words Key=Value, but has {rest[:_SHOWN]!r}")
    return words
