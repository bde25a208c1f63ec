"""What a NodeSet shows of autoscaling: whether it may act, a reason, and the jobs that are counted or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinky_api.conditions import LONGEST_AS_EXPECTED, Reason
from slinky_api.v1alpha1.fields import format_duration
from slinky_api.v1alpha1.nodeset.autoscaling import Autoscaling, AutoscalingStatus
from slinky_operator.autoscaling.rules.decision import Decision, Move
from slinky_operator.autoscaling.rules.view import Names, NodeDemand
from slinky_operator.reconcile.text import cut, named

LONGEST: Final = 1500
"""Characters of the message."""

TROUBLES: Final = frozenset(
    {
        Reason.COUNT_INCOMPLETE,
        Reason.JOBS_IMPOSSIBLE,
        Reason.MAXIMUM_REACHED,
        Reason.OTHER_AUTOSCALER,
        Reason.NODE_UNKNOWN,
        Reason.SCALED_BY_OTHERS,
        Reason.NOT_SUPPORTED,
    }
)
"""Reasons that a Warning Event reports when they come up."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why autoscaling changes nothing."""

    reason: Reason
    message: str


NOT_ON_EACH_NODE: Final = Blocked(
    Reason.NOT_SUPPORTED,
    "this NodeSet has one pod on each matching Node (status.scalingMode is DaemonSet), so Nodes decide how many there"
    " are: remove spec.autoscaling, or create another NodeSet with scalingMode StatefulSet",
)

OTHER: Final = Blocked(
    Reason.OTHER_AUTOSCALER,
    "a HorizontalPodAutoscaler sets replicas of this NodeSet too, so autoscaling changes nothing: delete the"
    " HorizontalPodAutoscaler (or the ScaledObject of KEDA that made it) and set replicas once with kubectl scale, or"
    " remove spec.autoscaling",
)

STILL_COUNTING: Final = Blocked(
    Reason.COUNT_INCOMPLETE,
    "an earlier count of the jobs of this Cluster still runs, so nothing is scaled until it has ended",
)

UNKNOWN: Final = (
    "what a node of this NodeSet offers is not known before one has registered, so no job is counted for it: set"
    " spec.resources, or minReplicas: 1"
)


def blocked(why: Blocked, wanted: int | None = None) -> AutoscalingStatus:
    """The status while autoscaling changes nothing."""
    return AutoscalingStatus(active=False, wanted=wanted, reason=why.reason, message=cut(why.message, LONGEST))


def decided(
    autoscaling: Autoscaling, wanted: NodeDemand, decision: Decision, *, known: bool, bad_cost: bool = False
) -> AutoscalingStatus:
    """The status after a decision.

    Parameters
    ----------
    autoscaling
        The spec.
    wanted, decision
        What jobs need, and what becomes of it.
    known
        Whether it is known what the nodes offer.
    bad_cost
        Whether the annotation of the cost is not a number.
    """
    texts = [f"{decision.wanted} replicas wanted"]
    if decision.move is Move.HOLD:
        delay = format_duration(autoscaling.scale_down_delay)
        texts.insert(0, f"someone else set replicas to {decision.replicas}, which is kept for {delay}")
    texts.append(f"{wanted.busy} nodes have jobs")
    if wanted.counted.count:
        texts.append(f"counted: pending {_jobs(wanted.counted)}")
    if wanted.waiting.count:
        texts.append(f"at maxReplicas {autoscaling.max_replicas} there is no room yet for {_jobs(wanted.waiting)}")
    if wanted.impossible.count:
        texts.append(
            f"{_jobs(wanted.impossible)} can never run: with all nodes free, and maxReplicas of them, none of the "
            "partitions named offers what is asked for; ask for less, or raise maxReplicas"
        )
    if wanted.left_out:
        most = [f"{why} {count}" for why, count in sorted(wanted.left_out.items(), key=lambda one: (-one[1], one[0]))]
        texts.append(f"not counted, by reason: {named(most)}")
    if wanted.unseen.count:
        texts.insert(
            0,
            f"pending {_jobs(wanted.unseen)} not counted: {', '.join(wanted.limits)}; replicas are not lowered until"
            " all are counted: cancel or hold these jobs, or give them equal --constraint, --mem and --exclude",
        )
    if not known:
        texts.append(UNKNOWN)
    if bad_cost:
        texts.append("the annotation nodeset.slinky.slurm.net/cost is not a number, and counts as 0")
    reason = _reason(wanted, decision, known=known)
    return AutoscalingStatus(
        active=decision.move is not Move.HOLD,
        wanted=decision.wanted,
        reason=reason,
        message=cut("; ".join(texts), LONGEST_AS_EXPECTED if reason is Reason.AS_EXPECTED else LONGEST),
    )


def _reason(wanted: NodeDemand, decision: Decision, *, known: bool) -> Reason:
    if decision.move is Move.HOLD:
        return Reason.SCALED_BY_OTHERS
    if not known:
        return Reason.NODE_UNKNOWN
    if not wanted.complete:
        return Reason.COUNT_INCOMPLETE
    if wanted.impossible.count:
        return Reason.JOBS_IMPOSSIBLE
    if wanted.waiting.count:
        return Reason.MAXIMUM_REACHED
    return Reason.NODES_WANTED if wanted.counted.count else Reason.AS_EXPECTED


def change(before: int | None, decision: Decision, wanted: NodeDemand) -> str:
    """The Event about a change of replicas."""
    told = f"replicas {before if before is not None else 'unset'} -> {decision.replicas}"
    if before is None or decision.replicas > before:
        return (
            f"{told}: for pending {_jobs(wanted.counted)}" if wanted.counted.count else f"{told}: minReplicas, headroom"
        )
    return f"{told}: {decision.wanted} wanted, the others had no job"


def _jobs(names: Names) -> str:
    shown = ", ".join(names.shown)
    rest = names.count - len(names.shown)
    return f"{'job' if names.count == 1 else 'jobs'} {shown}" + (f" ({names.count} in all)" if rest > 0 else "")
