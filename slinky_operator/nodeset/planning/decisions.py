"""The decisions of a plan before its actions: surplus pods, the causes of drains, the pods to create.

`survey` returns what exists, and whether that is enough to decide; `decide` calls the rules of the rooms, each once, in
the order of their dependencies. Which actions follow, and in which order, is decided by `plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from slinky_api import labels
from slinky_operator.nodeset.disruption import repairs, rolling_update
from slinky_operator.nodeset.disruption.repairs import UnregisteredPod
from slinky_operator.nodeset.drain import drain_causes, pod_steps, slurm_steps
from slinky_operator.nodeset.drain.deadline import Overdue
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_state import State
from slinky_operator.nodeset.model.pods import pod_names
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.model.revisions.revision_records import RevisionChanges
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement import claim_retention, creation
from slinky_operator.nodeset.placement.claim_retention import Keeping
from slinky_operator.nodeset.placement.creation import Creation
from slinky_operator.nodeset.placement.layout import Layout, lay_out
from slinky_operator.nodeset.planning import requeue
from slinky_operator.nodeset.planning.assessment import Assessment
from slinky_operator.nodeset.slurm_nodes import drains, identity, records
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.records import RecordCleanup
from slurm_client.models import Node


@dataclass(frozen=True, slots=True)
class Situation:
    """What exists, before anything is decided."""

    snapshot: Snapshot
    now: datetime
    live: tuple[Member, ...]
    """The pods that are neither being deleted nor ended."""
    layout: Layout
    orphans: tuple[Node, ...]
    """Records of this NodeSet without a living pod of that name, those that are cleaned up in this pass."""
    unregistered: Mapping[str, UnregisteredPod]
    """Pods whose slurmd runs and has not registered, by name."""

    @property
    def reusable_names(self) -> frozenset[str]:
        """Nodes without a pod whose names may be used again."""
        return frozenset(node.name for node in self.orphans if self.layout.missing)

    @property
    def needs_jobs(self) -> bool:
        """Whether the jobs must be queried before anything is decided."""
        if not self.snapshot.slurm.readable or self.snapshot.slurm.jobs is not None:
            return False
        return _needs_jobs(self) or repairs.needs_jobs(self.snapshot, self.unregistered.values(), self.now)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions."""

    seen: Situation
    victims: tuple[Member, ...]
    """Surplus pods, in the order of deletion."""
    creation: Creation
    causes: Mapping[str, frozenset[Cause]]
    """The causes for which the node of each pod is drained, by name of the pod."""
    states: Mapping[str, State]
    """State of each pod, by name."""
    overdue: tuple[Overdue, ...]
    """Nodes whose drain has taken longer than the spec allows."""
    cleanup: RecordCleanup
    claims: Keeping
    revisions: RevisionChanges
    skip_drain: bool
    """Whether the user has given up the jobs of a NodeSet that is being deleted."""

    def assess(self) -> Assessment:
        """The input of status, Events and the time of the next pass."""
        seen, causes = self.seen, self.causes
        unregistered = seen.unregistered.items()
        return Assessment(
            desired=seen.layout.desired,
            states=self.states,
            causes=causes,
            victims=tuple(member.name for member in self.victims),
            blocked=self.creation.blocked,
            waiting_for_slurm=(*self.cleanup.busy, *self.cleanup.down, *self.creation.unlisted),
            named={name: seen.snapshot.slurm.named[name] for name in self.cleanup.named},
            skip_drain=self.skip_drain,
            overdue={one.pod.node_name: one for one in self.overdue},
            conflicts=self.creation.conflicts,
            misplaced=tuple(member.name for member in seen.layout.misplaced),
            held=self.creation.held,
            waits={name: one for name, one in unregistered if causes.get(name, frozenset()) <= {Cause.REPAIR}},
            known=pod_state.known(seen.snapshot.members, seen.snapshot.owner),
        )


