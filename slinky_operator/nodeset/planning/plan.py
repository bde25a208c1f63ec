"""From the snapshot to the actions: pure, and the only place that defines the order of actions.

A plan is built from a survey of a frozen snapshot, and contains the actions, the decisions to report, and the time of
the next pass. Nothing in it is remembered: what was begun is read back from Slurm's reasons and the pods' conditions.

Outdated parts of the snapshot can at worst make a plan begin something that `executor` then finds done or no longer
wanted. For what cannot be undone, deletes above all, `executor` queries again and passes the answer to
`pod_state.why_kept` and `records.to_delete`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_api.events import EventReason
from slinky_operator.nodeset.drain import pod_steps, slurm_steps
from slinky_operator.nodeset.health.machines import MachineSteps
from slinky_operator.nodeset.model import actions
from slinky_operator.nodeset.model.check_tables import StoredChecks
from slinky_operator.nodeset.model.pods import pod_facts
from slinky_operator.nodeset.planning import requeue, volume_questions
from slinky_operator.nodeset.planning.decisions import Decisions, decide, undecided
from slinky_operator.nodeset.planning.survey import Survey, has_finalizer, may_decide
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.reconcile.text import named


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions of a pass, and what follows it."""

    decisions: Decisions
    actions: tuple[actions.Action, ...] = ()
    wake_up: float | None = None
    """Seconds until the next pass even if nothing changes."""


def plan(seen: Survey) -> Plan:
    """Build the plan.

    Parameters
    ----------
    seen
        What exists, with the answers to what it asks for; nothing is deleted for want of an answer.
    """
    snapshot = seen.snapshot
    if not has_finalizer(snapshot):
        return Plan(undecided(seen), (actions.TakeOver(), actions.AddFinalizer()))
    if seen.needs_jobs or not may_decide(snapshot):
        return Plan(undecided(seen))
    decided = decide(seen)
    made: list[actions.Action] = []
    for step in STEPS:
        made += step(seen, decided, made)
    return Plan(decided, tuple(made), requeue.wake_up(snapshot, decided, seen.live, seen.now))


Step = Callable[[Survey, Decisions, Sequence[actions.Action]], Sequence[actions.Action]]
"""Returns actions; gets what exists, the decisions, and the actions that come before its own."""


