"""From the nodes that jobs need now, and since when, to the replicas to set.

More nodes are wanted at once. Fewer are only once they have been too many all the time: the k-th surplus node is given
up when at least k nodes have been surplus for `idle_time`, and nothing is given up for `scale_down_delay` after the
last raise. So a stream of short jobs keeps the nodes that it needs, whichever they are.

Replicas that somebody else has set stay as they are for `scale_down_delay`: anyone who scales by hand at night has
reasons. Then autoscaling goes on from there. Times are monotonic seconds, so that a clock that is set changes nothing;
after a restart of the operator the times begin again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the spec says."""

    least: int
    most: int
    headroom: int = 0
    idle_time: float = 300.0
    """Seconds."""
    scale_down_delay: float = 300.0
    """Seconds."""


@dataclass(frozen=True, slots=True)
class History:
    """What is remembered of a NodeSet."""

    surplus_since: tuple[float, ...] = ()
    """For k = 1, 2, ...: since when at least k nodes are too many."""
    raised_at: float | None = None
    """When autoscaling has last raised replicas."""
    seen: int | None = None
    """Replicas at the last look."""
    by_others_at: float | None = None
    """When others were last seen to have set replicas; None if autoscaling has gone on since."""


class Move(Enum):
    """What is done."""

    STAY = "stay"
    SET = "set"
    ADOPT = "adopt"
    """Go on from the replicas that others have set."""
    HOLD = "hold"
    """Others have set replicas: they stay for a while."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done with a NodeSet."""

    move: Move
    replicas: int
    wanted: int
    """Replicas that jobs need, with headroom and within the limits."""
    history: History
    again_in: float | None = None
    """Seconds until time alone may change the decision."""


def decide(
    limits: Limits,
    replicas: int | None,
    ours: int | None,
    needed: int,
    past: History,
    now: float,
    *,
    complete: bool = True,
) -> Decision:
    """Decide on one NodeSet.

    Parameters
    ----------
    limits
        What its spec says.
    replicas
        Its spec's; None if they are not set.
    ours
        The replicas that autoscaling last set, by the NodeSet's annotation; None if it never has.
    needed
        Replicas that jobs need.
    past
        What the last decision has left.
    now
        Monotonic seconds.
    complete
        Whether all jobs were counted. If not, they need `needed` at least: no node is too many.
    """
    wanted = min(limits.most, max(limits.least, needed + limits.headroom))
    if replicas is None:
        return Decision(Move.SET, wanted, wanted, History(raised_at=now, seen=wanted))
    others_at = _set_by_others_at(replicas, ours, past, now)
    if others_at is not None:
        left = others_at + limits.scale_down_delay - now
        history = History(raised_at=past.raised_at, seen=replicas, by_others_at=others_at)
        if left > 0:
            return Decision(Move.HOLD, replicas, wanted, history, left)
        return Decision(Move.ADOPT, replicas, wanted, History(raised_at=past.raised_at, seen=replicas), 0.0)
    if wanted > replicas or replicas > limits.most:
        raised = now if wanted > replicas else past.raised_at
        return Decision(Move.SET, wanted if wanted > replicas else limits.most, wanted, History((), raised, None))
    if not complete:
        # Nothing is known to be surplus, so the time of what is begins again.
        return Decision(Move.STAY, replicas, wanted, History((), past.raised_at, replicas))
    return _lower(limits, replicas, wanted, past, now)


def _set_by_others_at(replicas: int, ours: int | None, past: History, now: float) -> float | None:
    """Since when replicas are what others have set; None if autoscaling has set them, or nobody has since it began."""
    if past.seen is not None and replicas not in {past.seen, ours}:
        return now
    if ours is None:
        return past.by_others_at
    if replicas == ours:
        return None
    return now if past.by_others_at is None else past.by_others_at


def _lower(limits: Limits, replicas: int, wanted: int, past: History, now: float) -> Decision:
    surplus = replicas - wanted
    since = (past.surplus_since + (now,) * surplus)[:surplus]
    rest = 0.0 if past.raised_at is None else past.raised_at + limits.scale_down_delay - now
    due = 0 if rest > 0 else sum(1 for at in since if now - at >= limits.idle_time)
    history = History(since, past.raised_at, replicas)
    if due:
        return Decision(Move.SET, replicas - due, wanted, History(since[due:], past.raised_at, None))
    waits = max(rest, min(since) + limits.idle_time - now) if since else None
    return Decision(Move.STAY, replicas, wanted, history, waits)
