"""Which reservations Slurm is to have for the maintenance windows of a Cluster. Pure.

Each period of a window has a reservation of its own, named after its start, so that the next one is there before the
one that is on has ended. It names its nodes: one of all nodes, or of a partition's, is followed by slurmctld only after
seconds, and slurmctld refuses to delete the record of a node in a reservation that has begun (both measured with
26.05). A node that the operator has drained gets no job anyway, so it is left out of one that has begun, and its record
can be replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.maintenance import MaintenanceWindow, Period
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.slurm import naming
from slinky_operator.slurm.nodes.drain_reasons import PREFIX
from slurm_client.models import Node


@dataclass(frozen=True, slots=True)
class WantedReservation:
    """A reservation that Slurm is to have."""

    name: str
    start: datetime
    end: datetime
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class WantedReservations:
    """What a pass has found that Slurm is to have: there may be thousands of nodes."""

    known: tuple[WantedReservation, ...] | None = None
    """`None` if nobody has looked yet."""


def mark(cluster: Cluster) -> str:
    """How the names of a Cluster's reservations end: no other Cluster's do, and no administrator's by chance.

    It outlives a Cluster that is created again: Slurm's state is kept, and with it the reservations that it had.
    """
    return hashlib.sha256(f"{cluster.namespace}/{cluster.name}".encode()).hexdigest()[:8]


def name_of(cluster: Cluster, window: MaintenanceWindow, period: Period) -> str:
    """Name of the reservation for a period of a window."""
    return f"{naming.MAINTENANCE_PREFIX}{window.name}-{period.start.astimezone(UTC):%Y%m%dT%H%M%SZ}-{mark(cluster)}"


def announced(cluster: Cluster, now: datetime) -> list[tuple[MaintenanceWindow, Period]]:
    """Periods that are reserved by now, but for windows that are wrong."""
    return [
        (window, period)
        for window in cluster.spec.maintenance.windows
        if not window.overlaps_itself()
        for period in window.periods(now)
        if period.start - window.announce_before <= now
    ]


def wanted(snapshot: Snapshot, now: datetime) -> tuple[WantedReservation, ...]:
    """The reservations that Slurm is to have now; none without a node."""
    nodes = snapshot.slurm.nodes if snapshot.slurm is not None else {}
    found = []
    for window, period in announced(snapshot.cluster, now):
        is_on = period.is_on(now)
        if is_on and is_released(snapshot, window, period):
            continue
        members = _members(nodes, window, leaving=is_on)
        if members:
            name = name_of(snapshot.cluster, window, period)
            found.append(WantedReservation(name, period.start, period.end, members))
    return tuple(found)


def is_released(snapshot: Snapshot, window: MaintenanceWindow, period: Period) -> bool:
    """Whether a window that is on has nothing left to do, and is to end early.

    It was released before, by the status: then only an update takes its nodes again, and no pod that is not ready.
    """
    if not window.release_early or snapshot.invalid_node_sets:
        return False
    stored = snapshot.cluster.status.maintenance
    shown = next((one for one in (stored.windows if stored is not None else ()) if one.name == window.name), None)
    was = shown is not None and shown.released and shown.start == period.start
    return all(_is_updated(one, ready=not was) for one, _ in snapshot.node_sets if window.has(one.name))


def unknown_node_sets(snapshot: Snapshot, window: MaintenanceWindow) -> list[str]:
    """NodeSets that a window names and the Cluster has not."""
    there = {one.name for one, _ in snapshot.node_sets} | {
        str(obj["metadata"]["name"]) for obj, _ in snapshot.invalid_node_sets
    }
    return sorted(set(window.node_sets) - there)


def _members(nodes: Mapping[str, Node], window: MaintenanceWindow, *, leaving: bool) -> frozenset[str]:
    chosen: Iterable[Node] = nodes.values()
    if window.node_sets:
        # Slurm knows the nodes of a NodeSet by the feature of its name.
        named = frozenset(window.node_sets)
        chosen = (node for node in chosen if not named.isdisjoint(node.features))
    return frozenset(
        node.name for node in chosen if node.state.base != "FUTURE" and not (leaving and _is_drained_by_operator(node))
    )


def _is_drained_by_operator(node: Node) -> bool:
    return node.is_drain and node.reason.startswith(PREFIX)


def _is_updated(node_set: NodeSet, *, ready: bool) -> bool:
    """Whether every pod has the revision of the spec, and is ready if asked, as the NodeSet controller has reported."""
    status = node_set.status
    if status.observed_generation != node_set.metadata.generation:
        return False
    is_complete = not ready or status.replicas == status.desired == status.ready_replicas
    return is_complete and status.updated_replicas == status.replicas
