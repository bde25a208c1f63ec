"""What a Cluster shows of maintenance windows, and of their reservations. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_api.v1alpha1.cluster.status import MaintenanceStatus, WindowStatus
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Shown
from slinky_operator.cluster.parts.maintenance import changes
from slinky_operator.cluster.parts.maintenance.question import ReservationsQuestion, Reserved
from slinky_operator.cluster.parts.maintenance.windows import WantedReservation, is_released, unknown_node_sets
from slinky_operator.reconcile import maintenance
from slinky_operator.reconcile.text import joined, named, stamp

MOST_NAMED: Final = 5
"""NodeSets that a message names."""


def window_status(snapshot: Snapshot, now: datetime) -> tuple[WindowStatus, ...]:
    """Each window as it is on or comes next."""
    found = []
    for window in snapshot.cluster.spec.maintenance.windows:
        period = next(iter(window.periods(now)), None)
        if period is None:
            found.append(WindowStatus(name=window.name))
            continue
        active = period.is_on(now)
        released = active and is_released(snapshot, window, period)
        found.append(
            WindowStatus(name=window.name, start=period.start, end=period.end, active=active, released=released)
        )
    return tuple(found)


def status_of(snapshot: Snapshot, now: datetime) -> MaintenanceStatus | None:
    """The field of the status: without windows it stays until Slurm has no reservation of the operator's left."""
    cluster = snapshot.cluster
    if not cluster.spec.maintenance.windows:
        last = snapshot.memory.answers.of(ReservationsQuestion)
        is_clean = last is not None and not last.wanted and not last.why and not last.refused
        return None if is_clean or cluster.status.maintenance is None else MaintenanceStatus()
    return MaintenanceStatus(
        next=maintenance.shown(cluster.spec.maintenance, now), windows=window_status(snapshot, now)
    )


def in_maintenance(snapshot: Snapshot, now: datetime) -> Shown | None:
    """Status, reason and message of `InMaintenance`."""
    windows = snapshot.cluster.spec.maintenance.windows
    if not windows:
        return None
    told, over = [], []
    for window, one in zip(windows, window_status(snapshot, now), strict=True):
        if one.released:
            over.append(f"{window.name} has ended early, its updates are done")
        if one.active and one.end is not None and not one.released:
            where = f"NodeSets {named(window.node_sets, MOST_NAMED)}" if window.node_sets else "all nodes"
            told.append(f"{window.name} until {stamp(one.end)} on {where}")
    if told:
        return "True", Reason.MAINTENANCE_WINDOW, joined(told)
    if over:
        return "False", Reason.AS_EXPECTED, joined(over)
    following = maintenance.shown(snapshot.cluster.spec.maintenance, now)
    return "False", Reason.AS_EXPECTED, f"next: {following}" if following else "no window is to come"


def reserved(snapshot: Snapshot, asked: tuple[WantedReservation, ...] | None) -> Shown | None:
    """Status, reason and message of `MaintenanceReserved`.

    Parameters
    ----------
    asked
        What Slurm is to have; `None` while it does not answer.
    """
    if not snapshot.cluster.spec.maintenance.windows:
        return None
    wrong = list(_invalid(snapshot))
    if wrong:
        return "False", Reason.WINDOW_INVALID, joined(wrong)
    last = snapshot.memory.answers.of(ReservationsQuestion)
    if asked is None or last is None:
        return _unknown(snapshot)
    if last.why:
        return "Unknown", Reason.SLURM_UNREACHABLE, f"Slurm was asked for its reservations: {last.why}"
    return _known(last, asked)


def _known(last: Reserved, asked: tuple[WantedReservation, ...]) -> Shown:
    if last.taken:
        words = (
            f"somebody else has made or changed {named(last.taken)} in Slurm (users or flags), so the operator leaves "
            "that alone, and it holds its nodes: delete it with scontrol delete reservation"
        )
        return "False", Reason.RESERVATION_TAKEN, words
    if last.refused:
        words = joined([f"reservation {name}: {why}" for name, why in sorted(last.refused.items())])
        return "False", Reason.RESERVATION_REFUSED, f"Slurm refused; the operator tries again. {words}"
    missing = [one for one in asked if one.name not in last.there]
    if last.not_supported and missing:
        return "False", Reason.RESERVATION_NOT_SUPPORTED, by_hand(missing[0])
    if missing:
        return "False", Reason.RESERVATION_PENDING, f"not made yet: {named([one.name for one in missing])}"
    if not asked:
        return "True", Reason.AS_EXPECTED, "no window is announced yet, or none has a node"
    return "True", Reason.AS_EXPECTED, f"Slurm has {named([one.name for one in asked], 2)}"


def by_hand(one: WantedReservation) -> str:
    """What an administrator can do where the operator cannot: Slurm 24.11 makes no reservations by REST."""
    flags, users = ",".join(changes.FLAGS).lower(), ",".join(changes.USERS)
    start = one.start.astimezone(UTC)
    return (
        "the REST API of this Slurm makes no reservations (25.05 and newer do), so jobs may start that reach into the "
        f"window; updates are held all the same. Make it by hand: TZ=UTC scontrol create reservation "
        f"ReservationName={one.name} StartTime={start:%Y-%m-%dT%H:%M:%S} "
        f"EndTime={one.end.astimezone(UTC):%Y-%m-%dT%H:%M:%S} Users={users} Flags={flags} Nodes=..."
    )


def _unknown(snapshot: Snapshot) -> Shown:
    before = find(snapshot.cluster.status.conditions, ClusterCondition.MAINTENANCE_RESERVED)
    generation = snapshot.cluster.metadata.generation
    if before is not None and before.status == "True" and before.observed_generation == generation:
        # An operator that has just started knows nothing yet, and reservations hold while Slurm does not answer.
        return "True", Reason.AS_EXPECTED, before.message
    return "Unknown", Reason.CONNECTING, "Slurm has not been asked for its reservations yet"


def _invalid(snapshot: Snapshot) -> Iterator[str]:
    for index, window in enumerate(snapshot.cluster.spec.maintenance.windows):
        field = f"spec.maintenance.windows[{index}] ({window.name})"
        if window.overlaps_itself():
            yield f"{field}: it starts again before it has ended: nothing is reserved for it. Shorten its duration"
        unknown = unknown_node_sets(snapshot, window)
        if unknown:
            yield f"{field}: nodeSets has no NodeSet of this Cluster named {named(unknown, MOST_NAMED)}"
