"""Faults of claims: one that is full, slurmctld's or MariaDB's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.campaign.faults.kind import Fault, MetNothing, Place, soon
from tests.campaign.site.disks import DATABASE, STATE

STATE_FULL: Final = "slurmctld's disk full"
DATABASE_FULL: Final = "MariaDB's disk full"

TAKEN: Final = 10.0
"""Seconds in which all room must be taken: a daemon may give some back meanwhile."""


def _full(disk: str, lasts: tuple[float, float]) -> Fault:
    def begin(place: Place, values: Mapping[str, Any]) -> str:
        taken: list[str] = []

        def is_full() -> bool:
            taken.append(place.disks.fill(disk))
            return not place.disks.free_room(disk)

        if not soon(is_full, TAKEN):
            raise MetNothing(f"{taken[0]} of {disk} taken, and {place.disks.free_room(disk)} bytes are free")
        return f"{taken[0]} of {disk} taken"

    def end(place: Place, values: Mapping[str, Any]) -> None:
        place.disks.free(disk)

    return Fault(begin, end, lasts)


FULL_DISKS: Final[Mapping[str, Fault]] = {
    STATE_FULL: _full(STATE, (5, 25)),
    DATABASE_FULL: _full(DATABASE, (5, 25)),
}


def mend(place: Place) -> None:
    """Give all room back."""
    for disk in (STATE, DATABASE):
        place.disks.free(disk)
