"""
Slurm's notation for many hosts in few words: ``w-[0-3,7],login`` is five nodes.

Only what slurmctld writes is read: comma-separated names, each with any number of bracketed ranges, zero-padded or not.
"""

from __future__ import annotations

import functools
import itertools
import math
import re

LIMIT = 65_536
"""Most names one expression may stand for; what claims more is not a list of hosts: no Slurm cluster has more nodes."""

REMEMBERED = 256
"""Most characters of an expression whose names are kept for the next time, and most of these names."""

_BRACKETS = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def expand(hostlist: str) -> tuple[str, ...]:
    """
    Return the names a host list stands for, in its order.

    A text that is no host list (unbalanced or empty brackets, a range that runs backwards, more than :data:`LIMIT`
    names) is returned as its own only name, because nothing is gained by an error about an answer of the server.

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

    A list of more than :data:`LIMIT` names counts as what it claims.
    """
    try:
        return sum(_count_one(word) for word in _split(hostlist))
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
        count = sum(map(_count_one, words))
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
        if sum(map(_count_one, words)) > LIMIT:
            return (hostlist,)
        return tuple(itertools.chain.from_iterable(map(_expand_one, words)))
    except ValueError:
        return (hostlist,)


_remembered = functools.lru_cache(maxsize=4096)(_expand)


def _split(hostlist: str) -> list[str]:
    """Split at commas outside brackets."""
    words, depth, start = [], 0, 0
    for index, character in enumerate(hostlist):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif character == "," and depth == 0:
            words.append(hostlist[start:index])
            start = index + 1
        if depth not in (0, 1):
            raise ValueError(hostlist)
    if depth:
        raise ValueError(hostlist)
    words.append(hostlist[start:])
    return [stripped for word in words if (stripped := word.strip())]


def _count_one(word: str) -> int:
    """Count what :func:`_expand_one` gives."""
    pieces = _BRACKETS.split(word)
    return math.prod(sum(last - first + 1 for first, last, _ in _ranges(piece)) for piece in pieces[1::2])


def _expand_one(word: str) -> list[str]:
    """Expand one name with its bracketed ranges."""
    pieces = [_numbers(piece) if index % 2 else [piece] for index, piece in enumerate(_BRACKETS.split(word))]
    return ["".join(parts) for parts in itertools.product(*pieces)]


def _numbers(text: str) -> list[str]:
    """Return the numbers inside one pair of brackets, with their padding."""
    return [str(number).zfill(width) for first, last, width in _ranges(text) for number in range(first, last + 1)]


def _ranges(text: str) -> list[tuple[int, int, int]]:
    """Return first, last and width of each range inside one pair of brackets."""
    found = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(text)
        low, high = match.group(1), match.group(2) or match.group(1)
        if int(high) < int(low):
            raise ValueError(text)
        found.append((int(low), int(high), len(low)))
    return found
