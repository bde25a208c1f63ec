"""Texts of others in one line that a terminal, a log and a list of Events show as they are.

Whoever writes a text of users, Slurm or pods somewhere where people read it makes it printable: a line break would
look like a line of the operator's own, and an escape sequence is obeyed by terminals.
"""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text with what does not print as an escape, such as `\n`, `\x1b` or `\u202e`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(one) for one in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
