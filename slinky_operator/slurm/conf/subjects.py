"""Whose line of slurm.conf a daemon has refused: the partition, the node or the NodeSet. Pure.

Slurm names the key and its value (`Bad value "banana" for MaxTime`), and of most keys of partitions and nodes nothing
else; the number of a line, where there is one, is that of a file which nobody sees. What is found here is said beside
Slurm's own words, which stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem, logical_lines, parse_lines

_KINDS: Final = {"partitionname": "partition", "nodename": "node", "nodeset": "NodeSet"}
"""First keys of lines that are about one thing, and what that is."""

_NUMBERED: Final = re.compile(r"slurm\.conf line (\d{1,7})\b", re.ASCII)

_WEIGHTS: Final = frozenset({"tresbillingweights", "tresweights"})
"""Keys that Slurm does not name, but for their value in quotes."""

_OTHER_WORDS: Final = {"topology": "partition topology"}
"""Keys that Slurm's messages do not spell as slurm.conf does."""


def refused(message: str, text: str) -> tuple[str, ...]:
    """The partitions, nodes and NodeSets whose lines a message is about.

    Parameters
    ----------
    message
        Slurm's own words, whole.
    text
        The slurm.conf that it has read.

    Returns
    -------
    tuple of str
        Such as ``partition long``, in the order of the file. Empty if the message names one itself, or is about none,
        or does not say which of several.
    """
    lines = dict(_lines(text))
    subjects = {number: f"{_KINDS[words[0].folded]} {words[0].value}" for number, words in lines.items()}
    if any(_is_named(subject, message) for subject in subjects.values()):
        return ()
    numbered = [int(one) for one in _NUMBERED.findall(message)]
    if numbered:
        return tuple(dict.fromkeys(subjects[one] for one in numbered if one in subjects))
    for fits in (_has_both, _has_weights):
        found = [subjects[number] for number, words in lines.items() if any(fits(one, message) for one in words[1:])]
        if found:
            return tuple(dict.fromkeys(found))
    by_key = {subjects[number] for number, words in lines.items() if any(_has_key(one, message) for one in words[1:])}
    return tuple(by_key) if len(by_key) == 1 else ()


def _lines(text: str) -> Iterator[tuple[int, tuple[Directive, ...]]]:
    for number, line in logical_lines(text):
        words = parse_lines(line)
        if not isinstance(words, TextProblem) and words and words[0].folded in _KINDS:
            yield number, words


def _is_named(subject: str, message: str) -> bool:
    kind, _, name = subject.partition(" ")
    if name not in message:
        return False
    before = rf"(?:{kind}|{kind}names?|from|for)[ =]['\"]?"
    return re.search(rf"{before}{re.escape(name)}(?![\w.-])", message, re.IGNORECASE) is not None


def _has_both(word: Directive, message: str) -> bool:
    return _has(word.key, message) and _has(word.value, message)


def _has_weights(word: Directive, message: str) -> bool:
    return word.folded in _WEIGHTS and f"'{word.value}'" in message


def _has_key(word: Directive, message: str) -> bool:
    return _has(_OTHER_WORDS.get(word.folded, word.key), message)


def _has(part: str, message: str) -> bool:
    """Whether a message has these characters, and none more of the same word."""
    if not part or part not in message:
        return False
    return re.search(rf"(?<![\w.]){re.escape(part)}(?![\w.])", message) is not None
