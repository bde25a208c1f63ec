"""From the snapshot to the actions: pure, and the only place that defines the order of actions.

A plan is built from a frozen snapshot and the time, and contains the actions, the findings to report, and the time of
the next pass. Nothing in it is remembered: what was begun is read back from Slurm's reasons and the pods' conditions.

Outdated parts of the snapshot can at worst make a plan begin something that `executor` then finds done or no longer
wanted. For what cannot be undone, deletes above all, `executor` queries again and passes the answer to
`pod_state.why_kept` and `records.to_delete`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_operator.nodeset.drain import pod_steps, slurm_steps
from slinky_operator.nodeset.model.actions import (
    Action,
    AddFinalizer,
    AskForRoom,
    DeleteRecords,
    Drain,
    EnsureGuard,
    MarkDown,
    RemoveFinalizer,
    TakeOver,
)
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning import requeue, volume_questions
from slinky_operator.nodeset.planning.assessment import Assessment
from slinky_operator.nodeset.planning.decisions import Decisions, decide, survey
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions of a pass, and what follows it."""

    assessment: Assessment
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    """Seconds until the next pass even if nothing changes."""
    replan_with_jobs: bool = False
    """Whether nothing is decided yet: the jobs must be queried, and the plan built again with them."""
    orphans: frozenset[str] = frozenset()
    """Nodes without a pod whose names may be used again: the jobs must have been queried since they had none, for a
    suspended job does not show on its node."""


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Build the plan.

    Parameters
    ----------
    snapshot
        The snapshot.
    now
        The time; timezone-aware.

    Returns
    -------
    Plan
        The complete plan; or one without actions that asks for the jobs (`replan_with_jobs`), if they decide anything
        and the snapshot does not contain them.
    """
    seen = survey(snapshot, now)
    undecided = Assessment(desired=seen.layout.desired)
    if not snapshot.nodeset.deleting and labels.FINALIZER_NODESET_DRAIN not in snapshot.nodeset.metadata.finalizers:
        return Plan(undecided, (TakeOver(), AddFinalizer()))
    if not snapshot.nodeset.deleting and not snapshot.mode_is_fixed:
        # The status of this pass fixes it: before that, no pod is created that another mode would not recognize.
        return Plan(undecided)
    if seen.needs_jobs:
        return Plan(undecided, replan_with_jobs=True, orphans=seen.reusable_names)
    decided = decide(seen)
    actions: list[Action] = []
    for step in STEPS:
        actions += step(decided, actions)
    assessment = decided.assess()
    return Plan(assessment, tuple(actions), requeue.wake_up(snapshot, assessment, seen.live, now))


Step = Callable[[Decisions, Sequence[Action]], Sequence[Action]]
"""Returns actions; gets the decisions, and the actions that come before its own."""


def _mark_claims(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """The retention of a claim is written before its pod is deleted."""
    return pod_steps.mark_claims(decided.claims)


def _give_up_jobs(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Delete all pods at once, if the user has given up their jobs; then no other step about living pods is taken."""
    return pod_steps.delete_all(decided.seen.snapshot) if decided.skip_drain else ()


