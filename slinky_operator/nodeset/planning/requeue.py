"""When to requeue a NodeSet although nothing has happened."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from slinky_operator.nodeset.drain import deadline
from slinky_operator.nodeset.health import check_trial
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning import volume_questions
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.planning.survey import more_to_come
from slinky_operator.nodeset.slurm_nodes import drains, kubernetes_features

SOON: Final = 2.0
"""Seconds until the next pass if something may end without a node event, such as a suspended job."""

LATER: Final = 30.0
"""Seconds until the next pass if an event is expected: a safety net for lost events."""


def wake_up(snapshot: Snapshot, decided: Decisions, live: Sequence[Member], now: datetime) -> float | None:
    """Return when to requeue although nothing has happened.

    Parameters
    ----------
    snapshot, decided
        The snapshot, and the decisions.
    live
        The pods that are neither being deleted nor ended.
    now
        The time; timezone-aware.

    Returns
    -------
    float | None
        Seconds from now; None if only an event changes anything.
    """
    times = [*_deadlines(snapshot, decided, now), *_gone_soon(snapshot, now)]
    times += [left for one in decided.waits.values() if (left := (one.until - now).total_seconds()) > 0]
    reported_in = [pod.hindrance.left(now) for pod in snapshot.pods if pod.hindrance is not None]
    times += [seconds for seconds in reported_in if seconds is not None]
    states = decided.states.values()
    if decided.waiting_for_slurm:
        times.append(SOON)
    if (
        decided.creation.blocked
        or decided.named
        or any(isinstance(state, pod_state.Unknown | pod_state.Starting) for state in states)
    ):
        times.append(LATER)
    for member in snapshot.members:
        if isinstance(decided.states.get(member.name), pod_state.Draining | pod_state.Drained):
            node = member.record
            # A job that does not show in the node's state ends without a node event.
            times.append(SOON if node is not None and node.is_drain and not drains.is_busy(node) else LATER)
    for pod in (member.pod for member in live):
        if pod.slurmd is Slurmd.RUNNING and not pod.registered and pod.name in decided.causes:
            times.append(SOON)
        if pod.ready_since is not None and pod.registered:
            left = snapshot.nodeset.spec.min_ready_seconds - (now - pod.ready_since).total_seconds()
            if left > 0:
                times.append(left)
    if decided.shown.is_late:
        times.append(SOON if snapshot.state_writes <= 0 else LATER)
    replaced_in = decided.replacement.wake_up if decided.replacement is not None else None
    again = check_trial.AGAIN if decided.checks.is_wanted else None
    window_in = snapshot.cluster.maintenance_changes_in
    asked_in = kubernetes_features.AGAIN if snapshot.refused_traits else None
    room_in, marked_in = volume_questions.due_in(snapshot, now), decided.registrations.due_in
    later = (room_in, marked_in, decided.health.wake_up, replaced_in, again, window_in, asked_in)
    return min([*times, *(seconds for seconds in later if seconds is not None)], default=None)


def _gone_soon(snapshot: Snapshot, now: datetime) -> list[float]:
    """Seconds until the cleanup of records that are waiting for others."""
    left = more_to_come(snapshot.pods, now)
    return [left] if left is not None else []


def _deadlines(snapshot: Snapshot, decided: Decisions, now: datetime) -> list[float]:
    """Seconds until each drain exceeds its timeout."""
    spec, causes = snapshot.nodeset.spec.drain, decided.causes
    left = [
        deadline.left(member.record, causes[member.name], spec, now)
        for member in snapshot.members
        if causes and member.record is not None and member.name in causes
    ]
    return [seconds for seconds in left if seconds is not None and seconds > 0]
