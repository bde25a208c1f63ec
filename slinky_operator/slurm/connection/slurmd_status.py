"""Asks one slurmd which jobs have a step on its node: by the message of `scontrol show slurmd`, signed with the key.

slurmctld may have forgotten what it knew of a node, or of the end of a job; slurmd looks at the processes themselves:
each slurmstepd has a socket in its folder, and is asked for its state. Anyone with the key may ask
(`REQUEST_DAEMON_STATUS`), for no user, so that a stolen token gives no rights; slurmd changes nothing for it, and
does not count it as heard from slurmctld. Both releases answer (`tests/integration/nodeset/test_forgotten.py`).

No step is no proof of no job at that moment: a prolog runs before the first step, and an allocation may have none. What
follows from an answer, and for how long there must have been no step, is left to the rules that ask.
"""

from __future__ import annotations

import asyncio
import re
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from slinky_operator.slurm.connection import signed_messages
from slinky_operator.slurm.connection.signed_messages import NotUnderstood, SharedKey
from slinky_operator.slurm.naming import NOBODY

TIMEOUT: Final = 3.0
"""Seconds for one question, all in all: slurmd asks each of its steps."""

LONGEST_ANSWER: Final = 65536
"""Bytes of an answer that are read; some 5,000 steps."""

_REQUEST: Final = 5024
_RESPONSE: Final = 5025
_NONE: Final = "NONE"
_STEP: Final = re.compile(r"(\d+)(?:\+\d+)?(?:\.\S+)?")
"""`7` (the batch script), `7.0`, `7.extern`, `7+1.0` of a heterogeneous job."""

_FIXED: Final = "!qqHHHHHHQII"


class NoStatus(Exception):
    """A slurmd that has not shown its steps; the text says why. Nothing is known then."""


@dataclass(frozen=True, slots=True)
class SlurmdStatus:
    """What a slurmd shows."""

    node: str
    """Its `NodeName`."""

    started_at: datetime
    heard_at: datetime | None
    """When slurmctld last spoke to it; None if it has not since the start."""

    jobs: frozenset[int]
    """Ids of the jobs that have a step there."""


def understood(answer: bytes, key: SharedKey) -> SlurmdStatus:
    """Read an answer.

    Raises
    ------
    NoStatus
        It is refused, is not signed with the key, or says something else.
    """
    if not answer:
        raise NoStatus("it has closed the connection without a word, as for a key that it does not have")
    if len(answer) >= LONGEST_ANSWER or len(answer) - 4 < int.from_bytes(answer[:4], "big"):
        raise NoStatus("its answer is not complete")
    try:
        found = signed_messages.read(answer)
        if found.kind != _RESPONSE:
            raise NoStatus(f"it refuses to answer (message {found.kind})")
        if not found.token or not signed_messages.is_signed(found.token, key):
            raise NoStatus("its answer is not signed with the key of the cluster")
        return _status(found.body)
    except (NotUnderstood, struct.error, ValueError, OverflowError) as error:
        raise NoStatus(f"its answer is not understood: {error}") from error


async def ask(host: str, port: int, key: SharedKey, wall: float, patience: float = TIMEOUT) -> SlurmdStatus:
    """Ask one slurmd.

    Parameters
    ----------
    wall
        Seconds since 1970.
    patience
        Seconds, all in all.

    Raises
    ------
    NoStatus
        It has not answered in time, or not as slurmd does.
    """
    question = signed_messages.message(_REQUEST, key, NOBODY, wall)
    try:
        async with asyncio.timeout(patience):
            answer = await signed_messages.exchange(host, port, question, LONGEST_ANSWER)
    except TimeoutError:
        raise NoStatus(f"no answer within {patience:g} s") from None
    except OSError as error:
        raise NoStatus(error.strerror or type(error).__name__) from error
    except ValueError as error:
        raise NoStatus(f"its address cannot be used: {error}") from error
    return understood(answer, key)


def _status(body: bytes) -> SlurmdStatus:
    started, heard, *_ = struct.unpack_from(_FIXED, body)
    start = struct.calcsize(_FIXED)
    texts = []
    for _ in range(4):
        (length,) = struct.unpack_from("!I", body, start)
        start += 4
        if length and start + length > len(body):
            raise NotUnderstood("a text of it is not complete")
        texts.append(body[start : start + length].rstrip(b"\0").decode())
        start += length
    node, _log, steps, _version = texts
    return SlurmdStatus(
        node,
        datetime.fromtimestamp(started, UTC),
        datetime.fromtimestamp(heard, UTC) if heard > 0 else None,
        _jobs(steps),
    )


def _jobs(steps: str) -> frozenset[int]:
    if steps == _NONE:
        return frozenset()
    found = set()
    for one in steps.split(", "):
        match = _STEP.fullmatch(one)
        if match is None:
            raise NotUnderstood("its list of steps has something else")
        found.add(int(match[1]))
    return frozenset(found)
