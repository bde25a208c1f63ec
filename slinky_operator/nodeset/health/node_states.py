"""The states of a node as conditions of its pod, for programs that ask Kubernetes and not Slurm.

One condition `SlurmNodeState<State>` with the status True for each state that a node has, as Slinky's operator writes
them and NVIDIA's fleet tools read them. One that it has no more becomes False, and is not removed: where another
operator had written the same condition, it would come back. These tools take a node that is drained and shows no work
for empty, and may delete its pod. So a drained node counts as allocated here until it is proven to hold no job: a
suspended job does not show in the state of its node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api.v1alpha1.nodeset.health import PodConditions
from slinky_operator.nodeset.drain import drain_causes
from slinky_operator.nodeset.model import kubernetes_nodes
from slinky_operator.nodeset.model.actions import PodStates
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import NODE_STATE, DrainCondition
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slurm_client.models import Node

WORDS: Final[Mapping[str, str]] = {
    "ALLOCATED": "Allocated",
    "COMPLETING": "Completing",
    "DOWN": "Down",
    "DRAIN": "Drain",
    "ERROR": "Error",
    "FAIL": "Fail",
    "FUTURE": "Future",
    "IDLE": "Idle",
    "INVALID": "Invalid",
    "INVALID_REG": "InvalidReg",
    "MAINTENANCE": "Maintenance",
    "MIXED": "Mixed",
    "NOT_RESPONDING": "NotResponding",
    "UNDRAIN": "Undrain",
    "UNKNOWN": "Unknown",
}
"""States and flags of Slurm that are shown, and their conditions without the prefix."""

BUSY: Final = frozenset({"Allocated", "Mixed", "Completing"})

USUAL: Final = BUSY | {"Idle"}
"""What changes with every job: shown where somebody waits for it, unless all is asked for."""

REASON: Final = "SlurmState"
"""Reason of these conditions: those with another are somebody else's."""

UNPROVEN: Final = "drained, and not yet proven to hold no job"

OLDEST_ANSWER: Final = 30.0
"""Seconds that answers about jobs may be old: a drain that is older began before what they say."""

States = Mapping[str, DrainCondition]
"""Conditions by their type."""


@dataclass(frozen=True, slots=True)
class StateChanges:
    """What to write on pods of a NodeSet in one pass."""

    pods: tuple[PodStates, ...] = ()
    is_late: bool = False
    """Whether anything is left to be looked at later."""


def wanted(member: Member, *, all_states: bool, kept_free: bool, jobs_known: bool, now: datetime) -> States | None:
    """The conditions that a pod is to have; None if nothing is known of its node.

    Parameters
    ----------
    member
        The pod, with its node and the jobs there.
    all_states
        Whether what changes with every job is shown for every node.
    kept_free
        Whether the Node or the pod is cordoned, or the operator is about to drain the node.
    jobs_known
        Whether jobs were queried.
    now
        The time; timezone-aware.
    """
    node = member.record
    if node is None or member.ownership is not RecordOwnership.OURS:
        return None
    words = [WORDS[one] for one in (node.state.base, *sorted(node.state.flags)) if one in WORDS]
    if not (all_states or kept_free or node.is_drain):
        words = [word for word in words if word not in USUAL]
    reason = kubernetes_nodes.one_line(node.reason)
    found = {f"{NODE_STATE}{word}": DrainCondition("True", REASON, "" if word in USUAL else reason) for word in words}
    if node.is_drain and BUSY.isdisjoint(words) and not _is_proven(member, node, jobs_known=jobs_known, now=now):
        found[f"{NODE_STATE}Allocated"] = DrainCondition("True", REASON, UNPROVEN)
    return found


def is_open(member: Member) -> bool:
    """Whether jobs must be queried to prove that a drained node holds none: its pod does not say so yet."""
    node = member.record
    return node is not None and node.is_drain and not drains.is_busy(node) and not _say_empty(member.pod.node_states)


def changes(snapshot: Snapshot, live: Sequence[Member], causes: Mapping[str, object], now: datetime) -> StateChanges:
    """What to write on pods, within the budget of this pass.

    Parameters
    ----------
    snapshot
        The snapshot.
    live
        The pods that are neither being deleted nor ended.
    causes
        The causes for which the operator drains the node of each pod, by name of the pod.
    now
        The time; timezone-aware.
    """
    mode = snapshot.nodeset.spec.health.pod_conditions if snapshot.nodeset.spec.health is not None else None
    due: list[PodStates] = []
    is_late = False
    for member in live:
        if mode is None and not member.pod.node_states:
            continue
        shown = {kind: one for kind, one in member.pod.node_states.items() if kind in _TYPES}
        if mode is None:
            # Off, or switched off: those of others are left alone.
            states: States | None = {}
            shown = {kind: one for kind, one in shown.items() if one.reason == REASON}
        elif snapshot.slurm.readable:
            states = wanted(
                member,
                all_states=mode is PodConditions.ALL,
                kept_free=bool(causes.get(member.name) or drain_causes.cordons(snapshot, member)),
                jobs_known=snapshot.slurm.jobs is not None,
                now=now,
            )
        else:
            states = None
        if states is None:
            continue
        is_late |= any(one.message == UNPROVEN for one in states.values())
        full = {**dict.fromkeys(shown, DrainCondition("False", REASON, "")), **states}
        if full != shown:
            due.append(PodStates(member.pod, full))
    # What changes with every job can wait.
    due.sort(key=lambda one: (_holding(one.states) | _holding(one.pod.node_states) <= _USUAL, one.pod.name))
    # What says that a node may go must not outlive that.
    is_urgent = [_say_empty(one.pod.node_states) and not _say_empty(one.states) for one in due]
    urgent = [one for one, first in zip(due, is_urgent, strict=True) if first]
    others = [one for one, first in zip(due, is_urgent, strict=True) if not first]
    left = max(0, snapshot.state_writes)
    return StateChanges((*urgent, *others[:left]), is_late or len(others) > left)


_TYPES: Final = frozenset(f"{NODE_STATE}{word}" for word in WORDS.values())

_USUAL: Final = frozenset(f"{NODE_STATE}{word}" for word in USUAL)


def _holding(states: States) -> set[str]:
    """Types of the conditions that are True."""
    return {kind for kind, one in states.items() if one.status == "True"}


def _say_empty(states: States) -> bool:
    """Whether conditions say that a node is drained and holds no job."""
    shown = {kind.removeprefix(NODE_STATE) for kind in _holding(states)}
    return "Drain" in shown and BUSY.isdisjoint(shown)


def _is_proven(member: Member, node: Node, *, jobs_known: bool, now: datetime) -> bool:
    """Whether a drained node that shows no work holds no job; no job begins there any more."""
    if not jobs_known:
        return _say_empty(member.pod.node_states)
    since = node.reason_changed_at
    is_old = since is None or (now - since).total_seconds() > OLDEST_ANSWER
    return not member.jobs and (is_old or _say_empty(member.pod.node_states))