def _protect_and_adopt(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Add pods to the PodDisruptionBudget before anything is done about their nodes."""
    seen = decided.seen
    if decided.skip_drain:
        return ()
    return [
        *pod_steps.protections(seen.snapshot, seen.live, decided.states, decided.causes),
        *pod_steps.adoptions(seen.snapshot, seen.live),
    ]


def _register(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """What is recorded of pods that Slurm has come to know."""
    seen = decided.seen
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return slurm_steps.registrations(seen.snapshot, seen.live)


def _drain(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Undrain nodes that are wanted again, and drain those for which there is a cause."""
    seen = decided.seen
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return [
        *slurm_steps.undrains(seen.snapshot, seen.live, decided.causes),
        *slurm_steps.drains_to_write(seen.snapshot, seen.live, decided.causes, seen.now),
    ]


def _delete_drained(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Delete pods that Slurm shows as empty."""
    seen = decided.seen
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return slurm_steps.deletions_of_drained_pods(seen.snapshot, seen.live, decided.causes, seen.now)


def _end_late_drains(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """End drains that exceed their timeout, and ask about jobs that delay drains."""
    seen = decided.seen
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return [
        *slurm_steps.endings(decided.overdue, decided.causes),
        *slurm_steps.ends_to_ask_for(seen.snapshot, decided.states, seen.now),
    ]


def _delete_without_slurm(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Delete pods that cannot hold a job, whether Slurm answers or not."""
    seen = decided.seen
    return () if decided.skip_drain else pod_steps.deletions_without_slurm(seen.snapshot, seen.live, decided.causes)


def _give_traits(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Features and topology from Kubernetes Nodes."""
    seen = decided.seen
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return slurm_steps.give_traits(seen.snapshot, seen.live)


def _show_on_pods(decided: Decisions, before: Sequence[Action]) -> Sequence[Action]:
    """What pods show, except those that an earlier action deletes."""
    seen = decided.seen
    if decided.skip_drain:
        return ()
    return [
        *pod_steps.showings(seen.snapshot, seen.live, decided.states, before),
        *pod_steps.announcements(seen.snapshot, seen.unregistered, seen.now),
    ]


def _clean_up_records(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Records of pods that are gone: deleted, or kept and drained."""
    cleanup, owner = decided.cleanup, decided.seen.snapshot.owner
    causes = frozenset({Cause.NO_POD})
    return [
        *([MarkDown(cleanup.down)] if cleanup.down else []),
        *([Drain(cleanup.drain, drains.reason(causes, owner), causes)] if cleanup.drain else []),
        *([DeleteRecords(cleanup.delete)] if cleanup.delete else []),
    ]


def _record_revisions(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Record a revision before the first pod of it is created."""
    return pod_steps.record_revisions(decided.revisions)


def _restore_guard(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """After everything that concerns jobs: a refusal here must not delay that."""
    unguarded = pod_facts.unguarded(decided.seen.snapshot.pods, decided.seen.snapshot.guard)
    return [EnsureGuard(unguarded)] if unguarded and not decided.skip_drain else ()


def _create(decided: Decisions, before: Sequence[Action]) -> Sequence[Action]:
    """Create pods, which have the guard from the beginning."""
    pods = decided.creation.pods
    has_guard = decided.seen.snapshot.guard or any(isinstance(action, EnsureGuard) for action in before)
    return [*([] if has_guard or not pods else [EnsureGuard()]), *pods]


def _ask_for_room(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Questions that decide nothing in this pass, and may take seconds."""
    asked = volume_questions.questions(decided.seen.snapshot, decided.seen.now)
    return [AskForRoom(asked)] if asked else ()


def _drop_revisions(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    return pod_steps.drop_revisions(decided.revisions)


def _delete_claims(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    return pod_steps.delete_claims(decided.claims)


def _release(decided: Decisions, _before: Sequence[Action]) -> Sequence[Action]:
    """Remove the finalizer last, once no pod is left; other finalizers may keep the NodeSet for hours after that.

    A record that is named keeps the NodeSet: nobody else would delete it later. The slurmctld of a Cluster that is
    being deleted is not started again, and has no use for it.
    """
    snapshot, skip_drain = decided.seen.snapshot, decided.skip_drain
    is_held = labels.FINALIZER_NODESET_DRAIN in snapshot.nodeset.metadata.finalizers or bool(snapshot.guard)
    if not snapshot.nodeset.deleting or not is_held or snapshot.pods:
        return ()
    is_ending = snapshot.cluster.deleting and not snapshot.cluster.external
    left = decided.cleanup.down or (decided.cleanup.named and not is_ending)
    return [RemoveFinalizer(anyway=skip_drain, named=decided.cleanup.named)] if skip_drain or not left else ()


STEPS: Final[tuple[Step, ...]] = (
    _mark_claims,
    _give_up_jobs,
    _protect_and_adopt,
    _register,
    _drain,
    _delete_drained,
    _end_late_drains,
    _delete_without_slurm,
    _give_traits,
    _show_on_pods,
    _clean_up_records,
    _record_revisions,
    _restore_guard,
    _create,
    _drop_revisions,
    _delete_claims,
    _ask_for_room,
    _release,
)
"""The order of a pass: what keeps jobs safe comes before what may end them, deletions before creations."""