def _mark_claims(_seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """The retention of a claim is written before its pod is deleted."""
    return pod_steps.mark_claims(decided.claims)


def _give_up_jobs(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Delete all pods at once, if the user has given up their jobs; then no other step about living pods is taken."""
    return pod_steps.delete_all(seen.snapshot) if decided.skip_drain else ()


def _protect_and_adopt(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Add pods to the PodDisruptionBudget before anything is done about their nodes."""
    if decided.skip_drain:
        return ()
    return [
        *pod_steps.protections(seen.snapshot, seen.live, decided.states, decided.causes),
        *pod_steps.adoptions(seen.snapshot, seen.live),
    ]


def _register(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """What is recorded of pods that Slurm has come to know."""
    if decided.skip_drain:
        return ()
    marks = decided.registrations.marks
    return [
        *(slurm_steps.marks_of_records(seen.snapshot, seen.live) if seen.snapshot.slurm.readable else ()),
        *([actions.MarkRegistered(marks)] if marks else []),
    ]


def _drain(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Undrain nodes that are wanted again, and drain those for which there is a cause."""
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return [
        *slurm_steps.undrains(seen.snapshot, seen.live, decided.causes),
        *slurm_steps.drains_to_write(seen.snapshot, seen.live, decided.causes, decided.health.drained, seen.now),
    ]


def _delete_drained(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Delete pods that Slurm shows as empty."""
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return slurm_steps.deletions_of_drained_pods(seen.snapshot, seen.live, decided.causes, seen.now)


def _recreate(_seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Recreate pods on bad Nodes, whose tries the status has."""
    pods = decided.replacement.pods if decided.replacement is not None else ()
    return [actions.DeletePods(pods, for_health=True)] if pods and not decided.skip_drain else ()


def _replace_machines(_seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Go on with machines of bad Nodes, whose tries the status has."""
    steps = decided.replacement.machines if decided.replacement is not None else MachineSteps()
    if not steps.tries and not steps.given_back:
        return ()
    tries = () if decided.skip_drain else steps.tries
    return [actions.ReplaceMachines(tries, steps.shown, steps.given_back)]


def _end_late_drains(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """End drains that exceed their timeout, and ask about jobs that delay drains."""
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return [
        *slurm_steps.endings(decided.overdue.values(), decided.causes),
        *slurm_steps.ends_to_ask_for(seen.snapshot, decided.states, seen.now),
    ]


def _delete_without_slurm(
    seen: Survey, decided: Decisions, _before: Sequence[actions.Action]
) -> Sequence[actions.Action]:
    """Delete pods that cannot hold a job, whether Slurm answers or not."""
    return () if decided.skip_drain else pod_steps.deletions_without_slurm(seen.snapshot, seen.live, decided.causes)


def _give_traits(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Features and topology from Kubernetes Nodes."""
    if decided.skip_drain or not seen.snapshot.slurm.readable:
        return ()
    return slurm_steps.give_traits(seen.snapshot, seen.live)


def _show_on_pods(seen: Survey, decided: Decisions, before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """What pods show, except those that an earlier action deletes."""
    if decided.skip_drain:
        return ()
    return [
        *pod_steps.showings(seen.snapshot, seen.live, decided.states, before),
        *pod_steps.announcements(seen.snapshot, seen.unregistered, seen.now),
    ]


def _show_states(_seen: Survey, decided: Decisions, before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """States of nodes on pods, except those that an earlier action deletes."""
    if decided.skip_drain:
        return ()
    going = {
        pod.name for action in before if isinstance(action, actions.DeletePods | actions.Repair) for pod in action.pods
    }
    standing = tuple(one for one in decided.shown.pods if one.pod.name not in going)
    return [actions.ShowStates(standing)] if standing else ()


def _clean_up_records(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Records of pods that are gone: deleted, or kept and drained."""
    cleanup, owner = decided.cleanup, seen.snapshot.owner
    causes = frozenset({Cause.NO_POD})
    return [
        *([actions.MarkDown(cleanup.down)] if cleanup.down else []),
        *([actions.Drain(cleanup.drain, drains.reason(causes, owner), causes)] if cleanup.drain else []),
        *([actions.DeleteRecords(cleanup.delete)] if cleanup.delete else []),
    ]


def _record_revisions(_seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Record a revision before the first pod of it is created."""
    return pod_steps.record_revisions(decided.revisions)


def _restore_guard(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """After everything that concerns jobs: a refusal here must not delay that."""
    unguarded = pod_facts.unguarded(seen.snapshot.pods, seen.snapshot.guard)
    return [actions.EnsureGuard(unguarded)] if unguarded and not decided.skip_drain else ()


def _keep_checks(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Which nodes run which health checks, before pods are created that mount them."""
    found, stored = decided.checks, seen.snapshot.checks or StoredChecks()
    if found.must_read:
        return [actions.KeepChecks()]
    if found.data is None:
        return ()
    events: list[tuple[EventReason, str]] = []
    if found.begins:
        events.append((EventReason.CHECKS_TRIED, f"{found.node} tries checks first: {named(found.changed)}"))
    if found.approves:
        text = f"passed on {found.node}, and run on all nodes now: {named(found.changed)}"
        events.append((EventReason.CHECKS_APPROVED, text))
    return [actions.KeepChecks(found.data, stored, tuple(events))]


def _create(seen: Survey, decided: Decisions, before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Create pods, which have the guard from the beginning."""
    pods = decided.creation.pods
    has_guard = seen.snapshot.guard or any(isinstance(action, actions.EnsureGuard) for action in before)
    return [*([] if has_guard or not pods else [actions.EnsureGuard()]), *pods]


def _ask_for_room(seen: Survey, _decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Questions that decide nothing in this pass, and may take seconds."""
    asked = volume_questions.questions(seen.snapshot, seen.now)
    return [actions.AskForRoom(asked)] if asked else ()


def _drop_revisions(_seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    return pod_steps.drop_revisions(decided.revisions)


def _delete_claims(_seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    return pod_steps.delete_claims(decided.claims)


def _release(seen: Survey, decided: Decisions, _before: Sequence[actions.Action]) -> Sequence[actions.Action]:
    """Remove the finalizer last, once no pod is left; other finalizers may keep the NodeSet for hours after that.

    A record that is named keeps the NodeSet: nobody else would delete it later. The slurmctld of a Cluster that is
    being deleted is not started again, and has no use for it.
    """
    snapshot, skip_drain = seen.snapshot, decided.skip_drain
    is_held = labels.FINALIZER_NODESET_DRAIN in snapshot.nodeset.metadata.finalizers or bool(snapshot.guard)
    if not snapshot.nodeset.deleting or not is_held or snapshot.pods:
        return ()
    is_ending = snapshot.cluster.deleting and not snapshot.cluster.external
    left = decided.cleanup.down or (decided.cleanup.named and not is_ending)
    return [actions.RemoveFinalizer(anyway=skip_drain, named=decided.cleanup.named)] if skip_drain or not left else ()


STEPS: Final[tuple[Step, ...]] = (
    _mark_claims,
    _give_up_jobs,
    _protect_and_adopt,
    _register,
    _drain,
    _delete_drained,
    _recreate,
    _replace_machines,
    _end_late_drains,
    _delete_without_slurm,
    _give_traits,
    _show_on_pods,
    _show_states,
    _clean_up_records,
    _record_revisions,
    _restore_guard,
    _keep_checks,
    _create,
    _drop_revisions,
    _delete_claims,
    _ask_for_room,
    _release,
)
"""The order of a pass: what keeps jobs safe comes before what may end them, deletions before creations."""
