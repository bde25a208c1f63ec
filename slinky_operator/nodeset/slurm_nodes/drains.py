"""The rules of draining: whose a drain is, and when a node holds nothing any more.

The words are Slurm's. A drain is ours if its reason begins with `slurm-operator: `; any other drain is somebody else's,
is never changed and never undone, unless slurmctld itself set it for a bad registration (`registration`). The reason
names what we drain for, the NodeSet, and what a cordoned Node says of itself, so that one call serves all nodes that
are drained for the same causes in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final

from slinky_operator.nodeset.slurm_nodes import identity, registration
from slinky_operator.slurm import drain_reasons
from slurm_client.models import Job, Node

PREFIX: Final = drain_reasons.PREFIX
PARTING: Final = drain_reasons.PARTING

NODE_BUSY: frozenset[str] = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
"""Words in a node's state that mean work. A job that ignores TERM shows IDLE, DRAIN and COMPLETING for half a minute,
its processes still running."""

JOB_OVER: frozenset[str] = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}
)
"""Base states of a job that has ended."""

JOB_IDLE: frozenset[str] = frozenset({"PENDING"})
"""Base states in which a job holds no node."""

JOB_HOLDING: frozenset[str] = frozenset({"COMPLETING", "CONFIGURING", "STAGE_OUT", "STOPPED", "SIGNALING"})
"""Flags by which a job holds its nodes whatever its base state. RUNNING and SUSPENDED do by not being over; so does
every word we do not know."""

_REASON: Final = re.compile(re.escape(PREFIX) + r"(?P<causes>[^(]*) \([^)]*\)(?:: .*)?", re.DOTALL)


class Cause(StrEnum):
    """What a node is drained for, in the words of the reason that Slurm shows.

    A cause is in `TIMED`, `CORDONS` or neither; deadlines, deletions and eviction go by these and by `REMOVAL`.
    `drain.drain_causes` decides when a cause applies, `placement.claim_retention` after which of them claims go.
    """

    SCALE_IN = "scale-in"
    UPDATE = "update"
    CORDON = "cordon"
    """Of the pod, by its annotation."""
    NODE_CORDON = "node-cordon"
    """Of the Kubernetes Node it runs on."""
    NODE_MISMATCH = "node-mismatch"
    """The Kubernetes Node is none any more that the NodeSet asks for."""
    REPAIR = "repair"
    """Its slurmd runs and never registers; the node that Slurm shows is its predecessor's."""
    DELETION = "deletion"
    CLUSTER_DELETION = "cluster deletion"


TIMED: Final = frozenset({Cause.SCALE_IN, Cause.UPDATE, Cause.NODE_MISMATCH, Cause.DELETION, Cause.CLUSTER_DELETION})
"""Causes for which the pod goes whatever runs on its node, in the time that the spec gives it."""

REMOVAL: Final = TIMED | {Cause.REPAIR}
"""Causes for which the pod is deleted once its node is drained; after a cordon it stays."""

CORDONS: Final = frozenset({Cause.CORDON, Cause.NODE_CORDON})
"""Causes that somebody takes back when they are done; the pod stays."""


def reason(causes: Iterable[Cause], owner: str, words: str = "") -> str:
    """The text of our drain.

    Parameters
    ----------
    causes
        At least one.
    owner
        `<namespace>/<nodeset>`.
    words
        What else is to be told, on one line.
    """
    told = f"{PREFIX}{', '.join(sorted(causes))} ({owner})"
    return f"{told}: {words}" if words else told


def causes_in(node: Node) -> frozenset[Cause]:
    """The causes named by a drain of ours; none for any other node. Words of a newer version are left out."""
    if not is_ours(node):
        return frozenset()
    match = _REASON.fullmatch(node.reason)
    words = match["causes"].split(", ") if match else ()
    known = {cause.value: cause for cause in Cause}
    return frozenset(known[word] for word in words if word in known)


def is_ours(node: Node) -> bool:
    """Whether the node is in a drain that we began, and that nobody has taken over since."""
    return node.is_drain and node.reason.startswith(PREFIX)


def is_foreign(node: Node) -> bool:
    """Whether somebody else keeps the node drained; what slurmctld did for a bad registration is nobody's drain."""
    if not node.is_drain or is_ours(node) or node.reason == PARTING:
        return False
    return not registration.is_slurms_drain(node)


def may_be_given_back(node: Node) -> bool:
    """Whether a node may be undrained: the drain is ours, or slurmctld's own for a registration that has been mended.

    While its registration is invalid, Slurm refuses that.
    """
    if registration.is_invalid(node):
        return False
    return is_ours(node) or registration.is_outlived(node)


def is_busy(node: Node) -> bool:
    """Whether the node's state shows work."""
    return not NODE_BUSY.isdisjoint({node.state.base, *node.state.flags})


def holds_nodes(job: Job) -> bool:
    """Whether the nodes named by a job are still in its hands."""
    if not JOB_HOLDING.isdisjoint(job.state.flags):
        return True
    return job.state.base not in JOB_OVER and job.state.base not in JOB_IDLE


def jobs_by_node(jobs: Iterable[Job]) -> dict[str, tuple[Job, ...]]:
    """The jobs that hold nodes, by node; a job over several nodes stands under each."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        if holds_nodes(job):
            for name in job.nodes:
                found.setdefault(name, []).append(job)
    return {name: tuple(held) for name, held in found.items()}


def is_drained(node: Node, jobs: Iterable[Job]) -> bool:
    """Whether the node takes no new job and holds none: only then may its slurmd go.

    Parameters
    ----------
    node
        The record as Slurm gave it just now.
    jobs
        The jobs that hold it, asked for after the record. A suspended job leaves its node IDLE: the state alone does
        not tell.
    """
    return node.is_drain and not is_busy(node) and not tuple(jobs)


def needs_write(node: Node, causes: Collection[Cause]) -> bool:
    """Whether a node that is to be drained for these causes needs a write: nobody drains it, or we do for other ends.

    What slurmctld drained for a registration that has been mended since, nobody drains.

    Slurm notes when a reason was written. A node that was cordoned for a week and is now to go is drained anew, so that
    its jobs have the time that the spec gives them; so is one that was to go and is only cordoned now.
    """
    if not node.is_drain or registration.is_outlived(node):
        return True
    return is_ours(node) and TIMED.isdisjoint(causes) != TIMED.isdisjoint(causes_in(node))


def to_drain(
    wanted: Iterable[str], fresh: Mapping[str, Node | None], owner: str, causes: Collection[Cause]
) -> list[str]:
    """Of the nodes we want drained for these causes, those that need a write now.

    Unknown ones are left out, since a bulk update stops at the first of them; drained ones too, whoever did it, since a
    second drain would replace the reason of the first; and so are records that are none of ours.
    """
    found = []
    for name in wanted:
        node = fresh.get(name)
        if node is not None and needs_write(node, causes) and identity.is_tagged(node, owner):
            found.append(name)
    return found


def to_undrain(wanted: Iterable[str], fresh: Mapping[str, Node | None], owner: str) -> list[str]:
    """Of the nodes we want back, those that still may be given back."""
    found = []
    for name in wanted:
        node = fresh.get(name)
        if node is not None and may_be_given_back(node) and identity.is_tagged(node, owner):
            found.append(name)
    return found