def survey(snapshot: Snapshot, now: datetime) -> Situation:
    """Return what exists.

    Parameters
    ----------
    snapshot
        The snapshot.
    now
        The time; timezone-aware.
    """
    live = tuple(one for one in snapshot.members if not one.pod.deleting and one.pod.slurmd is not Slurmd.ENDED)
    layout = lay_out(snapshot, live)
    orphans = _orphans(snapshot)
    if not layout.missing and requeue.more_to_come(snapshot.pods, now) is not None:
        # The others will follow within seconds, and are cleaned up with them in the same few calls.
        orphans = [node for node in orphans if drains.is_busy(node)]
    return Situation(snapshot, now, live, layout, tuple(orphans), repairs.waiting(snapshot, live, layout))


def decide(seen: Situation) -> Decisions:
    """Call the rules in order."""
    snapshot, live, layout, now = seen.snapshot, seen.live, seen.layout, seen.now
    readable, deleting = snapshot.slurm.readable, snapshot.nodeset.deleting
    skip_drain = deleting and labels.is_true(snapshot.nodeset.metadata.annotations, labels.ANNOTATION_SKIP_DRAIN)
    victims = drain_causes.scale_in_victims(snapshot, layout, now)
    is_creating = bool(layout.missing) and creation.is_possible(snapshot)
    created = creation.choose(snapshot, layout, live) if is_creating else Creation()
    causes = drain_causes.assign_causes(snapshot, live, layout, victims, seen.unregistered, created.awaited, now)
    return Decisions(
        seen=seen,
        victims=victims,
        creation=created,
        causes=causes,
        states={
            member.name: pod_state.classify(member, snapshot.slurm, causes.get(member.name, frozenset()))
            for member in snapshot.members
        },
        overdue=tuple(slurm_steps.overdue(snapshot, live, causes, now)) if readable and not skip_drain else (),
        # Also for a NodeSet whose jobs are given up: Slurm would show them RUNNING for minutes.
        cleanup=records.settle(seen.orphans, snapshot.slurm.jobs, _ended(snapshot), snapshot.slurm.named)
        if readable
        else RecordCleanup(),
        claims=claim_retention.settle(snapshot, layout, {member.name for member in live}, causes),
        revisions=pod_steps.revision_changes(snapshot),
        skip_drain=skip_drain,
    )


def _orphans(snapshot: Snapshot) -> list[Node]:
    standing = {pod.node_name for pod in snapshot.pods if pod.slurmd is not Slurmd.ENDED}
    return [
        node
        for node in snapshot.slurm.nodes.values()
        if node.name not in standing
        and node.name not in snapshot.stripped
        # A NodeSet that was force-deleted and recreated has the tag of the former one, whose pods may still run.
        and node.name not in snapshot.names_of_other_nodesets
        and pod_names.pod_name(snapshot.nodeset, node.name) not in snapshot.foreign_pods
        and identity.is_tagged(node, snapshot.owner)
    ]


def _ended(snapshot: Snapshot) -> frozenset[str]:
    """Nodes whose pods have ended for certain."""
    return snapshot.ended | {pod.node_name for pod in snapshot.pods if pod.slurmd is Slurmd.ENDED}


def _needs_jobs(seen: Situation) -> bool:
    snapshot, layout = seen.snapshot, seen.layout
    if layout.excess or layout.misplaced:
        return True
    if any(not drains.is_foreign(node) or drains.is_busy(node) for node in seen.orphans):
        return True
    if seen.reusable_names:
        # A suspended job does not show in the state of its node.
        return True
    for member in seen.live:
        is_ours = member.record is not None and drains.is_ours(member.record)
        if is_ours or drain_causes.cordons(snapshot, member.pod):
            return True
    known = pod_state.known(seen.live, snapshot.owner)
    return bool(rolling_update.outdated(seen.live, snapshot.nodeset, snapshot.revision, known))
