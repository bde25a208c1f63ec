"""The part of the plan about partitions whose state an administrator has set with `scontrol`. Pure.

A reconfigure gives each partition the state of its line. So before a change is applied slurmctld is queried for the
current states, and what an administrator has set is written into the lines (`slinky_operator.slurm.conf.states`). While
there is such a state it is checked from time to time: one that was reverted must not return with the next start.
"""

from __future__ import annotations

from typing import Final

from slinky_api.events import EventReason
from slinky_api.v1alpha1.cluster.status import ConfigStatus
from slinky_operator.cluster.actions import Ask, EmitEvent
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.rollout.slurm_questions import PartitionStates, StatesQuestion
from slinky_operator.kube.events import EventType
from slinky_operator.reconcile.text import named
from slinky_operator.slurm.conf import Parsed, Rendered
from slinky_operator.slurm.conf.states import UP

VALID: Final = 6.0
"""Seconds for which an answer is valid when a change is to be applied."""

ASK_EVERY: Final = 3.0
"""Seconds until a query without an answer is repeated."""

LOOK_EVERY: Final = 30.0
"""Seconds between two queries while there are states that an administrator has set."""

SHOWN: Final = 10
"""Maximum number of partitions named in an Event."""


def known(snapshot: Snapshot, *, is_live: bool) -> PartitionStates | None:
    """Slurm's last answer about the live configuration."""
    found, loaded = snapshot.memory.answers.of(StatesQuestion), snapshot.memory.rollout.loaded
    stored = snapshot.cluster.status.config or ConfigStatus()
    if found is None or found.why or not is_live or found.hash != stored.applied_hash:
        return None
    return None if loaded is not None and found.asked_at < loaded.at else found


def questions(snapshot: Snapshot, now: float, states: PartitionStates | None, *, marked: bool) -> tuple[Ask, ...]:
    """Query about the live configuration: once for a change, and from time to time while there are marks.

    Parameters
    ----------
    states
        As `known` gives them.
    """
    if not snapshot.slurm_answers or (states is not None and not (marked and now - states.asked_at >= LOOK_EVERY)):
        return ()
    return _ask(snapshot, now)


def unasked(snapshot: Snapshot, now: float, *, is_live: bool) -> tuple[str, tuple[Ask, ...]]:
    """Why a change cannot be written yet, and the missing query; empty if it can.

    If Slurm does not answer at all, its slurmctld may be waiting for just this change.
    """
    if not is_live or not snapshot.slurm_answers:
        return "", ()
    found = known(snapshot, is_live=is_live)
    if found is not None and now - found.asked_at <= VALID:
        return "", ()
    last = snapshot.memory.answers.of(StatesQuestion)
    why = f" ({last.why})" if last is not None and last.why else ""
    return f"Slurm is asked for the states of its partitions{why}", _ask(snapshot, now)


def _ask(snapshot: Snapshot, now: float) -> tuple[Ask, ...]:
    last = snapshot.memory.answers.of(StatesQuestion)
    if last is not None and last.why and now - last.asked_at < ASK_EVERY:
        return ()
    return (Ask(StatesQuestion((snapshot.cluster.status.config or ConfigStatus()).applied_hash)),)


def words(rendered: Rendered) -> list[str]:
    """Say in a sentence which partitions keep a state, and how an administrator opens them."""
    found = sorted(rendered.by_hand.items())
    if len(found) > 1:
        states = named([f"{name} {one.state}" for name, one in found], 2)
        open_again = f"`scontrol update PartitionName=… State={UP}` opens one"
        return [f"{len(found)} partitions stay as set by scontrol: {states}; {open_again}"]
    return [
        f"partition {name} stays {one.state}, as set by scontrol, where the spec says {one.spec};"
        f" `scontrol update PartitionName={name} State={one.spec}` takes it back"
        for name, one in found
    ]


def events(snapshot: Snapshot, rendered: Rendered, running: Parsed) -> tuple[EmitEvent, ...]:
    """Report states that were not kept before."""
    new = {name: one for name, one in rendered.by_hand.items() if running.set_states.get(name) != one}
    if not new:
        return ()
    states = ", ".join(f"{name} {one.state}" for name, one in sorted(new.items())[:SHOWN])
    open_again = f"`scontrol update PartitionName=… State={UP}` opens one"
    message = f"partitions keep the state that scontrol has given them: {states}; {open_again}"
    return (EmitEvent(snapshot.raw, EventType.NORMAL, EventReason.PARTITION_STATE_KEPT, message),)
