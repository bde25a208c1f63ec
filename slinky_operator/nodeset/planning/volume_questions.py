"""Which job log servers are asked how much room their volumes have, and when. Pure.

Each volume is asked about at a pace that falls with the number of pods in sight: all NodeSets together cost the same,
however many nodes they have. Of pods that mount one claim, one is asked, another one each time. A volume with little
room is asked about each minute, a few of them at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from slinky_operator.nodeset.model.pods import output_room
from slinky_operator.nodeset.model.pods.output_room import RoomSeen
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot

ASK_EVERY: Final = 60.0
"""Seconds between two questions about a volume, at least."""

PODS_A_SECOND: Final = 2.0
"""Questions of all NodeSets together."""

MOST: Final = 40
"""Servers that are asked in one pass."""

MOST_LOW: Final = 5
"""Volumes with little room that are asked about each minute, of one NodeSet."""


def questions(snapshot: Snapshot, now: datetime) -> tuple[Pod, ...]:
    """The pods to be asked now, those first whose volumes were asked about longest ago.

    Parameters
    ----------
    snapshot
        The snapshot.
    now
        The time; timezone-aware.
    """
    named = output_room.named_in(snapshot.nodeset.status)

    def rank(one: _Due) -> tuple[bool, float, str]:
        """Volumes first that the stored condition names and nobody was asked about since the operator started."""
        is_open = one.volume not in snapshot.rooms and any(pod.name in named for pod in one.pods)
        return not is_open, one.left, one.volume

    due = sorted((one for one in _times(snapshot, now) if one.left <= 0), key=rank)
    return tuple(_turn(one.pods, snapshot.rooms.get(one.volume)) for one in due[:MOST])


def due_in(snapshot: Snapshot, now: datetime) -> float | None:
    """Seconds until the next question, if those that are due are asked now; None if there is no server to ask."""
    lefts = [one.left for one in _times(snapshot, now)]
    if not lefts:
        return None
    due = sum(1 for left in lefts if left <= 0)
    later = [left for left in lefts if left > 0]
    if due > MOST:
        return MOST / PODS_A_SECOND
    # Not one pass for each volume, where there are many.
    return max(min([*later, *([ASK_EVERY] if due else [])]), min(len(lefts), MOST) / PODS_A_SECOND)


class _Due(NamedTuple):
    volume: str
    pods: Sequence[Pod]
    left: float
    """Seconds until it is asked about."""


def _times(snapshot: Snapshot, now: datetime) -> Iterable[_Due]:
    """When each volume is asked about."""
    pause = max(ASK_EVERY, snapshot.pods_in_sight / PODS_A_SECOND)
    low = sorted((one.room.share, volume) for volume, one in snapshot.rooms.items() if one.is_low and one.room)
    lowest = {volume for _, volume in low[:MOST_LOW]}
    for volume, pods in output_room.by_volume(snapshot.pods).items():
        seen = snapshot.rooms.get(volume)
        if seen is None:
            yield _Due(volume, pods, -math.inf)
            continue
        wanted = ASK_EVERY if volume in lowest else pause
        yield _Due(volume, pods, wanted - (now - seen.asked_at).total_seconds())


def _turn(pods: Sequence[Pod], seen: RoomSeen | None) -> Pod:
    """The pod after the one that was asked last."""
    ordered = sorted(pods, key=lambda pod: pod.name)
    return next((pod for pod in ordered if seen is not None and pod.name > seen.pod), ordered[0])
