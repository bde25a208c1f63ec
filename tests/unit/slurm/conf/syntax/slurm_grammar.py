"""Slurm's parsing of a configuration file, implemented a second time: it shares no code with the operator.

A line goes through these steps, in this order: cut at a `#` that no odd number of backslashes precedes; joined with the
next if it ends in an odd number of backslashes, blanks after them notwithstanding; freed of backslashes; then read word
by word, each the longest match, until no word is left to match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLANKS = " \t\n\v\f\r"
_KEY = re.compile(rf"[{_BLANKS}]*([A-Za-z0-9_.]+)[{_BLANKS}]*[-*+/]?=[{_BLANKS}]*")
_INCLUDE = re.compile(rf"include[{_BLANKS}]+", re.IGNORECASE)


@dataclass(frozen=True)
class Word:
    key: str
    value: str


class Unreadable(Exception):
    """Slurm would end with a parsing error here."""


def read(text: str) -> list[list[Word]]:
    """Words of each line that has any, keys in lower case."""
    found = []
    for line in _lines(text):
        if _INCLUDE.match(line):
            raise Unreadable(line)
        words = _words(line)
        if words:
            found.append(words)
    return found


def _lines(text: str) -> list[str]:
    lines, joined = [], ""
    for physical in text.split("\n"):
        line = _without_comment(physical)
        end = len(line.rstrip(_BLANKS))
        backslashes = end - len(line[:end].rstrip("\\"))
        if backslashes % 2:
            joined += line[: end - 1]
            continue
        lines.append(joined + line)
        joined = ""
    return [re.sub(r"\\(.)", r"\1", line, flags=re.DOTALL) for line in (*lines, joined)]


def _without_comment(line: str) -> str:
    odd = False
    for at, character in enumerate(line):
        if character == "#" and not odd:
            return line[:at]
        odd = character == "\\" and not odd
    return line


def _words(line: str) -> list[Word]:
    words = []
    rest = line
    while rest.strip(_BLANKS):
        key = _KEY.match(rest)
        if key is None:
            raise Unreadable(line)
        after = rest[key.end() :]
        quoted = re.match(rf'"([^"]*)"(?=[{_BLANKS}]|$)', after)
        plain = re.match(rf"[^{_BLANKS}]+", after)
        value = max((one for one in (quoted, plain) if one is not None), key=lambda one: one.end(), default=None)
        if value is None:
            raise Unreadable(line)
        words.append(Word(key[1].lower(), value[1] if value is quoted else value[0]))
        rest = after[value.end() :]
    return words
