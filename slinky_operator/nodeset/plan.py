"""From what is to what is to be done: pure, and the only place where the parts of the rules come together.

A plan is made from a frozen snapshot and the time, and says what to do, what to tell, and when to look again. Nothing
in it is remembered: what was begun is read back from Slurm's reasons and the pods' conditions.

What of the picture is old can at worst make a plan begin something that `executor` then finds done or no longer wanted.
For what cannot be undone, deletes above all, `executor` asks again and puts the answer to `pod_state.why_kept` and
`records.to_delete`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from slinky_api import labels
from slinky_operator.nodeset import requeue
from slinky_operator.nodeset.assessment import Assessment
from slinky_operator.nodeset.disruption import repairs, rolling_update
from slinky_operator.nodeset.drain import drain_causes, pod_steps, slurm_steps
from slinky_operator.nodeset.model import pod_facts, pod_names, pod_state
from slinky_operator.nodeset.model.actions import (
    Action,
    AddFinalizer,
    DeleteRecords,
    EnsureGuard,
    MarkDown,
    RemoveFinalizer,
    TakeOver,
)
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_facts import Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement import creation
from slinky_operator.nodeset.placement.layout import Layout, lay_out
from slinky_operator.nodeset.slurm_nodes import drains, identity, records
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slurm_client.models import Node


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    assessment: Assessment
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    """Seconds until the next pass even if nothing changes."""
    needs_jobs: bool = False
    """Whether the jobs must be asked for and a new plan made."""
    orphans: frozenset[str] = frozenset()
    """Nodes without a pod whose names may be used again: the jobs must have been asked for since they had none, for a
    suspended job does not show on its node."""


def plan(snapshot: Snapshot, now: datetime) -> Plan:  # noqa: C901, PLR0912 - the order of things stands in one place
    """Make the plan.

    Parameters
    ----------
    snapshot
        Everything known.
    now
        The time; knows its zone.
    """
    nodeset = snapshot.nodeset
    live = [one for one in snapshot.members if not one.pod.deleting and one.pod.slurmd is not Slurmd.ENDED]
    layout = lay_out(snapshot, live)
    desired = layout.desired
    if not nodeset.deleting and labels.FINALIZER_NODESET_DRAIN not in nodeset.metadata.finalizers:
        return Plan(Assessment(desired), (TakeOver(), AddFinalizer()))
    if not nodeset.deleting and not snapshot.mode_is_fixed:
        # The status of this pass fixes it: before that, no pod is made that another mode would not know.
        return Plan(Assessment(desired))
    skip = nodeset.deleting and labels.is_true(nodeset.metadata.annotations, labels.ANNOTATION_SKIP_DRAIN)
    orphans = _orphans(snapshot)
    if not layout.missing and requeue.more_to_come(snapshot.pods, now) is not None:
        # The others will follow within seconds, and are settled with them in the same few calls.
        orphans = [node for node in orphans if drains.is_busy(node)]
    waits = repairs.waiting(snapshot, live, layout)
    if _needs_jobs(snapshot, live, layout, orphans) or repairs.needs_jobs(snapshot, waits.values(), now):
        return Plan(
            Assessment(desired), needs_jobs=True, orphans=frozenset(node.name for node in orphans if layout.missing)
        )

    chosen = drain_causes.scale_in_victims(snapshot, layout, now)
    created = creation.Creation()
    if layout.missing and creation.is_possible(snapshot):
        created = creation.choose(snapshot, layout, live)
    causes = drain_causes.assign_causes(snapshot, live, layout, chosen, waits, created.awaited, now)
    states = {
        member.name: pod_state.classify(member, snapshot.slurm, causes.get(member.name, frozenset()))
        for member in snapshot.members
    }
    actions: list[Action] = []
    late = slurm_steps.overdue(snapshot, live, causes, now) if snapshot.slurm.readable and not skip else []
    settling = records.RecordCleanup()
    if snapshot.slurm.readable:
        # Of a NodeSet whose jobs are given up too: Slurm would show them RUNNING for minutes.
        settling = records.settle(orphans, snapshot.slurm.jobs, _ended(snapshot))
    if skip:
        actions += pod_steps.delete_all(snapshot)
    else:
        actions += pod_steps.deletions_without_slurm(snapshot, live, causes)
        if snapshot.slurm.readable:
            slurm = [
                *slurm_steps.registrations_and_drains(snapshot, live, causes, now),
                *slurm_steps.endings(late, causes),
            ]
            actions = [*slurm, *actions, *slurm_steps.give_traits(snapshot, live)]
        actions = [
            *pod_steps.protections(snapshot, live, states, causes),
            *pod_steps.adoptions(snapshot, live),
            *actions,
            *pod_steps.showings(snapshot, live, states, actions),
            *pod_steps.announcements(snapshot, waits, now),
        ]
    if snapshot.slurm.readable:
        if settling.down:
            actions.append(MarkDown(settling.down))
        if settling.delete:
            actions.append(DeleteRecords(settling.delete))
    record, forget = pod_steps.upkeep(snapshot)
    actions += record
    without_guard = pod_facts.unguarded(snapshot.pods, snapshot.guard)
    if without_guard and not skip:
        # Behind all that concerns jobs: a refusal here must not hold that up.
        actions.append(EnsureGuard(without_guard))
    if created.pods:
        actions += [*([] if snapshot.guard or without_guard else [EnsureGuard()]), *created.pods]
    marked, left_over = pod_steps.claims_to_settle(snapshot, layout, live, causes)
    # What becomes of a claim is written down before its pod goes.
    actions = [*marked, *actions, *forget, *left_over]
    # Afterwards others may hold it for hours: there is nothing left to do then.
    held = labels.FINALIZER_NODESET_DRAIN in nodeset.metadata.finalizers or bool(snapshot.guard)
    if nodeset.deleting and held and not snapshot.pods and (skip or not settling.down):
        actions.append(RemoveFinalizer(anyway=skip))
    assessment = Assessment(
        desired,
        states,
        causes,
        tuple(member.name for member in chosen),
        created.blocked,
        (*settling.busy, *settling.down),
        skip,
        {one.pod.node_name: one for one in late},
        created.conflicts,
        tuple(member.name for member in layout.misplaced),
        created.held,
        {name: one for name, one in waits.items() if causes.get(name, frozenset()) <= {Cause.REPAIR}},
        pod_state.known(snapshot.members, snapshot.owner),
    )
    return Plan(assessment, tuple(actions), requeue.wake_up(snapshot, assessment, live, now))


def _orphans(snapshot: Snapshot) -> list[Node]:
    """Records of this NodeSet under whose names no pod is alive."""
    standing = {pod.node_name for pod in snapshot.pods if pod.slurmd is not Slurmd.ENDED}
    return [
        node
        for node in snapshot.slurm.nodes.values()
        if node.name not in standing
        and node.name not in snapshot.stripped
        # A NodeSet that was deleted by force and created anew has the tag of its predecessor, whose pods may still run.
        and node.name not in snapshot.names_of_other_nodesets
        and pod_names.pod_name(snapshot.nodeset, node.name) not in snapshot.foreign_pods
        and identity.is_tagged(node, snapshot.owner)
    ]


def _ended(snapshot: Snapshot) -> frozenset[str]:
    return snapshot.ended | {pod.node_name for pod in snapshot.pods if pod.slurmd is Slurmd.ENDED}


def _needs_jobs(snapshot: Snapshot, live: Sequence[Member], layout: Layout, orphans: Sequence[Node]) -> bool:
    if not snapshot.slurm.readable or snapshot.slurm.jobs is not None:
        return False
    if layout.excess or layout.misplaced:
        return True
    if any(not drains.is_foreign(node) or drains.is_busy(node) for node in orphans):
        return True
    if orphans and layout.missing:
        # One of their names may be used again; a suspended job on it does not show in the node's state.
        return True
    for member in live:
        node = member.record
        if (node is not None and drains.is_ours(node)) or drain_causes.cordons(snapshot, member.pod):
            return True
    known = pod_state.known(live, snapshot.owner)
    return bool(rolling_update.outdated(live, snapshot.nodeset, snapshot.revision, known))
