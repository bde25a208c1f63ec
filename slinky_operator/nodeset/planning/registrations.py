"""Where it is recorded that pods have registered with Slurm: on each pod, or in the NodeSet's status. Pure.

A few pods are marked at once. While many come, each of them is written to Slurm, to the status and to the pods' own
status by others already: a second write of the operator per pod would take as long as its creation. Then the status
names them (`registered_pods`), in the same write as the counts, and the pods are marked when no pod has come for a
while, no more at a time than states of nodes are written. One pod of each revision is marked at once: what reads the
pods alone, as the trial of a configuration does, knows each kind of slurmd.

Once it is recorded, a node that Slurm no longer knows is a reason to keep its pod (`pod_state`). A pod counts as
registered from the pass after the one that recorded it, wherever that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api.v1alpha1.nodeset.status import RegisteredPods
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods import registered_pods
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership

AGAIN: Final = 5.0
"""Seconds until further pods are marked."""


@dataclass(frozen=True, slots=True)
class Registrations:
    """What is recorded of pods that have registered, and where."""

    marks: tuple[Pod, ...] = ()
    """Pods that are marked now."""
    late: int = 0
    """How many of them are marked when all is quiet: they count as writes of states of nodes."""
    recorded: RegisteredPods | None = None
    """What the status is to say."""
    uids: frozenset[str] = frozenset()
    """Uids of the pods that it names."""
    due_in: float | None = None
    """Seconds until further pods are marked; None if no other pod has to be."""


def keep(snapshot: Snapshot) -> Registrations:
    """Keep what is recorded: for a pass in which nothing is decided."""
    return _recorded([pod for pod in snapshot.pods if pod.unmarked], ())


def choose(snapshot: Snapshot, live: Sequence[Member], missing: int, written: int, now: datetime) -> Registrations:
    """Choose where it is recorded.

    Parameters
    ----------
    snapshot
        The snapshot.
    live
        The pods that are neither being deleted nor ended.
    missing
        How many pods are still to be created.
    written
        How many pods get states of their nodes in this pass.
    now
        The time; timezone-aware.
    """
    new = [member.pod for member in live if not member.pod.registered and member.ownership is RecordOwnership.OURS]
    before = [pod for pod in snapshot.pods if pod.unmarked]
    unmarked = [*new, *(member.pod for member in live if member.pod.unmarked)]
    if not unmarked:
        return _recorded(before, ())
    starting = sum(1 for member in live if not member.pod.registered) - len(new)
    quiet_in = _quiet_in(snapshot, live, now)
    late = 0
    if len(unmarked) + starting + missing <= snapshot.marking.at_once:
        marks = unmarked
    elif quiet_in <= 0:
        marks = unmarked[: max(0, snapshot.state_writes - written)]
        late = len(marks)
    else:
        marks = _one_of_each(snapshot, unmarked)
    found = _recorded([*before, *_without(new, marks)], marks)
    due_in = max(quiet_in, AGAIN) if _without(unmarked, found.marks) else None
    return Registrations(found.marks, late, found.recorded, found.uids, due_in)


def _recorded(pods: Sequence[Pod], marks: Sequence[Pod]) -> Registrations:
    """The record of pods; those that it cannot name are marked."""
    recorded, left = registered_pods.record(pods)
    uids = {pod.uid for pod in pods}.difference(pod.uid for pod in left)
    return Registrations((*marks, *_without(left, marks)), recorded=recorded, uids=frozenset(uids))


def _without(pods: Sequence[Pod], others: Sequence[Pod]) -> list[Pod]:
    uids = {pod.uid for pod in others}
    return [pod for pod in pods if pod.uid not in uids]


def _quiet_in(snapshot: Snapshot, live: Sequence[Member], now: datetime) -> float:
    """Seconds until the youngest pod is old enough."""
    latest = max((member.pod.created_at for member in live if member.pod.created_at is not None), default=now)
    return (latest + snapshot.marking.quiet - now).total_seconds()


def _one_of_each(snapshot: Snapshot, unmarked: Sequence[Pod]) -> list[Pod]:
    """The first pod of each revision of which none is marked."""
    marked = {pod.revision for pod in snapshot.pods if pod.registered and not pod.unmarked and not pod.deleting}
    first: dict[str, Pod] = {}
    for pod in unmarked:
        if pod.revision not in marked:
            _ = first.setdefault(pod.revision, pod)
    return list(first.values())
