"""What Slurm nodes get from their Kubernetes Node: features and a place in the topology.

Features come from an annotation of the Node, the place from another one or from labels (`topology`). Both are written
by REST once the node has registered, since with ordinals the Node is not known before the pod is scheduled, and since
they may change while a slurmd runs. Features of a Node have a prefix of their own, and only features with that prefix
are ever added or removed; those that slurmd registered with, and those that others set, stay. A place by annotation is
never cleared; one by labels goes with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from typing_extensions import override

from slinky_api.v1alpha1.nodeset.topology import NodeTopology
from slinky_operator.nodeset.slurm_nodes import identity, topology
from slinky_operator.reconcile.text import cut
from slurm_client.models import Node

PREFIX: Final = "k8s/"
"""Prefix of the operator's features, the same as Slinky's."""

AGAIN: Final = 10.0
"""Seconds until Slurm is asked again for a place or features that it has not taken."""

LONGEST_PLACE: Final = 200
"""Characters of a place, or of features, in a message: what Slurm says of it, and what to do, come after it."""


class Host(Protocol):
    """A Kubernetes Node."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        ...

    @property
    def features(self) -> tuple[str, ...]:
        """Features, without the prefix."""
        ...

    @property
    def topology(self) -> str:
        """Place in Slurm's topology by annotation; empty if the Node sets none."""
        ...


@dataclass(frozen=True, slots=True)
class Traits:
    """What a Kubernetes Node sets on its Slurm nodes."""

    features: tuple[str, ...] = ()
    """Features, without the prefix."""
    topology: str | None = None
    """Place in Slurm's topology; empty if it has none, and None if a node keeps the one it has."""


@dataclass(frozen=True, slots=True)
class RefusedTraits:
    """What Slurm has not taken of a node a moment ago."""

    wanted: Traits
    why: str = ""
    """What it said, of what and of which nodes; empty if this Slurm knows no such thing, which an Event says."""


def words_of(refused: Mapping[str, RefusedTraits]) -> list[str]:
    """What Slurm has said of nodes whose traits it has not taken."""
    return sorted({one.why for one in refused.values() if one.why})


def traits(host: Host, wanted: Sequence[NodeTopology]) -> Traits:
    """What a Kubernetes Node sets on nodes.

    Parameters
    ----------
    wanted
        The topologies in which the NodeSet has its nodes placed by labels.
    """
    if host.topology or not wanted:
        return Traits(host.features, host.topology or None)
    return Traits(host.features, topology.place(host.labels, wanted))


@dataclass(frozen=True, slots=True)
class Change:
    """What to write to a node; None leaves a value unchanged."""

    features: tuple[str, ...] | None = None
    active: tuple[str, ...] | None = None
    """Active features; Slurm accepts either both lists or none."""
    topology: str | None = None

    @override
    def __str__(self) -> str:
        """The same in words; of a long place, or many features, the beginning."""
        place = f"the place {cut(self.topology, LONGEST_PLACE)}" if self.topology else "no place in a topology"
        features = f"the features {cut(', '.join(self.features), LONGEST_PLACE)}" if self.features else "no features"
        said = (place if self.topology is not None else "", features if self.features is not None else "")
        return " and ".join(filter(None, said))


def missing(node: Node, wanted: Traits) -> Change | None:
    """What a node lacks of its Node's features and topology; None if it lacks nothing."""
    given = tuple(f"{PREFIX}{word}" for word in wanted.features)
    place = wanted.topology if wanted.topology != node.topology else None
    if _ours(node.features) == _ours(node.active_features) == set(given):
        return Change(topology=place) if place is not None else None
    return Change(
        features=(*(word for word in node.features if not word.startswith(PREFIX)), *given),
        active=(*(word for word in node.active_features if not word.startswith(PREFIX)), *given),
        topology=place,
    )


def to_write(wanted: Mapping[str, Traits], fresh: Mapping[str, Node | None], owner: str) -> dict[Change, list[str]]:
    """What to write now, and to which nodes.

    Parameters
    ----------
    wanted
        What each Slurm node is to have.
    fresh
        The records from a fresh answer of Slurm.
    owner
        Tag of the NodeSet: no other records are written to.
    """
    found: dict[Change, list[str]] = {}
    for name, given in wanted.items():
        node = fresh.get(name)
        change = missing(node, given) if node is not None and identity.is_tagged(node, owner) else None
        if change is not None:
            found.setdefault(change, []).append(name)
    return found


def _ours(features: Iterable[str]) -> set[str]:
    return {word for word in features if word.startswith(PREFIX)}
