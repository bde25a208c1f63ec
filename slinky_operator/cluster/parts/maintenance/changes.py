"""What has to change in Slurm for the reservations of maintenance windows. Pure.

Only reservations whose names the operator gives are touched, and of these only those that look as it makes them: one of
such a name that somebody else has made stays as it is, and counts as taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_operator.cluster.parts.maintenance.windows import WantedReservation
from slinky_operator.slurm import naming
from slurm_client.models import Reservation, ReservationSpec

FLAGS: Final = ("MAINT", "IGNORE_JOBS")
"""Of each reservation: planned maintenance, whatever jobs run on its nodes when it is made."""

USERS: Final = ("root",)
"""Who may run jobs in one, to try a node before the others may. Slurm makes none for nobody."""


@dataclass(frozen=True, slots=True)
class ReservationChanges:
    """What differs from the reservations that are wanted."""

    create: tuple[WantedReservation, ...] = ()
    update: tuple[WantedReservation, ...] = ()
    moved: frozenset[str] = frozenset()
    """Names of those to update whose times change, and not only their nodes."""

    delete: tuple[str, ...] = ()
    """Names of the operator's reservations that are not wanted."""

    taken: tuple[str, ...] = ()
    """Reservations that are not as the operator makes them: of a name that is wanted, or not any more."""


def find_changes(
    wanted: Iterable[WantedReservation], there: Iterable[Reservation], mark: str, now: datetime
) -> ReservationChanges:
    """Compare what is wanted with what Slurm has.

    Parameters
    ----------
    there
        All reservations.
    mark
        How the names of the Cluster's reservations end.
    now
        The time of day.
    """
    own = {
        one.name: one
        for one in there
        if one.name.startswith(naming.MAINTENANCE_PREFIX) and one.name.endswith(f"-{mark}")
    }
    create, update, taken, names, moved = [], [], [], set(), set()
    for one in wanted:
        names.add(one.name)
        known = own.get(one.name)
        if known is None:
            create.append(one)
        elif not _is_own(known):
            taken.append(one.name)
        elif _is_moved(known, one, now):
            update.append(one)
            moved.add(one.name)
        elif frozenset(known.nodes) != one.nodes:
            update.append(one)
    left = {name: one for name, one in own.items() if name not in names and not _is_over(one, now)}
    delete = [name for name, one in left.items() if _is_own(one)]
    taken += left.keys() - delete
    return ReservationChanges(
        tuple(create), tuple(update), frozenset(moved), tuple(sorted(delete)), tuple(sorted(taken))
    )


def spec_of(one: WantedReservation, now: datetime, *, new: bool) -> ReservationSpec:
    """What Slurm is asked for; the start of one that has begun cannot be changed, and no new one begins in the past."""
    return ReservationSpec(
        name=one.name,
        nodes=sorted(one.nodes),
        start_time=max(one.start, now.replace(microsecond=0)) if new else one.start if one.start > now else None,
        end_time=one.end,
        users=USERS if new else None,
        flags=FLAGS if new else None,
    )


def _is_own(one: Reservation) -> bool:
    return one.users == USERS and one.flags.issuperset(FLAGS)


def _is_moved(there: Reservation, one: WantedReservation, now: datetime) -> bool:
    return there.end_time != one.end or (one.start > now and there.start_time != one.start)


def _is_over(one: Reservation, now: datetime) -> bool:
    return one.end_time is not None and one.end_time <= now
