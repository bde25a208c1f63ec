"""What a Cluster wants of Kubernetes Nodes, and why it may not have it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.jobs import Bridge
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.bridge.clusters import is_allowed
from slinky_operator.bridge.devices import DeviceClass, classes_of
from slinky_operator.reconcile.text import named
from slinky_operator.slurm.nodes.bridge_gres import gres_by_resource
from slinky_operator.slurm.releases import Release

Problem: TypeAlias = tuple[Reason, str]

OLDEST: Final = Release(26, 5, 3)
"""Of Slurm: older ones make no such nodes by REST, or cannot use the name of a deleted one again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a Cluster wants."""

    name: str
    """The feature of all nodes of the bridge, and what partitions name."""
    node_labels: Mapping[str, str]
    feature_labels: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Extended resources, with the generic resource that each is."""
    classes: tuple[DeviceClass, ...] = ()
    """Classes of devices that are generic resources."""


def wanted_of(bridge: Bridge) -> Wanted:
    """What the spec wants."""
    return Wanted(bridge.name, bridge.node_labels, bridge.feature_labels, gres_by_resource(bridge), classes_of(bridge))


def refusal_of(cluster: Cluster, allowed: Collection[str]) -> Problem | None:
    """Why a Cluster has no node of the bridge although its spec wants some; those that it has go.

    Parameters
    ----------
    allowed
        `<namespace>/<name>` of the Clusters that may, or `*`.
    """
    bridge = cluster.spec.jobs.bridge
    if bridge is None:
        return None
    if cluster.deleting:
        return Reason.DELETING, "the Cluster is being deleted"
    if not is_allowed((cluster.namespace, cluster.name), allowed):
        return Reason.BRIDGE_NOT_ALLOWED, (
            "the operator's settings do not let this Cluster have Kubernetes Nodes as nodes of Slurm: bridge.clusters "
            f"of its chart must name {cluster.namespace}/{cluster.name}"
        )
    return None


def problems_of_name(name: str, nodesets: Collection[str]) -> Iterable[Problem]:
    """What keeps new nodes from being made: a NodeSet of their name. Those that are there stay.

    Parameters
    ----------
    nodesets
        Names of the NodeSets of the Cluster.
    """
    if name in nodesets:
        yield (
            Reason.NAME_TAKEN,
            (
                f"spec.jobs.bridge.name: NodeSet {name} has this name, and Kubernetes Nodes would be among its own. No "
                "node is made; give one of them another name"
            ),
        )


def problems_of_classes(wanted: Wanted, *, reads_devices: bool) -> Iterable[Problem]:
    """What keeps Slurm from giving devices away that ResourceClaims ask for; nodes are made without them.

    Parameters
    ----------
    reads_devices
        Whether the operator watches ResourceSlices and ResourceClaims.
    """
    if wanted.classes and not reads_devices:
        classes = named([one.name for one in wanted.classes])
        text = (
            f"spec.jobs.bridge.gres: the operator's settings do not let Slurm give away devices of {classes}: "
            "set bridge.devices of its chart, and devices of the chart slurm-bridge"
        )
        yield Reason.DEVICES_NOT_ALLOWED, text


def problems_of_sharing(shared: Mapping[str, Sequence[str]]) -> Iterable[Problem]:
    """What two Slurms do to each other that have the same Kubernetes Nodes; their nodes are made.

    Parameters
    ----------
    shared
        Names of Nodes that other Clusters choose, too, by `<namespace>/<name>` of these.
    """
    for cluster, names in shared.items():
        text = (
            f"Kubernetes Nodes {named(names)} are chosen by Cluster {cluster}, too: each Slurm gives the whole of them "
            "away, so pods with a Node wait there for room. Let nodeLabels of the two Clusters choose different Nodes"
        )
        yield Reason.NODES_SHARED, text


def refusal_of_release(text: str) -> Problem | None:
    """Why this Slurm can have no such nodes; nothing is changed in it.

    Parameters
    ----------
    text
        The release as Slurm shows it.
    """
    release = Release.read(text)
    if release is None or (*release.series, release.patch or 0) >= (*OLDEST.series, OLDEST.patch or 0):
        return None
    return Reason.SLURM_TOO_OLD, (
        f"this is Slurm {release}, and nodes without a slurmd that come and go need Slurm {OLDEST} or "
        "newer: upgrade Slurm, or remove spec.jobs.bridge"
    )
