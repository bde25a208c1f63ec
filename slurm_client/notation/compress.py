"""
Many names of hosts in few words, for people: the inverse of :func:`slurm_client.notation.hostlist.expand`.

Written as slurmctld writes it, with a range for the last number of a name.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", re.DOTALL)


def compress(names: Iterable[str], *, order: bool = False) -> str:
    """
    Return a host list that stands for these names.

    ``expand(compress(names))`` gives them again, for names without blanks, commas and brackets. Any other text is
    written as it is.

    Parameters
    ----------
    names
        Names of hosts. Their order is kept, and so are those that appear twice.
    order
        Sort the names first, numbers by their value, and write each once.

    Examples
    --------
    >>> compress(["w-0", "w-1", "w-2", "login", "n08", "n09", "n10"])
    'w-[0-2],login,n[08-10]'
    >>> compress({"w-10", "w-9"}, order=True)
    'w-[9-10]'
    """
    if order:
        names = sorted(set(names), key=_by_number)
    return ",".join(_words(names))


def _by_number(name: str) -> tuple[str, int, str]:
    match = _NUMBERED.fullmatch(name)
    return (name, -1, "") if match is None else (match[1], int(match[2]), match[2])


def _words(names: Iterable[str]) -> Iterator[str]:
    """Write names that stand beside each other and differ in their last number alone as one word."""
    for (prefix, is_numbered), group in itertools.groupby(
        map(_parts, names), key=lambda part: (part[0], part[1] != "")
    ):
        numbers = [number for _, number in group]
        if not is_numbered:
            yield from (prefix for _ in numbers)
            continue
        ranges = list(_ranges(numbers))
        if len(numbers) == 1:
            yield prefix + numbers[0]
        else:
            yield f"{prefix}[{','.join(ranges)}]"


def _parts(name: str) -> tuple[str, str]:
    """Return a name without its last number, and that number; brackets and commas would read as something else."""
    match = None if re.search(r"[\[\],]", name) else _NUMBERED.fullmatch(name)
    return (name, "") if match is None else (match[1], match[2])


def _ranges(numbers: Iterable[str]) -> Iterator[str]:
    """Join numbers that follow each other, where the width of the first says how the others are written."""
    first = last = ""
    for number in numbers:
        if first and number == str(int(last) + 1).zfill(len(first)):
            last = number
            continue
        if first:
            yield _range(first, last)
        first = last = number
    if first:
        yield _range(first, last)


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first}-{last}"
