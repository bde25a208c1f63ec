"""Nodes that get no jobs although the operator does not drain them: which, Slurm's reason, who set it, and when.

Nodes of pods that are starting, or that Slurm does not know, are not included: see `hindrance` and `repairs`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.drain import pod_condition
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.slurm_nodes import drains, registration
from slinky_operator.reconcile.text import cut, stamp
from slurm_client.models import Node

ORDER: Final = (Reason.NODE_DOWN, Reason.INVALID_REGISTRATION, Reason.NODE_NOT_RESPONDING, Reason.FOREIGN_DRAIN)
"""Order of the reasons if there are several."""

_FAILED: Final = re.compile(r"(?i)(prolog|epilog)\b.*\b(?:error|fail)")
"""Slurm's reason for a node on which a program of slurm.conf has failed, or is missing: nobody but a person ends it."""

SPOOL_IS_FULL: Final = "SlurmdSpoolDir is full"
"""Slurm's reason for a node on which a job could not be launched for want of room; nobody but a person ends it."""

_LONGEST: Final = 200
"""Maximum characters of a node's state, of its reason, and of who set it."""


@dataclass(frozen=True, slots=True)
class OutOfService:
    """A node that gets no jobs."""

    reason: Reason
    node: Node

    @property
    def text(self) -> str:
        """Name, state, and Slurm's reason with who set it and when."""
        return f"{self.node.name} ({_state(self.node)}{why(self.node)}{_way_back(self.node)})"


def nodes(snapshot: Snapshot, found: Decisions) -> list[OutOfService]:
    """The nodes of registered pods that are out of service, the worst first."""
    listed = []
    for member in snapshot.aside:
        pod, node = member.pod, member.record
        state = found.states.get(pod.name)
        if pod.deleting or not pod.registered or node is None or isinstance(state, pod_state.Unknown | pod_state.Ended):
            continue
        reason = _reason(node)
        if reason is not None:
            listed.append(OutOfService(reason, node))
    return sorted(listed, key=lambda one: ORDER.index(one.reason))


def why(node: Node) -> str:
    """The reason of a node, as `: <reason>, set by <user> since <time>`; empty without one."""
    text = f": {cut(node.reason, _LONGEST)}" if node.reason else ""
    by = f"set by {cut(node.reason_set_by, _LONGEST)}" if node.reason_set_by else ""
    since = f"since {stamp(node.reason_changed_at)}" if node.reason_changed_at is not None else ""
    tail = " ".join(filter(None, (by, since)))
    return f"{text}, {tail}" if text and tail else text


def _way_back(node: Node) -> str:
    """What ends a drain that Slurm has set because a program failed, or for want of room; empty for any other."""
    if is_spool_full(node):
        return f"; make room there, then scontrol update NodeName={node.name} State=RESUME"
    found = _FAILED.match(node.reason)
    if found is None:
        return ""
    program = found[1].capitalize()
    return f"; correct {program}= or its script, then scontrol update NodeName={node.name} State=RESUME"


def is_spool_full(node: Node) -> bool:
    """Whether Slurm has drained a node because slurmd could not write a job's files."""
    return node.is_drain and node.reason.startswith(SPOOL_IS_FULL)


def names(listed: Sequence[OutOfService]) -> tuple[str, ...]:
    """Names of such nodes."""
    return tuple(one.node.name for one in listed)


def _reason(node: Node) -> Reason | None:
    if node.is_down and (node.is_not_responding or not _may_be_our_down(node)):
        return Reason.NODE_DOWN
    if registration.is_rejected(node) and not drains.is_foreign(node):
        return Reason.INVALID_REGISTRATION
    if node.is_not_responding:
        return Reason.NODE_NOT_RESPONDING
    return Reason.FOREIGN_DRAIN if drains.is_foreign(node) else None


def _may_be_our_down(node: Node) -> bool:
    """Whether the operator may have marked a node down, to requeue its jobs: its drain has a deadline.

    Anybody else who marks a node down gives a reason, which replaces that of the operator's drain.
    """
    return not drains.TIMED.isdisjoint(drains.causes_in(node))


def _state(node: Node) -> str:
    """The state, without the flag that all nodes of a NodeSet have."""
    return cut("+".join([node.state.base, *sorted(node.state.flags - {"DYNAMIC_NORM"})]), _LONGEST)


def rejected(snapshot: Snapshot, found: Decisions) -> list[str]:
    """The nodes of registered pods that are out of use for their registration, each with Slurm's reason."""
    texts = []
    for member in snapshot.aside:
        node = member.record
        if member.pod.deleting or node is None or not registration.is_rejected(node):
            continue
        if not isinstance(found.states.get(member.name), pod_state.Starting | pod_state.Unknown):
            texts.append(_rejected(member, node))
    return texts


def advised(nodes: str) -> str:
    """The same as one text, with what a person can do."""
    return (
        f"Slurm rejects what these nodes registered with, and gives them no jobs: {nodes}. Correct memory, CPUs "
        "and GRES in the spec: the update replaces them. Delete a pod that no update reaches: kubectl delete pod"
    )


def _rejected(member: Member, node: Node) -> str:
    text = f"{node.name}: {cut(node.reason, _LONGEST)}"
    if drains.is_busy(node):
        text += "; jobs run on it"
    before = pod_condition.previous_foreign_reason(member)
    return (
        f"{text}; somebody else had drained it before ({cut(before, _LONGEST)}), so no update replaces it"
        if before
        else text
    )
