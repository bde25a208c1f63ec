"""Lines of the spec about partitions, and about nodes outside Kubernetes: their texts, read once for all that asks.

A text that cannot be used stays here with its reason, and a list of nodes that is too long stays without names: who
renders them says so with their field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from slinky_api.v1alpha1.cluster.parts import Partition, StaticNode
from slinky_api.v1alpha1.fields import MAX_ORDINALS
from slinky_operator.slurm.conf.syntax.directives import Words, parse_words
from slurm_client.notation import hostlist

MOST: Final = MAX_ORDINALS
"""Nodes that one Slurm cluster can have."""

REMEMBERED: Final = 8
"""Lists of nodes that are kept apart for the next time. Few: each may stand for all nodes that there can be."""

_NOT_IN_PARTITIONS: Final = ("PartitionName", "Nodes", "NodeName", "NodeSet", "Include")
_NOT_IN_NODES: Final = ("NodeName", "NodeSet", "PartitionName", "Include")


@dataclass(frozen=True, slots=True)
class PartitionConf:
    """A partition of the Cluster's own."""

    name: str
    node_sets: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    words: Words = ()
    """What its line says beside them."""

    @classmethod
    def of(cls, partition: Partition) -> PartitionConf:
        """Read one of the spec."""
        words = partition_words(partition.config)
        return cls(partition.name, tuple(partition.node_sets), tuple(partition.nodes), words)


@dataclass(frozen=True, slots=True)
class StaticNodeConf:
    """A node whose slurmd runs elsewhere, or a host list of such nodes."""

    name: str
    words: Words
    """What its line says beside the name."""

    names: tuple[str, ...] | None = field(repr=False, compare=False)
    """Each of its nodes, as `name` says; None where they are more than Slurm can have, alone or with others."""

    @classmethod
    def of(cls, name: str, words: Words = ()) -> StaticNodeConf:
        """Take the host list apart."""
        return cls(name, words, _expanded(name))


_expanded: Final = lru_cache(maxsize=REMEMBERED)(hostlist.expand)


def partition_words(text: str) -> Words:
    """Read what a user writes about a partition."""
    return parse_words(text, forbidden=_NOT_IN_PARTITIONS)


def node_words(text: str) -> Words:
    """Read what a user writes about nodes outside Kubernetes."""
    return parse_words(text, forbidden=_NOT_IN_NODES)


def read_nodes(nodes: Sequence[StaticNode]) -> tuple[StaticNodeConf, ...]:
    """Read the nodes of the spec, in its order; too many are those that come last by name."""
    total = 0
    found: dict[int, StaticNodeConf] = {}
    for index, one in sorted(enumerate(nodes), key=lambda pair: pair[1].name):
        words = node_words(one.config)
        total += hostlist.size(one.name)
        found[index] = StaticNodeConf.of(one.name, words) if total <= MOST else StaticNodeConf(one.name, words, None)
    return tuple(found[index] for index in range(len(nodes)))
