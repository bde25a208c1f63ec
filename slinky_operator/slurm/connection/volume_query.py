"""One question to a pod: how much room its volumes have.

A pod template may put any program in the place of the one that answers: the answer has limits, and only volumes that
were asked for are kept. A failed query is an answer too, with the reason; nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from slinky_operator.slurm.connection.pod_reader import NoAnswer, PodReader
from slinky_operator.slurm.pods.volume_room import LOOKED_AT, Room, Volumes

LONGEST_VOLUMES: Final = 16 * 2**10
"""Maximum bytes of an answer about volumes."""

LONGEST_ERROR: Final = 200
"""Characters of an error about a volume."""

MOST_BYTES: Final = 2**63
"""What no volume has."""

HANGS: Final = 30.0
"""Seconds after which a look at a volume is said to hang."""


@dataclass(frozen=True, slots=True)
class Looker:
    """The program in a pod that looks at its volumes.

    Parameters
    ----------
    url
        Where it answers, without a path.
    pod_uid
        Of its pod.
    namespace
        On whose behalf its answers are read.
    """

    url: str
    pod_uid: str
    namespace: str


async def ask_volumes(reader: PodReader, looker: Looker, names: Iterable[str], clock: Callable[[], float]) -> Volumes:
    """Query how much room the volumes with these names have."""
    try:
        told = await reader.read(f"{looker.url}/volumes", owner=looker.namespace, limit=LONGEST_VOLUMES)
    except NoAnswer as error:
        return Volumes(looker.pod_uid, clock(), why=f"the agent cannot be asked for it: {error}")
    said = told.get("volumes")
    if not isinstance(said, dict):
        return Volumes(looker.pod_uid, clock(), why="the agent says nothing of it")
    rooms: dict[str, Room] = {}
    silent: dict[str, str] = {}
    for name in names:
        one = said.get(name)
        if isinstance(one, dict):
            found = _room(one)
            if found is None:
                silent[name] = _why_silent(one)
            else:
                rooms[name] = found
    return Volumes(looker.pod_uid, clock(), rooms, silent)


def _room(said: Mapping[str, Any]) -> Room | None:
    """What a volume has, if that was seen not long ago."""
    said_of = (said.get(key) for key in ("size", "free", "inodes", "inodesFree"))
    numbers = [one for one in said_of if isinstance(one, int) and 0 <= one < MOST_BYTES]
    waits = said.get("waits", 0)
    if len(numbers) < len(fields(Room)) or not isinstance(waits, int | float) or waits > HANGS:
        return None
    size, free, inodes, inodes_free = numbers
    return Room(size, min(free, size), inodes, min(inodes_free, inodes))


def _why_silent(said: Mapping[str, Any]) -> str:
    error, waits = said.get("error"), said.get("waits")
    if isinstance(error, str):
        return f"it cannot be looked at: {error[:LONGEST_ERROR]}"
    if isinstance(waits, int | float) and waits > HANGS:
        return "its file system does not answer"
    return LOOKED_AT
