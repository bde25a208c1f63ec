"""The decisions of a pass: surplus pods, the causes of drains, the pods to create.

`decide` calls the rules of the rooms, each once, in the order of their dependencies. Which actions follow, and in which
order, is decided by `plan`; status and Events are made from the same decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slinky_api import labels
from slinky_operator.nodeset.disruption.repairs import UnregisteredPod
from slinky_operator.nodeset.drain import drain_causes, pod_steps, slurm_steps
from slinky_operator.nodeset.drain.deadline import Overdue
from slinky_operator.nodeset.health import check_trial, choice, node_states, replacement
from slinky_operator.nodeset.health.check_trial import CheckTrial
from slinky_operator.nodeset.health.choice import HealthChoice
from slinky_operator.nodeset.health.node_states import StateChanges
from slinky_operator.nodeset.health.replacement import ReplacementChoice
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_state import State
from slinky_operator.nodeset.model.pods.pod_facts import Slurmd
from slinky_operator.nodeset.model.revisions.revision_records import RevisionChanges
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement import claim_retention, creation
from slinky_operator.nodeset.placement.claim_retention import Keeping
from slinky_operator.nodeset.placement.creation import Creation
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning import registrations
from slinky_operator.nodeset.planning.registrations import Registrations
from slinky_operator.nodeset.planning.survey import Survey
from slinky_operator.nodeset.slurm_nodes import records
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.records import RecordCleanup
from slinky_operator.slurm.nodes.node_references import References


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions; nothing is decided but the number of pods if the defaults stand."""

    layout: Layout
    victims: tuple[Member, ...] = ()
    """Surplus pods, in the order of deletion."""
    creation: Creation = field(default_factory=Creation)
    causes: Mapping[str, frozenset[Cause]] = field(default_factory=dict)
    """The causes for which the node of each pod is drained, by name of the pod."""
    health: HealthChoice = field(default_factory=HealthChoice)
    """Which nodes are drained for their health, and which wait for that."""
    replacement: ReplacementChoice | None = None
    """Which of them are replaced; None if nothing is decided, and the status stays."""
    shown: StateChanges = StateChanges()  # noqa: RUF009 - frozen
    """What pods are to show of the states of their nodes."""
    checks: CheckTrial = CheckTrial()  # noqa: RUF009 - frozen
    """Which nodes run which health checks."""
    states: Mapping[str, State] = field(default_factory=dict)
    """State of each pod, by name."""
    overdue: Mapping[str, Overdue] = field(default_factory=dict)
    """Nodes whose drain has taken longer than the spec allows, by name."""
    cleanup: RecordCleanup = RecordCleanup()  # noqa: RUF009 - frozen
    named: References = field(default_factory=dict)
    """Nodes without a pod whose records stay in Slurm, and what names them."""
    claims: Keeping = Keeping()  # noqa: RUF009 - frozen
    revisions: RevisionChanges = RevisionChanges()  # noqa: RUF009 - frozen
    skip_drain: bool = False
    """Whether the user has given up the jobs of a NodeSet that is being deleted."""
    waits: Mapping[str, UnregisteredPod] = field(default_factory=dict)
    """Pods that run, have not registered, and are drained for nothing but a repair, by name."""
    registrations: Registrations = Registrations()  # noqa: RUF009 - frozen
    """Where it is recorded that pods have registered."""
    known: frozenset[str] = frozenset()
    """Names of the pods that Slurm knows although it is not recorded on them yet."""

    @property
    def desired(self) -> int | None:
        """Desired number of pods; None if the mode is not supported."""
        return self.layout.desired

    @property
    def waiting_for_slurm(self) -> tuple[str, ...]:
        """Nodes without a pod whose records Slurm itself must release or list first."""
        return (*self.cleanup.busy, *self.cleanup.down, *self.creation.unlisted)


def undecided(seen: Survey) -> Decisions:
    """What is known of a pass in which nothing is decided."""
    return Decisions(Layout(seen.layout.desired), registrations=registrations.keep(seen.snapshot))


def decide(seen: Survey) -> Decisions:
    """Call the rules in order."""
    snapshot, live, layout, now = seen.snapshot, seen.live, seen.layout, seen.now
    readable, deleting = snapshot.slurm.readable, snapshot.nodeset.deleting
    skip_drain = deleting and labels.is_true(snapshot.nodeset.metadata.annotations, labels.ANNOTATION_SKIP_DRAIN)
    victims = drain_causes.scale_in_victims(snapshot, layout, now)
    is_creating = bool(layout.missing) and creation.is_possible(snapshot)
    created = creation.choose(snapshot, layout, live) if is_creating else Creation()
    leaving = {member.name for member in (*victims, *layout.misplaced)}
    desired = layout.desired if layout.desired is not None else len(live)
    health = choice.choose(snapshot, live, desired, leaving, replacement.absent(snapshot, now), now)
    causes = drain_causes.assign_causes(
        snapshot, live, layout, victims, seen.unregistered, created.awaited, health.drained, now
    )
    overdue = slurm_steps.overdue(snapshot, live, causes, now) if readable and not skip_drain else ()
    cleanup = RecordCleanup()
    if readable:
        # Also for a NodeSet whose jobs are given up: Slurm would show them RUNNING for minutes.
        cleanup = records.settle(seen.orphans, snapshot.slurm.jobs, _ended(snapshot), snapshot.slurm.named)
    unregistered = seen.unregistered.items()
    states = {
        member.name: pod_state.classify(member, snapshot.slurm, causes.get(member.name, frozenset()))
        for member in snapshot.members
    }
    shown = node_states.changes(snapshot, live, causes, now)
    return Decisions(
        layout=layout,
        victims=victims,
        creation=created,
        causes=causes,
        health=health,
        replacement=replacement.choose(snapshot, live, health, states, causes, now),
        shown=shown,
        checks=check_trial.choose(snapshot, live) if readable else CheckTrial(),
        states=states,
        overdue={late.pod.node_name: late for late in overdue},
        cleanup=cleanup,
        named={name: snapshot.slurm.named[name] for name in cleanup.named},
        claims=claim_retention.settle(snapshot, layout, {member.name for member in live}, causes),
        revisions=pod_steps.revision_changes(snapshot),
        skip_drain=skip_drain,
        waits={name: pod for name, pod in unregistered if causes.get(name, frozenset()) <= {Cause.REPAIR}},
        registrations=registrations.choose(snapshot, live, layout.missing, len(shown.pods), now),
        known=pod_state.known(snapshot.members, snapshot.owner),
    )


def _ended(snapshot: Snapshot) -> frozenset[str]:
    """Nodes whose pods have ended for certain."""
    return snapshot.ended | {pod.node_name for pod in snapshot.pods if pod.slurmd is Slurmd.ENDED}
