"""
Slurm's notation for many hosts in few words: ``w-[0-3,7],login`` is five nodes.

Only what slurmctld writes is read: comma-separated names, each with any number of bracketed ranges, zero-padded or not.
"""

from __future__ import annotations

import functools
import itertools
import re

LIMIT = 1_000_000
"""Most names one expression may stand for; what claims more is not a list of hosts."""

_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


@functools.lru_cache(maxsize=4096)
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
    try:
        return tuple(itertools.chain.from_iterable(_expand_one(word) for word in _split(hostlist)))
    except ValueError:
        return (hostlist,)


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


def _expand_one(word: str) -> list[str]:
    """Expand one name with its bracketed ranges."""
    pieces: list[list[str]] = []
    total = 1
    for index, piece in enumerate(re.split(r"\[([^\]]*)\]", word)):
        choices = _ranges(piece) if index % 2 else [piece]
        total *= len(choices)
        if total > LIMIT:
            raise ValueError(word)
        pieces.append(choices)
    return ["".join(parts) for parts in itertools.product(*pieces)]


def _ranges(text: str) -> list[str]:
    """Return the numbers inside one pair of brackets, with their padding."""
    numbers: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(text)
        low, high = match.group(1), match.group(2) or match.group(1)
        first, last = int(low), int(high)
        if last < first or last - first >= LIMIT:
            raise ValueError(text)
        numbers.extend(str(number).zfill(len(low)) for number in range(first, last + 1))
    return numbers
