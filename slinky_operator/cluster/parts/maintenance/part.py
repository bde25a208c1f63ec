"""The part about maintenance windows: when reservations are looked at, Events of windows, what is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_api.events import EventReason
from slinky_api.v1alpha1.cluster.status import WindowStatus
from slinky_operator.cluster.actions import Action, Ask, EmitEvent
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.maintenance.condition import in_maintenance, reserved, status_of, window_status
from slinky_operator.cluster.parts.maintenance.question import ReservationsQuestion, Reserved
from slinky_operator.cluster.parts.maintenance.windows import WantedReservation, WantedReservations, mark, wanted
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.events import EventType
from slinky_operator.reconcile import maintenance
from slinky_operator.reconcile.text import stamp


class WindowsPart(Part):
    """Maintenance windows: which one is on or next."""

    name = "maintenance"
    condition = ClusterCondition.IN_MAINTENANCE

    @override
    def shown(self, state: PassState) -> Shown | None:
        return in_maintenance(state.snapshot, state.wall)

    @override
    def remark(self, state: PassState) -> str:
        found = in_maintenance(state.snapshot, state.wall)
        if found is None or found[0] != "True":
            return ""
        return f"maintenance {maintenance.shown(state.snapshot.cluster.spec.maintenance, state.wall)}"

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        return {"maintenance": status_of(state.snapshot, state.wall)}


class ReservationsPart(Part):
    """Their reservations in Slurm."""

    name = "maintenance"
    condition = ClusterCondition.MAINTENANCE_RESERVED
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        return reserved(state.snapshot, state.found(WantedReservations).known)


MAINTENANCE: Final = (WindowsPart(), ReservationsPart())


LOOK_EVERY: Final = 60.0
"""Seconds between two looks at Slurm's reservations if nothing happens: an administrator may delete one."""

AGAIN_AFTER: Final = 15.0
"""Seconds until the next attempt after one that failed."""

PACE: Final = 1.0
"""Seconds between two looks at least, however fast nodes come and go."""


def keep_reservations(state: PassState) -> Iterator[Action]:
    """Keep Slurm's reservations as the windows are, and report windows that begin and end."""
    snapshot, cluster = state.snapshot, state.snapshot.cluster
    windows = cluster.spec.maintenance.windows
    if cluster.deleting or (not windows and cluster.status.maintenance is None):
        return
    state.wake_up(cluster.spec.maintenance.changes_in(state.wall))
    yield from _events(state)
    if not snapshot.slurm_answers:
        return
    asked = wanted(snapshot, state.wall)
    state.note(WantedReservations(asked))
    due = _due(snapshot.memory.answers.of(ReservationsQuestion), asked) - state.now
    if due <= 0:
        yield Ask(ReservationsQuestion(asked, mark(cluster), state.wall))
    else:
        state.wake_up(due)


def _due(last: Reserved | None, asked: tuple[WantedReservation, ...]) -> float:
    """When the next look is due, in monotonic seconds."""
    if last is None:
        return float("-inf")
    if last.wanted != asked:
        return last.at + PACE
    return last.at + (AGAIN_AFTER if last.why or last.refused else LOOK_EVERY)


def _events(state: PassState) -> Iterator[EmitEvent]:
    """Windows that have begun, or are over, since the status was written."""
    stored = state.snapshot.cluster.status.maintenance
    before = {one.name: one for one in (stored.windows if stored is not None else ()) if one.active}
    now = {one.name: one for one in window_status(state.snapshot, state.wall) if one.active}
    for name, one in before.items():
        new = now.get(name)
        if new is None or (new.released and not one.released):
            early = "no update is left, its nodes run jobs again" if new is not None else _end(one, state)
            yield _event(state, EventReason.MAINTENANCE_ENDED, f"maintenance window {name} is over: {early}")
    for name, one in now.items():
        old = before.get(name)
        if one.end is not None and not one.released and (old is None or old.start != one.start or old.released):
            words = f"maintenance window {name} has begun, and ends at {stamp(one.end)}"
            yield _event(state, EventReason.MAINTENANCE_BEGUN, words)


def _end(one: WindowStatus, state: PassState) -> str:
    is_over = one.end is not None and one.end <= state.wall
    return "its time is up" if is_over else "its window was changed or removed"


def _event(state: PassState, reason: EventReason, words: str) -> EmitEvent:
    return EmitEvent(state.snapshot.raw, EventType.NORMAL, reason, words, with_status=True)
