"""Holds, releases and cancellations: which is due, and which must wait. Pure.

Slurm may refuse an order: an administrator has held the job meanwhile, a right is missing. That is shown, and the order
is given again ever more rarely. Slurm also takes a hold for a job that has just started: it runs on, and would be held
when it is requeued, so a hold is released whether the job waits or runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.jobs import phases
from slinky_operator.reconcile.text import cut
from slinky_operator.slurmjob.model.news import Note, Record
from slinky_operator.slurmjob.model.slurm_records.records import HELD_BY_ADMIN, HELD_BY_USER, Seen
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.steps import GiveOrder, Order, OrderKind, Plan

AGAIN: Final = timedelta(seconds=15)
"""After which Slurm is given an order once more that it took, and that nothing has come of."""

REFUSED_S: Final = (5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds after which an order is given again that Slurm has refused, once, twice and so on."""

LOOK_S: Final = 5.0
"""Seconds until the next look at what became of an order, where no event comes."""

SOON_S: Final = 1.0
"""Seconds until the next look for a list that was asked for after the order."""

LONGEST: Final = 1000
"""Characters of Slurm's words that are repeated."""

_REFUSED: Final[Mapping[OrderKind, tuple[Reason, str]]] = {
    OrderKind.CANCEL: (Reason.CANCEL_REFUSED, "cancel"),
    OrderKind.HOLD: (Reason.HOLD_REFUSED, "hold"),
    OrderKind.RELEASE: (Reason.RELEASE_REFUSED, "release"),
}


def held(snapshot: Snapshot, seen: Seen) -> Plan:
    """Hold or release a job that has not ended, as `spec.suspend` says; a job that runs is not held."""
    if _is_behind(snapshot, seen):
        return Plan(news=Record(seen), wake=SOON_S)
    if snapshot.job.spec.suspend:
        return _suspended(snapshot, seen)
    if snapshot.job.status.held:
        if not seen.is_held:
            return Plan(news=Record(seen, is_held=False))
        if seen.slurm_reason != HELD_BY_ADMIN:
            return due(snapshot, OrderKind.RELEASE, seen)
    return Plan(news=Record(seen))


def _is_behind(snapshot: Snapshot, seen: Seen) -> bool:
    """Whether the list of jobs does not show what has become of the last order yet."""
    order, looked = snapshot.order, snapshot.looked
    if order is None or order.refusal or order.job_id != seen.job_id:
        return False
    return looked is None or looked.at < order.at


def _suspended(snapshot: Snapshot, seen: Seen) -> Plan:
    if seen.shown.phase is not phases.Phase.PENDING:
        return Plan(news=Record(seen))
    # Held for another reason, such as a requeue, it may be released without anybody asking the operator.
    is_known = bool(snapshot.job.status.held) or seen.shown.reason is phases.Reason.HELD
    if not (seen.is_held and is_known):
        return due(snapshot, OrderKind.HOLD, seen)
    return Plan(news=Record(seen, is_held=True if seen.slurm_reason == HELD_BY_USER else None))


def due(snapshot: Snapshot, kind: OrderKind, seen: Seen) -> Plan:
    """Give an order, unless the same one was given a moment ago."""
    order = snapshot.order
    wanted = (kind, seen.job_id, snapshot.job.metadata.generation)
    if order is None or (order.kind, order.job_id, order.generation) != wanted or snapshot.now >= order.again:
        return Plan(GiveOrder(kind, seen), Record(seen), LOOK_S)
    left = (order.again - snapshot.now).total_seconds()
    if order.refusal:
        return Plan(news=Record(seen, refused(order)), wake=left)
    return Plan(news=Record(seen), wake=min(left, LOOK_S))


def refused(order: Order) -> Note:
    """What is shown of an order that Slurm has not carried out."""
    reason, verb = _REFUSED[order.kind]
    return Note(reason, f"Slurm did not {verb} job {order.job_id}; the operator tries again: {order.refusal}")


def answered(
    kind: OrderKind, seen: Seen, generation: int, before: Order | None, now: datetime, refusal: str = ""
) -> Order:
    """What is remembered of an order that was given.

    Parameters
    ----------
    kind
        What it was.
    seen
        The job.
    generation
        Of the spec that asked for it.
    before
        The last order about the job.
    now
        When Slurm had answered.
    refusal
        Why it was not carried out; empty if it was.
    """
    if not refusal:
        return Order(kind, seen.job_id, generation, now, now + AGAIN)
    is_same = before is not None and (before.kind, before.generation) == (kind, generation)
    count = before.refusals if before is not None and is_same else 0
    pause = timedelta(seconds=REFUSED_S[min(count, len(REFUSED_S) - 1)])
    return Order(kind, seen.job_id, generation, now, now + pause, cut(refusal, LONGEST), count + 1)
