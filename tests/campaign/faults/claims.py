"""Faults of claims: one that is full, slurmctld's or MariaDB's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.campaign.faults.kind import Fault, MetNothing, Place
from tests.campaign.site.disks import DATABASE, STATE

STATE_FULL: Final = "slurmctld's disk full"
DATABASE_FULL: Final = "MariaDB's disk full"


def _full(disk: str, lasts: tuple[float, float]) -> Fault:
    def begin(place: Place, values: Mapping[str, Any]) -> str:
        said = f"{place.disks.fill(disk)} of {disk} taken"
        if left := place.disks.free_room(disk):
            raise MetNothing(f"{said}, and {left} bytes are free")
        return said

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
