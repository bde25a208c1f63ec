"""The rules of draining: who owns a drain, and when a node is empty.

The terms are Slurm's. A drain is the operator's if its reason begins with `slurm-operator: `; any other drain is
somebody else's and is never changed or undone, unless slurmctld itself set it for a bad registration (`registration`).
The reason names the causes, the NodeSet, and the reason of a cordoned Node, so that one call serves all nodes that are
drained with the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final

from slinky_operator.nodeset.slurm_nodes import identity, registration
from slinky_operator.slurm.nodes import drain_reasons
from slurm_client.models import Job, Node

PREFIX: Final = drain_reasons.PREFIX
PARTING: Final = drain_reasons.PARTING

NODE_BUSY: frozenset[str] = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
"""Flags in a node's state that mean work. A job that ignores SIGTERM shows IDLE, DRAIN and COMPLETING for half a
minute, with its processes still running."""

JOB_OVER: frozenset[str] = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}
)
"""Base states of a job that has ended."""

JOB_IDLE: frozenset[str] = frozenset({"PENDING"})
"""Base states in which a job holds no node."""

JOB_HOLDING: frozenset[str] = frozenset({"COMPLETING", "CONFIGURING", "STAGE_OUT", "STOPPED", "SIGNALING"})
"""Flags with which a job holds its nodes whatever its base state. RUNNING and SUSPENDED hold nodes because they are not
over; so does every unknown state."""

_REASON: Final = re.compile(re.escape(PREFIX) + r"(?P<causes>[^(]*) \([^)]*\)(?:: .*)?", re.DOTALL)


_KEEPS_JOBS_AWAY: Final = frozenset({"DRAIN", "NOT_RESPONDING", registration.INVALID})
"""Flags of a node that gets no jobs."""


class Cause(StrEnum):
    """Why a node is drained, as the reason in Slurm shows it.

    A cause is in `TIMED`, `CORDONS` or neither; deadlines, deletions and eviction depend on these and on `REMOVAL`.
    `drain.drain_causes` decides when a cause applies, `health.choice` when `HEALTH` does, `placement.claim_retention`
    which of them delete claims.
    """

    SCALE_IN = "scale-in"
    UPDATE = "update"
    CORDON = "cordon"
    """Of the pod, by its annotation."""
    NODE_CORDON = "node-cordon"
    """Of the Kubernetes Node it runs on."""
    HEALTH = "health"
    """A rule of the NodeSet matches a condition of that Node."""
    DRAIN_REQUEST = "drain-request"
    """NVSentinel asks for that Node to be drained."""
    NODE_MISMATCH = "node-mismatch"
    """The NodeSet no longer matches the Kubernetes Node."""
    REPAIR = "repair"
    """Its slurmd runs and never registers; the record that Slurm shows is its predecessor's."""
    NO_POD = "no pod"
    """It has no pod, and its record stays because jobs or reservations name it."""
    DELETION = "deletion"
    CLUSTER_DELETION = "cluster deletion"


TIMED: Final = frozenset({Cause.SCALE_IN, Cause.UPDATE, Cause.NODE_MISMATCH, Cause.DELETION, Cause.CLUSTER_DELETION})
"""Causes for which the pod is removed whatever runs on its node, within the time that the spec gives."""

REMOVAL: Final = TIMED | {Cause.REPAIR}
"""Causes for which the pod is deleted once its node is drained; after a cordon it stays."""

CORDONS: Final = frozenset({Cause.CORDON, Cause.NODE_CORDON, Cause.HEALTH, Cause.DRAIN_REQUEST})
"""Causes that an administrator reverts, or the end of a Node's trouble; the pod stays."""


def reason(causes: Iterable[Cause], owner: str, words: str = "") -> str:
    """The reason of the operator's drain.

    Parameters
    ----------
    causes
        At least one.
    owner
        `<namespace>/<nodeset>`.
    words
        What else to add, on one line.
    """
    told = f"{PREFIX}{', '.join(sorted(causes))} ({owner})"
    return f"{told}: {words}" if words else told


def causes_in(node: Node) -> frozenset[Cause]:
    """The causes named by a drain of the operator; none for any other node. Causes of a newer version are left out."""
    if not is_ours(node):
        return frozenset()
    match = _REASON.fullmatch(node.reason)
    words = match["causes"].split(", ") if match else ()
    known = {cause.value: cause for cause in Cause}
    return frozenset(known[word] for word in words if word in known)


def is_aside(node: Node) -> bool:
    """Whether a node's state keeps jobs away from it: it is drained, down or silent, or its registration is invalid."""
    return node.state.base == "DOWN" or not _KEEPS_JOBS_AWAY.isdisjoint(node.state.flags)


