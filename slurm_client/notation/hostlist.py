"""
Slurm's notation for many hosts in few words: ``w-[0-3,7],login`` is five nodes.

Only what slurmctld writes is read: comma-separated names, each with any number of bracketed ranges, zero-padded or not.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LIMIT = 65_536
"""Most names one expression may stand for; what claims more is not a list of hosts: no Slurm cluster has more nodes."""

REMEMBERED = 256
"""Most characters of an expression whose names are kept for the next time, and most of these names."""

LONGEST_NAME = 256
"""Most characters of a name with a range in it: a name of DNS has 253. Each such name is made once for each number."""

_MOST_BRACKETS = 16
"""Most brackets of one name; Slurm reads fewer dimensions."""

_UNCOUNTED = 10**18
"""What is counted no further: brackets beside brackets multiply, and such a number has no end."""

_WORD = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_RANGES = re.compile(r"\s*[0-9]{1,18}(?:-[0-9]{1,18})?\s*(?:,\s*[0-9]{1,18}(?:-[0-9]{1,18})?\s*)*")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")

_Range = tuple[int, int, int]
"""First and last number, and the characters that a number has at least."""


def expand(hostlist: str) -> tuple[str, ...]:
    """
    Return the names a host list stands for, in its order.

    A text that is no host list (unbalanced or empty brackets, a range that runs backwards, more than :data:`LIMIT`
    names, names of more than :data:`LONGEST_NAME` characters) is returned as its own only name, because nothing is
    gained by an error about an answer of the server.

    Examples
    --------
    >>> expand("w-[0-2,07],login")
    ('w-0', 'w-1', 'w-2', 'w-07', 'login')
    """
    if len(hostlist) > REMEMBERED or size(hostlist) > REMEMBERED:
        # What anybody may write is not kept: a few such lists would fill the memory.
        return _expand(hostlist)
    return _remembered(hostlist)


def size(hostlist: str) -> int:
    """
    Return how many names a host list stands for, without making them; 1 for a text that is none.

    A list of more than :data:`LIMIT` names counts as what it claims, or as more than :data:`LIMIT`.
    """
    try:
        return _count(_split(hostlist))
    except ValueError:
        return 1


def shorten(hostlist: str, longest: int) -> str:
    """
    Return a host list that is no longer than this; of a longer one whole names or ranges, and how many more there are.

    Parameters
    ----------
    hostlist
        A host list.
    longest
        Most characters of the result, at least 32.

    Examples
    --------
    >>> shorten("w-[0-2,07],login", 32)
    'w-[0-2,07],login'
    >>> shorten("w-[0-2,07,11-13,21-23,31-33],login", 32)
    'w-[0-2,07,11-13] and 7 more'
    """
    if len(hostlist) <= longest:
        return hostlist
    words: list[str] = []
    try:
        words = _split(hostlist)
        count = _count(words)
    except ValueError:
        count = LIMIT + 1
    if count > LIMIT:
        return f"{hostlist[: longest - 1]}…"
    room = longest - len(f" and {count} more")
    kept: list[str] = []
    for word in words:
        left = room - sum(len(one) + 1 for one in kept)
        part = word if len(word) <= left else _shortened(word, left)
        kept += [part] if part else []
        if part != word:
            break
    more = count - sum(map(_count_one, kept))
    return f"{','.join(kept)} and {more} more" if kept else f"{count} nodes"


def _shortened(word: str, longest: int) -> str:
    """Return a name with as many of its bracketed ranges as fit; empty if that is none."""
    pieces = _BRACKETS.split(word)
    if len(pieces) != 3:
        return ""
    left = longest - len(pieces[0]) - len(pieces[2]) - 1
    end = pieces[1].rfind(",", 0, max(left, 0))
    return f"{pieces[0]}[{pieces[1][:end]}]{pieces[2]}" if end > 0 else ""


def _expand(hostlist: str) -> tuple[str, ...]:
    try:
        words = _split(hostlist)
        if _count(words) > LIMIT:
            return (hostlist,)
        return tuple(itertools.chain.from_iterable(map(_expand_one, words)))
    except ValueError:
        return (hostlist,)


_remembered = functools.lru_cache(maxsize=4096)(_expand)


def _split(hostlist: str) -> list[str]:
    """Split at commas outside brackets; ValueError where brackets do not match, or for more than any list of names."""
    if hostlist.count(",") > 2 * LIMIT:
        raise ValueError(hostlist)
    words, place = [], 0
    while True:
        match = _WORD.match(hostlist, place)
        assert match is not None  # noqa: S101 - the expression matches an empty text too
        words.append(match[0])
        place = match.end()
        if place == len(hostlist):
            return [stripped for word in words if (stripped := word.strip())]
        if hostlist[place] != ",":
            raise ValueError(hostlist)
        place += 1


def _count(words: Iterable[str]) -> int:
    """Count names; of more than :data:`LIMIT` not all."""
    count = 0
    for word in words:
        count += _count_one(word)
        if count > LIMIT:
            break
    return count


def _count_one(word: str) -> int:
    """Count what :func:`_expand_one` gives; ValueError for names that are too long."""
    if "[" not in word:
        return 1
    pieces = _BRACKETS.split(word, _MOST_BRACKETS + 1)
    if len(pieces) > 2 * _MOST_BRACKETS + 1:
        raise ValueError(word)
    count, longest = 1, sum(map(len, pieces[::2]))
    for piece in pieces[1::2]:
        ranges = _ranges(piece)
        count = min(count * sum(last - first + 1 for first, last, _ in ranges), _UNCOUNTED)
        longest += max(len(str(last)) for _, last, _ in ranges)
    if longest > LONGEST_NAME:
        raise ValueError(word)
    return count


def _expand_one(word: str) -> list[str]:
    """Expand one name with its bracketed ranges."""
    pieces = [_numbers(piece) if index % 2 else [piece] for index, piece in enumerate(_BRACKETS.split(word))]
    return ["".join(parts) for parts in itertools.product(*pieces)]


def _numbers(text: str) -> list[str]:
    """Return the numbers inside one pair of brackets, with their padding."""
    return [str(number).zfill(width) for first, last, width in _ranges(text) for number in range(first, last + 1)]


def _ranges(text: str) -> list[_Range]:
    """Return first, last and width of each range inside one pair of brackets."""
    if not _RANGES.fullmatch(text):
        raise ValueError(text)
    found = []
    for low, high in _RANGE.findall(text):
        first, last = int(low), int(high or low)
        if last < first:
            raise ValueError(text)
        found.append((first, last, len(low)))
    return found
