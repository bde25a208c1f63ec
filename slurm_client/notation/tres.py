"""
Trackable resources in one text: ``cpu=4,mem=16G,node=1,gres/gpu:h100=2``.

So slurmctld and slurmdbd write what a node has and what a job wants or got. The other notation of GRES, with a colon
and places (``gpu:h100:8(S:0-1)``), is read by :mod:`slurm_client.notation.gres`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Self

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 65_536
"""Most characters of a text."""

_COUNT = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,6})?)([KMGTPE]?)(?:i?B)?", re.IGNORECASE)
_POWERS = {suffix: power for power, suffix in enumerate(("", "K", "M", "G", "T", "P", "E"))}
_IN_MIB = frozenset({"mem", "vmem", "bb"})
"""Resources that Slurm counts in MiB; a number without a unit is one of MiB."""


def count(text: str, *, mib: bool = False) -> int:
    """
    Return a number with a unit, such as ``16G``.

    Parameters
    ----------
    text
        A number, with a unit or without one.
    mib
        Whether the result is in MiB, as is a number without a unit; fractions of a MiB are rounded up. Otherwise
        ``K`` is 1024.

    Raises
    ------
    ValueError
        For what is no number.
    """
    match = _COUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is no count such as 4 or 16G")
    power = _POWERS[match[2].upper()]
    value = Decimal(match[1])
    if mib:
        value = value * 1024**power / 1024**2 if power else value
        return math.ceil(value)
    return int(value * 1024**power)


@dataclass(frozen=True, slots=True)
class TresCount:
    """
    One resource and how much of it.

    Parameters
    ----------
    type
        ``cpu``, ``mem``, ``node``, ``billing``, ``gres``, ``license`` …
    name
        Of the resource among those of its type: ``gpu`` of ``gres/gpu:h100``; empty where the type says it all.
    subtype
        What kind of it: ``h100``; empty for any.
    count
        How many; MiB of memory and burst buffers.
    """

    type: str
    name: str
    subtype: str
    count: int

    @override
    def __str__(self) -> str:
        unit = "M" if self.type in _IN_MIB else ""
        return f"{self.key}={self.count}{unit}"

    @property
    def key(self) -> str:
        """The resource without its count, e.g. ``gres/gpu:h100``."""
        return self.type + (f"/{self.name}" if self.name else "") + (f":{self.subtype}" if self.subtype else "")


@dataclass(frozen=True, slots=True)
class Tres:
    """
    A list of resources with their counts.

    Examples
    --------
    >>> tres = Tres.parse("cpu=4,mem=16G,node=1,gres/gpu=2,gres/gpu:h100=2")
    >>> tres.cpus, tres.memory_mib, tres.gpus, tres["gres/gpu:h100"]
    (4, 16384, 2, 2)
    """

    counts: tuple[TresCount, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Read ``cpu=4,mem=16G,gres/gpu:h100=2``; also the older ``gres:gpu:2``, and ``gres/gpu`` for one of them.

        Raises
        ------
        ValueError
            For what is no such list, or longer than :data:`LONGEST`.
        """
        if len(text) > LONGEST:
            raise ValueError(f"a list of resources of {len(text)} characters: more than {LONGEST}")
        words = [word.strip() for word in text.split(",")]
        if text.strip() in {"", "(null)", "N/A"}:
            return cls()
        return cls(tuple(_entry(word) for word in words))

    def __iter__(self) -> Iterator[TresCount]:
        return iter(self.counts)

    def __getitem__(self, key: str) -> int:
        """Return the count of a resource, e.g. of ``gres/gpu``; 0 if it is not in the list."""
        return next((entry.count for entry in self.counts if entry.key == key), 0)

    @property
    def cpus(self) -> int:
        """CPUs."""
        return self["cpu"]

    @property
    def memory_mib(self) -> int:
        """Memory in MiB."""
        return self["mem"]

    @property
    def nodes(self) -> int:
        """Nodes."""
        return self["node"]

    @property
    def gpus(self) -> int:
        """GPUs of all kinds: Slurm lists them once without their kind and again by kind, or by kind only."""
        return self.gres("gpu")

    def gres(self, name: str) -> int:
        """Return the count of a generic resource, of all its kinds."""
        found = [entry for entry in self.counts if (entry.type, entry.name) == ("gres", name)]
        whole = [entry.count for entry in found if not entry.subtype]
        return whole[0] if whole else sum(entry.count for entry in found)

    @override
    def __str__(self) -> str:
        return ",".join(map(str, self.counts))


_KEY = re.compile(r"([a-z]\w*)(?:[/:]([^/:=,\s][^:=,\s]*?))?(?::([^:=,\s]+))?")


def _entry(word: str) -> TresCount:
    """Read one resource with its count."""
    key, equals, number = word.partition("=")
    if not equals:
        # Without an equals sign, the count is what stands after the last colon, and 1 if that is no number.
        head, colon, tail = word.rpartition(":")
        key, number = (head, tail) if colon and _COUNT.fullmatch(tail) else (word, "1")
    match = _KEY.fullmatch(key)
    if match is None:
        raise ValueError(f"{word[:40]!r} is no resource with its count, such as cpu=4 or gres/gpu:h100=2")
    kind, name, subtype = match[1], match[2] or "", match[3] or ""
    return TresCount(kind, name, subtype, count(number, mib=kind in _IN_MIB))