def is_ours(node: Node) -> bool:
    """Whether the node is in a drain that the operator began, and that nobody has taken over since."""
    return node.is_drain and node.reason.startswith(PREFIX)


def is_foreign(node: Node) -> bool:
    """Whether somebody else keeps the node drained; slurmctld's drain for a bad registration has no owner."""
    if not node.is_drain or is_ours(node) or node.reason == PARTING:
        return False
    return not registration.is_slurms_drain(node)


def may_be_given_back(node: Node) -> bool:
    """Whether a node may be undrained: the drain is the operator's, or slurmctld's for a registration now valid.

    While the registration is invalid, Slurm rejects an undrain.
    """
    if registration.is_invalid(node):
        return False
    return is_ours(node) or registration.is_stale_drain(node)


def is_busy(node: Node) -> bool:
    """Whether the node's state shows work."""
    return node.state.base in NODE_BUSY or not NODE_BUSY.isdisjoint(node.state.flags)


def holds_nodes(job: Job) -> bool:
    """Whether a job still holds the nodes that it names."""
    if not JOB_HOLDING.isdisjoint(job.state.flags):
        return True
    return job.state.base not in JOB_OVER and job.state.base not in JOB_IDLE


def jobs_by_node(jobs: Iterable[Job]) -> dict[str, tuple[Job, ...]]:
    """The jobs that hold nodes, by node; a job on several nodes is listed under each."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        if holds_nodes(job):
            for name in job.nodes:
                found.setdefault(name, []).append(job)
    return {name: tuple(held) for name, held in found.items()}


def is_drained(node: Node, jobs: Iterable[Job]) -> bool:
    """Whether the node accepts no new job and holds none: only then may its slurmd be deleted.

    Parameters
    ----------
    node
        The record from a fresh answer of Slurm.
    jobs
        The jobs that hold it, queried after the record. A suspended job leaves its node IDLE: the state alone is not
        enough.
    """
    return node.is_drain and not is_busy(node) and not tuple(jobs)


def needs_write(node: Node, causes: Collection[Cause]) -> bool:
    """Whether a node to be drained for these causes needs a write: it has no drain, or the operator's for others.

    A node that slurmctld drained for a registration that is valid again counts as not drained.

    Slurm records when a reason was written. A node that was cordoned for a week and is now to be removed is drained
    again, so that its jobs have the time that the spec gives them; so is one that was to be removed and is now only
    cordoned, unless its update goes on afterwards (`drain.slurm_steps`), one that a rule of `health` begins or ends to
    keep drained, and one for which a request comes, whose drain outlives the request (`drain.drain_causes`).
    """
    if not node.is_drain or registration.is_stale_drain(node):
        return True
    if not is_ours(node):
        return False
    before = causes_in(node)
    if Cause.DRAIN_REQUEST in causes and Cause.DRAIN_REQUEST not in before:
        return True
    if TIMED.isdisjoint(causes) and TIMED.isdisjoint(before):
        # The reason is what counts towards the budget of `health`, and no time depends on it here.
        return (Cause.HEALTH in causes) != (Cause.HEALTH in before)
    return TIMED.isdisjoint(causes) != TIMED.isdisjoint(before)


def to_drain(
    wanted: Iterable[str], fresh: Mapping[str, Node | None], owner: str, causes: Collection[Cause]
) -> list[str]:
    """Of the nodes to be drained for these causes, those that need a write now.

    Unknown ones are left out, since a bulk update stops at the first of them; ones that anybody has drained too, since
    a second drain would replace the reason of the first; and so are records of other owners.

    Parameters
    ----------
    wanted
        Names of the nodes.
    fresh
        The records from a fresh answer of Slurm.
    owner
        Tag of the NodeSet.
    causes
        The causes of the drain.
    """
    found = []
    for name in wanted:
        node = fresh.get(name)
        if node is not None and needs_write(node, causes) and identity.is_tagged(node, owner):
            found.append(name)
    return found


def to_undrain(wanted: Iterable[str], fresh: Mapping[str, Node | None], owner: str) -> list[str]:
    """Of the nodes to be undrained, those that may still be undrained.

    Parameters
    ----------
    wanted
        Names of the nodes.
    fresh
        The records from a fresh answer of Slurm.
    owner
        Tag of the NodeSet.
    """
    found = []
    for name in wanted:
        node = fresh.get(name)
        if node is not None and may_be_given_back(node) and identity.is_tagged(node, owner):
            found.append(name)
    return found
