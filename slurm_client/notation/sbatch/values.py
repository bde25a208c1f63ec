"""
Numbers, sizes and lengths of time as options of sbatch take them.

They are read as by ``proc_args.c`` and ``parse_time.c`` of 24.11 and 26.05.

All functions raise ValueError with the reason. Where sbatch would take the beginning of a text and forget the rest, the
text is refused.
"""

from __future__ import annotations

import re
from datetime import timedelta

from slurm_client.models.values import INFINITE, Infinite

_INTEGER = re.compile(r"[ \t]*([+-]?[0-9]{1,18})")
_SIZE = re.compile(r"[ \t]*\+?([0-9]{1,15})(?:([kKmMgGtT])[bB]?)?")
_MIB = {"": 1, "M": 1, "G": 1024, "T": 1024 * 1024}
_NODES = re.compile(r"[ \t]*\+?([0-9]{1,9})([kK]?)([mM]?)[ \t]*")
_NODE_SET = re.compile(r"[0-9]{1,5}(?:-[0-9]{1,5}(?::[0-9]{1,5})?)?(?:,[0-9]{1,5}(?:-[0-9]{1,5}(?::[0-9]{1,5})?)?)*")
_TIME = re.compile(
    r"(?:(?P<days>[0-9]{1,9})-(?:(?P<dh>[0-9]{1,9})(?::(?P<dm>[0-9]{1,9})(?::(?P<ds>[0-9]{1,9}))?)?)?)"
    r"|(?:(?P<h>[0-9]{1,9}):(?P<hm>[0-9]{1,9}):(?P<hs>[0-9]{1,9}))"
    r"|(?:(?P<m>[0-9]{1,9})(?::(?P<ms>[0-9]{1,9}))?)"
)
_LARGEST = 2**31 - 1
_LARGEST_NODE_SET = 65_536


def integer(text: str, *, least: int = 1, most: int = _LARGEST - 1) -> int:
    """Return a whole number in a range."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no whole number")
    number = int(match[1])
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
    return number


def mebibytes(text: str) -> int:
    """Return a size in MiB: ``4096``, ``4G``, ``512MB``; ``K`` is rounded up."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no size such as 4096 (MiB) or 4G")
    number, unit = int(match[1]), (match[2] or "").upper()
    found = -(-number // 1024) if unit == "K" else number * _MIB[unit]
    if found > 2**62:
        raise ValueError(f"{text[:40]!r} is too large")
    return found


def length(text: str) -> timedelta | Infinite:
    """Return a length of time: minutes, ``M:S``, ``H:M:S``, ``D-H``, ``D-H:M``, ``D-H:M:S``, or no limit."""
    if text.upper() in {"-1", "INFINITE", "UNLIMITED"}:
        return INFINITE
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no length of time such as 30 (minutes), 1:30:00 or 2-12")
    part = {name: int(found or 0) for name, found in match.groupdict().items()}
    seconds = (
        part["days"] * 86_400
        + (part["dh"] + part["h"]) * 3_600
        + (part["dm"] + part["hm"] + part["m"]) * 60
        + part["ds"]
        + part["hs"]
        + part["ms"]
    )
    if seconds > _LARGEST:
        raise ValueError(f"{text[:40]!r} is longer than Slurm can count")
    return timedelta(seconds=seconds)


def limit(text: str) -> timedelta | Infinite:
    """Return a limit of time in full minutes; for Slurm 0 is no limit."""
    found = length(text)
    if isinstance(found, timedelta):
        found = timedelta(minutes=-(-int(found.total_seconds()) // 60))
    return found or INFINITE


def finite(text: str) -> timedelta:
    """Return a length of time that has an end."""
    found = length(text)
    if found is INFINITE:
        raise ValueError(f"{text[:40]!r} has no end, for which slurmrestd has no word here")
    assert isinstance(found, timedelta)  # noqa: S101 - for the type checker
    return found


def nodes(text: str) -> tuple[int, int, str]:
    """Return the least and the most nodes, and the text if it lists single sizes (``1,2,4``, ``2-8:2``)."""
    if "," in text or ":" in text:
        if not _NODE_SET.fullmatch(text):
            raise ValueError(f"{text[:40]!r} is not a list of node counts such as 1,2,4 or 2-8:2")
        sizes = [int(number) for number in re.findall(r"[0-9]+", re.sub(r":[0-9]+", "", text))]
        if any(int(last) < int(first) for first, last in re.findall(r"([0-9]+)-([0-9]+)", text)):
            raise ValueError(f"{text[:40]!r} has a range that runs backwards")
        if min(sizes) < 1 or max(sizes) >= _LARGEST_NODE_SET:
            raise ValueError(f"{text[:40]!r} has node counts outside 1 to {_LARGEST_NODE_SET - 1}")
        return min(sizes), max(sizes), text
    first, dash, last = text.partition("-")
    least = 1 if dash and not first else _nodes(first)
    most = _nodes(last) if dash else least
    if most < least:
        raise ValueError(f"at most {most} nodes are less than at least {least}")
    if least < 1:
        raise ValueError("a job without nodes cannot be asked for here")
    return least, most, ""


def _nodes(text: str) -> int:
    match = _NODES.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a number of nodes")
    found = int(match[1]) * (1024 if match[2] else 1) * (1024**2 if match[3] else 1)
    if found > _LARGEST:
        raise ValueError(f"{text[:40]!r} is too large")
    return found
