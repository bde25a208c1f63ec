"""What Slurm nodes get from their Kubernetes Node: features and a place in the topology.

Both come from annotations of the Node and are written by REST once the node has registered, since with ordinals the
Node is not known before the pod is scheduled, and since they may change while a slurmd runs. Features of a Node have a
prefix of their own, and only features with that prefix are ever added or removed; those that slurmd registered with,
and those that others set, stay. A topology is written if the Node sets one, and is never cleared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from slinky_operator.nodeset.slurm_nodes import identity
from slurm_client.models import Node

PREFIX: Final = "k8s/"
"""Prefix of the operator's features, the same as Slinky's."""


class Traits(Protocol):
    """What a Kubernetes Node sets on its Slurm nodes."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features, without the prefix."""
        ...

    @property
    def topology(self) -> str:
        """Place in Slurm's topology; empty if the Node sets none."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """What to write to a node; None leaves a value unchanged."""

    features: tuple[str, ...] | None = None
    active: tuple[str, ...] | None = None
    """Active features; Slurm accepts either both lists or none."""
    topology: str | None = None


def missing(node: Node, host: Traits) -> Change | None:
    """What a node lacks of its Node's features and topology; None if it lacks nothing."""
    given = tuple(f"{PREFIX}{word}" for word in host.features)
    topology = host.topology if host.topology and host.topology != node.topology else None
    if _ours(node.features) == _ours(node.active_features) == set(given):
        return Change(topology=topology) if topology is not None else None
    return Change(
        features=(*(word for word in node.features if not word.startswith(PREFIX)), *given),
        active=(*(word for word in node.active_features if not word.startswith(PREFIX)), *given),
        topology=topology,
    )


def to_write(hosts: Mapping[str, Traits], fresh: Mapping[str, Node | None], owner: str) -> dict[Change, list[str]]:
    """What to write now, and to which nodes.

    Parameters
    ----------
    hosts
        The Node of each Slurm node.
    fresh
        The records from a fresh answer of Slurm.
    owner
        Tag of the NodeSet: no other records are written to.
    """
    found: dict[Change, list[str]] = {}
    for name, host in hosts.items():
        node = fresh.get(name)
        change = missing(node, host) if node is not None and identity.is_tagged(node, owner) else None
        if change is not None:
            found.setdefault(change, []).append(name)
    return found


def _ours(features: Iterable[str]) -> set[str]:
    return {word for word in features if word.startswith(PREFIX)}
