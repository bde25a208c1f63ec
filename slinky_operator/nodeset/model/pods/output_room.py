"""How much room the volumes of job output have, as the job log servers beside slurmds say.

A volume is known by its claim, which several pods may mount, or by the uid of the pod whose own it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from slinky_api.conditions import NodeSetCondition, find
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.slurm.pods import volume_room as rules
from slinky_operator.slurm.pods.volume_room import Room, Volumes

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class RoomSeen:
    """What a server has last said of a volume."""

    pod: str
    """Name of the pod that was asked."""
    asked_at: datetime
    room: Room | None = None
    """None if nothing is known."""
    is_low: bool = False
    why: str = ""
    """Why nothing is known, if that needs help."""


def volume_of(pod: Pod) -> str:
    """What the server of a pod looks at; empty if it has no server."""
    if pod.output_claim is None:
        return ""
    return f"claim {pod.output_claim}" if pod.output_claim else pod.uid


def by_volume(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods whose servers can be asked, by the volume that they look at."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.output_claim is not None and _can_be_asked(pod):
            found.setdefault(volume_of(pod), []).append(pod)
    return found


def _can_be_asked(pod: Pod) -> bool:
    return not pod.deleting and pod.slurmd is Slurmd.RUNNING and bool(pod.address)


def named_in(status: NodeSetStatus) -> frozenset[str]:
    """Words of the stored condition that may be names of pods or claims with little room."""
    stored = find(status.conditions, NodeSetCondition.VOLUMES_HAVE_ROOM)
    if stored is None or stored.status != "False":
        return frozenset()
    return frozenset(_NAME.findall(stored.message))


def seen(pod: Pod, answer: Volumes, before: RoomSeen | None, was_named: frozenset[str], now: datetime) -> RoomSeen:
    """What is known of a volume after an answer.

    Parameters
    ----------
    pod, answer
        The pod that was asked, and what it said; a server of an earlier version says nothing, which needs no help.
    before
        What was known.
    was_named
        As of `named_in`: what counts before the first answer to a new process.
    now
        The time; timezone-aware.
    """
    if answer.why and before is not None:
        # A server that restarts does not change what is on the volume.
        return replace(before, pod=pod.name, asked_at=now)
    found = answer.rooms.get(rules.JOB_OUTPUT)
    was_low = before.is_low if before is not None else not was_named.isdisjoint({pod.name, pod.output_claim})
    if found is None:
        why = answer.silent.get(rules.JOB_OUTPUT, "")
        return RoomSeen(pod.name, now, None, was_low, "" if why == rules.LOOKED_AT else why)
    return RoomSeen(pod.name, now, found, rules.is_low(found, was_low=was_low))


def least(seen_of: Mapping[str, RoomSeen]) -> tuple[float, float] | None:
    """The smallest shares of bytes and of inodes that are left, for metrics; None if nothing is known."""
    rooms = [one.room for one in seen_of.values() if one.room is not None]
    if not rooms:
        return None
    return min(room.share_of_bytes for room in rooms), min(room.share_of_inodes for room in rooms)
