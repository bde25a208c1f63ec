"""Which nodes are drained for their health, by Kubernetes Nodes and by checks, and which have to wait for that.

No more than `spec.health.maxUnhealthy` nodes are drained for this at a time: a check that is wrong everywhere costs
that many nodes, and the rest serve. Those that are drained already stay; then those that have been bad for longest
come first. What somebody else drains, or what is drained for another cause, needs no drain of ours and does not count.

The reason in Slurm says what a node is drained for, and is all that is remembered: an operator that starts reads there
which nodes the budget holds. A drain ends when its Node is proven well; while the Node is not known it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset.health import NodeConditionRule
from slinky_operator.nodeset.drain import drain_causes, pod_condition
from slinky_operator.nodeset.health import checks, rules
from slinky_operator.nodeset.health.rules import Verdict
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership

QUIET: Final = timedelta(hours=1)
"""Between two starts of a machine that does not start again and again."""


@dataclass(frozen=True, slots=True)
class WaitingNode:
    """A bad node, which the budget does not let drain."""

    pod: str
    node: str
    """In Slurm."""
    host: str
    """Its Kubernetes Node; empty if that is not known."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class HealthChoice:
    """Which nodes are drained for the health of their Nodes."""

    drained: Mapping[str, str] = field(default_factory=dict)
    """By name of the pod what the Node says, on one line; empty if the Node is not bad any more, or not known."""
    bad: Mapping[str, Verdict] = field(default_factory=dict)
    """Of those that are drained already, by name of the pod: what is said of a Node that is bad still."""
    waiting: tuple[WaitingNode, ...] = ()
    """Those beyond the budget, in the order in which they will be drained."""
    held: int = 0
    """Nodes whose reason in Slurm says that they are drained for this."""
    budget: int | None = None
    """How many there may be; None if nothing is decided."""
    wake_up: float | None = None
    """Seconds until another choice may be due; None if only an event changes it."""


def choose(
    snapshot: Snapshot,
    live: Sequence[Member],
    desired: int,
    leaving: Collection[str],
    absent: Collection[str],
    now: datetime,
) -> HealthChoice:
    """Choose the nodes that are drained for the health of their Nodes.

    Parameters
    ----------
    snapshot
        The snapshot; Slurm must be readable in it, or nothing is chosen.
    live
        The pods that are neither being deleted nor ended.
    desired
        The desired number of pods, for a budget in per cent.
    leaving
        Names of pods that are removed for good: their nodes are drained for that.
    absent
        Names of pods that are being replaced and whose nodes are not drained meanwhile (`replacement`): each has its
        place in the budget.
    now
        The time; timezone-aware.
    """
    health = snapshot.nodeset.spec.health
    if health is None or not snapshot.slurm.readable:
        return HealthChoice()
    table, budget = health.rules(), health.budget(desired)
    draining = checks.draining(health.checks)
    held = sum(1 for member in snapshot.members if Cause.HEALTH in member.drained_for)
    drained: dict[str, str] = {}
    bad: dict[str, Verdict] = {}
    candidates: list[WaitingNode] = []
    due: list[float] = []
    for member in live:
        pod = member.pod
        host = snapshot.host_of(pod)
        is_held = Cause.HEALTH in member.drained_for
        if pod.name in leaving or not _is_up(member):
            continue
        has_started = is_held and host is not None and _is_older_than_boot(member, host)
        clear_seconds = 0 if has_started else health.clear_seconds
        of_host = _of_host(host, table, clear_seconds, now)
        checked = checks.judge(member, draining, snapshot.checks, clear_seconds, now)
        verdict = checks.both(of_host, checked)
        later = verdict.well_in if is_held else verdict.bad_in
        if later is not None:
            due.append(later)
        if is_held and not verdict.is_well:
            drained[pod.name] = verdict.words
            if of_host.matches:
                bad[pod.name] = of_host
        elif verdict.matches and not is_held and _is_open(snapshot, member):
            candidates.append(WaitingNode(pod.name, pod.node_name, host.name if host is not None else "", verdict))
    candidates.sort(key=lambda one: (one.verdict.since or rules.EVER, one.node))
    back, others = _split(candidates, absent, budget - held)
    room = max(0, budget - held - len(absent))
    drained |= {one.pod: one.verdict.words for one in (*back, *others[:room])}
    return HealthChoice(drained, bad, tuple(others[room:]), held, budget, min(due, default=None))


def _split(
    candidates: Sequence[WaitingNode], absent: Collection[str], room: int
) -> tuple[list[WaitingNode], list[WaitingNode]]:
    """Those that have a place in the budget, as their pods were replaced, and the others.

    A budget that has become smaller may have no room for the places in it.
    """
    back = [one for one in candidates if one.pod in absent][: max(0, room)]
    return back, [one for one in candidates if one not in back]


def _is_older_than_boot(member: Member, host: KubernetesNode) -> bool:
    """Whether a Node's machine has started since its node was drained, and does not start again and again.

    What its conditions say now they say of the machine as it is: nobody has to wait whether that lasts.
    """
    node, booted = member.record, host.booted_at
    if node is None or node.reason_changed_at is None or booted is None or node.reason_changed_at >= booted:
        return False
    return host.booted_before is None or booted - host.booted_before >= QUIET


def _of_host(
    host: KubernetesNode | None, table: Mapping[str, NodeConditionRule], clear_seconds: int, now: datetime
) -> Verdict:
    """What the rules say of a Node: of one that is not known nothing, so that a drain stands if there are rules."""
    if host is None or not table:
        return Verdict(is_well=not table)
    return rules.judge(host, table, clear_seconds, now)


def _is_up(member: Member) -> bool:
    """Whether a node may have jobs: its slurmd has registered."""
    if member.ownership is RecordOwnership.PREDECESSOR:
        return member.pod.registered
    return member.ownership is RecordOwnership.OURS


def _is_open(snapshot: Snapshot, member: Member) -> bool:
    """Whether a drain for its health would be a node's only one: nobody else drains it, and no other cause does."""
    node = member.record
    if (
        node is None
        or member.ownership is not RecordOwnership.OURS
        or drains.is_foreign(node)
        or pod_condition.previous_foreign_reason(member)
    ):
        return False
    return Cause.UPDATE not in member.drained_for and not drain_causes.cordons(snapshot, member)
