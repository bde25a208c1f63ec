"""Which pods are created now, and why others must wait.

A name that belongs to somebody else is never used: that of another NodeSet's pod, of a pod of no NodeSet, of a record
that no pod of this NodeSet created. With one pod per Node the next Node is used instead; with ordinals there is no
other name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.actions import CreatePods
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.model.revisions import revision_records
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.slurm_nodes import identity, records


@dataclass(slots=True)
class Creation:
    """The pods to create, and what blocks the others."""

    pods: list[CreatePods] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)
    """Names of nodes whose pods must wait, and why; including conflicts."""
    conflicts: dict[str, str] = field(default_factory=dict)
    """Those of them whose name belongs to somebody else."""
    unlisted: list[str] = field(default_factory=list)
    """Those whose pod has gone so recently that the cached nodes may lack its record: a job may be on it."""
    awaited: int = 0
    """How many are created now, or as soon as their names are free."""
    held: int = 0
    """How many wait until fewer others are starting."""


def is_possible(snapshot: Snapshot) -> bool:
    """Whether any pod may be created at all."""
    cluster = snapshot.cluster
    return (
        not snapshot.nodeset.deleting
        and cluster.exists
        and not cluster.deleting
        and cluster.listed
        and snapshot.slurm.readable
        and not snapshot.revision.problems
    )


def choose(snapshot: Snapshot, layout: Layout, live: Sequence[Member]) -> Creation:
    """Choose what to create now.

    Parameters
    ----------
    snapshot, layout
        The snapshot, and the slots of pods.
    live
        The pods that are neither being deleted nor ended; those that have not registered count as starting.
    """
    found = Creation(conflicts=dict(layout.conflicts), blocked=dict(layout.conflicts))
    nodeset, left = snapshot.nodeset, layout.missing
    standing = {pod.name: pod.name for pod in snapshot.pods}
    # The ordinal may have been written with another number of digits before.
    numbered: dict[int | None, str] = {pod.ordinal: pod.name for pod in snapshot.pods if pod.ordinal is not None}
    starting = sum(1 for one in live if not one.pod.registered)
    room = max(0, (nodeset.spec.max_concurrent_startup or snapshot.max_startup) - starting)
    create: dict[str, list[PodSlot]] = {}
    for place in layout.free:
        if left <= 0:
            break
        if place.node in snapshot.stripped:
            left -= 1
            found.blocked[place.node] = f"pod {place.pod} is there and has lost its labels"
            continue
        conflict = _whose(place, snapshot)
        if conflict is not None:
            found.blocked[place.node] = found.conflicts[place.node] = conflict
            continue
        left -= 1
        if place.node in snapshot.cluster.leaving:
            found.blocked[place.node] = (
                f"NodeSet {place.node} has been deleted, and slurmctld's configuration still has its name: the "
                "Cluster's condition ConfigApplied says why"
            )
            found.awaited += 1
            continue
        ending = standing.get(place.pod) or numbered.get(place.ordinal)
        if ending is not None:
            found.blocked[place.node] = f"pod {ending} is still ending"
            found.awaited += 1
            continue
        record = snapshot.slurm.nodes.get(place.node)
        if record is None and place.node in snapshot.unlisted:
            found.unlisted.append(place.node)
            found.blocked[place.node] = f"Slurm is asked for node {place.node}: its pod has just gone"
            found.awaited += 1
            continue
        why = claims.why_blocked(snapshot.claims, place.pod) or records.why_blocked(
            record, snapshot.slurm.jobs, snapshot.owner, snapshot.slurm.named
        )
        if why is not None:
            found.blocked[place.node] = why
            found.awaited += 1
        elif room > 0:
            revision = revision_records.target(_number(place, live), nodeset, snapshot.revision)
            create.setdefault(revision, []).append(place)
            found.awaited += 1
            room -= 1
        else:
            found.held += 1
    found.pods = [CreatePods(tuple(wanted), revision) for revision, wanted in create.items()]
    return found


def _whose(place: PodSlot, snapshot: Snapshot) -> str | None:
    """The owner of a name that somebody else owns; None if it is free, or this NodeSet's."""
    if place.pod in snapshot.foreign_pods:
        return snapshot.foreign_pods[place.pod]
    neighbour = snapshot.names_of_other_nodesets.get(place.node)
    if neighbour is not None:
        return f"node {place.node} is that of NodeSet {neighbour}"
    record = snapshot.slurm.nodes.get(place.node)
    if record is not None and not identity.is_tagged(record, snapshot.owner):
        return records.why_blocked(record, snapshot.slurm.jobs, snapshot.owner)
    return None


def _number(place: PodSlot, live: Sequence[Member]) -> int:
    """Its ordinal, or its pod's future place in the order of names."""
    return place.ordinal if place.ordinal is not None else sum(1 for one in live if one.name < place.pod)
