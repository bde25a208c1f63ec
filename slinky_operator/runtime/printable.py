"""Texts of others as a terminal, a log and a list of Events show them.

Code that shows a text of users, Slurm or pods to people makes it printable: an escape sequence is
obeyed by terminals, and in a log a line break would begin a record. Conditions and Events may have lines: some show a
manifest.
"""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text with what does not print as an escape, such as `\n`, `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def printable_lines(text: str) -> str:
    """Return a text in the same way, with its line breaks."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
