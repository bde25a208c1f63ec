"""The daemons of a Cluster, in the order in which they are written and upgraded, and queries over all of them.

A new daemon is a line here, and a module in a part; `tests/unit/cluster/parts/recorder` has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting.mariadb import MARIADB
from slinky_operator.cluster.parts.accounting.slurmdbd import SLURMDBD
from slinky_operator.cluster.parts.slurmctld.manifests import SLURMCTLD
from slinky_operator.cluster.parts.slurmrestd.manifests import SLURMRESTD
from slinky_operator.reconcile.pod_trouble import DaemonTrouble
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm.pod_templates.templates import RefusedFragment

DAEMONS: Final[tuple[Component, ...]] = (MARIADB, SLURMDBD, SLURMCTLD, SLURMRESTD)


@dataclass(frozen=True, slots=True)
class Made:
    """The wanted objects of all daemons."""

    children: tuple[Child, ...] = ()
    refused: tuple[str, ...] = ()
    """Template fields that prevent a workload from being built, and why: it then stays unchanged."""


def wanted(cluster: Cluster) -> Iterator[Component]:
    """Daemons that a Cluster needs."""
    return (one for one in DAEMONS if one.is_wanted(cluster))


def with_releases(cluster: Cluster) -> Iterator[Component]:
    """Those of them that have a release of Slurm: each is called by those after it."""
    return (one for one in wanted(cluster) if one.has_releases)


def make(materials: Materials) -> Made:
    """Build the objects of all daemons: Services before what refers to them."""
    daemons = list(wanted(materials.snapshot.cluster))
    children = [child for one in daemons for child in one.services(materials)]
    refused: list[str] = []
    for one in daemons:
        try:
            children.append(one.workload(materials))
        except RefusedFragment as error:
            refused.append(f"{one.template_field}.{error}")
    return Made(tuple(children), tuple(refused))


def secrets(cluster: Cluster) -> list[str]:
    """Names of the Secrets that daemons of a Cluster need; none for an external Cluster."""
    return [] if cluster.spec.external else [name for one in wanted(cluster) for name in one.secrets(cluster)]


def mounting_keys(cluster: Cluster) -> frozenset[tuple[str, str]]:
    """Kind and name of the workloads whose pods mount keys of a Cluster."""
    return frozenset(one.key(cluster) for one in wanted(cluster) if one.mounts_keys)


def unprepared(snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """Kind and name of the workloads that are not to be written yet."""
    cluster = snapshot.cluster
    return frozenset(one.key(cluster) for one in wanted(cluster) if not one.is_prepared(snapshot))


def all_answering_are_ready(snapshot: Snapshot) -> bool:
    """Whether every daemon that Slurm needs to answer has a ready pod."""
    return all(one.is_ready(snapshot) for one in wanted(snapshot.cluster) if one.condition is not None)


def troubles(snapshot: Snapshot, wall: datetime) -> tuple[DaemonTrouble, ...]:
    """Why daemons do not start, at the time of day `wall`; nothing about pods just created."""
    found = [trouble for one in wanted(snapshot.cluster) for trouble in one.troubles(snapshot, wall)]
    return tuple(dict.fromkeys(found))
