"""
Generic resources as nodes and jobs show them: ``gpu:h100:8(S:0-1)``, ``gpu:2(IDX:0,3)``.

The notation with an equals sign (``gres/gpu:h100=2``) is read by :mod:`slurm_client.notation.tres`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from typing_extensions import override

from slurm_client.notation import tres

LARGEST_INDEX = 65_535
"""Largest number of a device or a socket; a list that claims more, or has more in all its entries, is none."""

MOST = 1024
"""Most entries of a list; a node has a few kinds, each once for each place."""

_ENTRY = re.compile(r"\s*(?:gres[:/])?([^:(),\s]+)((?::[^:(),\s]+)*)((?:\([^()]*\))*)\s*")
_PLACE = re.compile(r"\(([^()]*)\)")
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Gres:
    """
    One generic resource.

    Parameters
    ----------
    name, type
        ``gpu`` and ``h100``; no type for any kind of it.
    count
        How many of them.
    indices
        Numbers of the devices that are used; ``None`` if they are not said.
    sockets
        Sockets the devices are bound to; ``None`` if they are not said.
    shared
        Whether it is ``no_consume``: any number of jobs may use it.
    detail
        Whatever else stands in parentheses, e.g. ``30/100,0/100`` of shards.

    Examples
    --------
    >>> (gpus,) = parse("gpu:h100:8(S:0-1)")
    >>> gpus.name, gpus.type, gpus.count, gpus.sockets
    ('gpu', 'h100', 8, (0, 1))
    """

    name: str
    type: str = ""
    count: int = 1
    indices: tuple[int, ...] | None = None
    sockets: tuple[int, ...] | None = None
    shared: bool = False
    detail: str = ""

    @override
    def __str__(self) -> str:
        words = [self.name, *([self.type] if self.type else []), *(["no_consume"] if self.shared else [])]
        places = "".join(
            f"({key}:{_listed(numbers)})"
            for key, numbers in (("S", self.sockets), ("IDX", self.indices))
            if numbers is not None
        )
        return ":".join([*words, str(self.count)]) + places + (f"({self.detail})" if self.detail else "")


def parse(text: str) -> tuple[Gres, ...]:
    """
    Read a list of generic resources; none for an empty text, ``(null)`` and ``N/A``.

    Raises
    ------
    ValueError
        For what is no such list, or too long to be one.
    """
    if len(text) > tres.LONGEST:
        raise ValueError(f"a list of resources of {len(text)} characters: more than {tres.LONGEST}")
    if text.strip() in {"", "(null)", "N/A"}:
        return ()
    words = _split(text)
    if len(words) > MOST:
        raise ValueError(f"a list of {len(words)} resources: more than {MOST}")
    found, room = [], LARGEST_INDEX + 1
    for word in words:
        one = _entry(word, room)
        room -= len(one.indices or ()) + len(one.sockets or ())
        found.append(one)
    return tuple(found)


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    return re.findall(r"(?:[^,(]|\([^()]*\)|\()+|(?<=,)(?=,|\Z)|\A(?=,)", text)


def _entry(word: str, room: int) -> Gres:
    match = _ENTRY.fullmatch(word)
    if match is None:
        raise ValueError(f"{word[:40]!r} is no generic resource such as gpu:h100:8(S:0-1)")
    name, fields, shared = match[1], match[2].split(":")[1:], False
    if "no_consume" in fields:
        fields.remove("no_consume")
        shared = True
    number = 1
    if fields and re.fullmatch(r"[0-9]+[KMGTP]?", fields[-1], re.IGNORECASE):
        number = tres.count(fields.pop())
    if len(fields) > 1:
        raise ValueError(f"{word[:40]!r} is no generic resource: it has more than a name, a type and a count")
    indices = sockets = None
    details = []
    for place in _PLACE.findall(match[3]):
        key, _, rest = place.partition(":")
        if key == "IDX":
            indices = _numbers(rest, room - len(sockets or ()))
        elif key == "S":
            sockets = _numbers(rest, room - len(indices or ()))
        else:
            details.append(place)
    return Gres(name, fields[0] if fields else "", number, indices, sockets, shared, ")(".join(details))


def _numbers(text: str, room: int) -> tuple[int, ...]:
    """Read ``0,3-5``, no more numbers than there is room for; none for ``N/A``."""
    found: list[int] = []
    for word in text.split(","):
        if word in {"", "N/A"}:
            continue
        match = _RANGE.fullmatch(word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or last < first or last > LARGEST_INDEX:
            raise ValueError(f"{text[:40]!r} is not a list of indices such as 0,3-5")
        if len(found) + last - first + 1 > room:
            raise ValueError(f"{text[:40]!r} are too many indices")
        found += range(first, last + 1)
    return tuple(found)


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers)) or "N/A"
