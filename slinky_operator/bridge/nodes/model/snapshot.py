"""What a pass knows of a Cluster, its Kubernetes Nodes and its Slurm, frozen. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slinky_operator.bridge.nodes.model.hosts import Host
from slinky_operator.bridge.nodes.model.sizes import Size
from slinky_operator.bridge.nodes.model.wishes import Problem
from slurm_client.models import Node


@dataclass(frozen=True, slots=True)
class HostSize:
    """The size of a Kubernetes Node for Slurm."""

    wanted: Size | None
    """What is left beside other pods; None if that is too little."""
    most: Size | None
    """What the machine has, without other pods; None if that is too little."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a pass knows."""

    mark: str
    """Of the Cluster's nodes of the bridge."""
    name: str = ""
    """Their common feature; empty if the Cluster is to have none."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """The chosen Kubernetes Nodes, by name."""
    sizes: Mapping[str, HostSize] = field(default_factory=dict)
    """By name of a host; those that are missing have not been read yet."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """All nodes of Slurm, by name."""
    taken: frozenset[str] = frozenset()
    """Names of sets of nodes: Slurm would take such a name for all nodes in it."""
    port: int = 6817
    """Where slurmctld listens."""
    why: str = ""
    """Why nodes that have no host are to go, where it is not that the host is gone."""
    device_kinds: frozenset[str] = frozenset()
    """Generic resources that are devices of ResourceClaims: a node has them with the feature that says which."""
    problems: tuple[Problem, ...] = ()
    """What keeps new nodes from being made."""
    tried: Mapping[str, Size] = field(default_factory=dict)
    """By name: the size of a node that was asked for when this process made it."""
    differs_for: Mapping[str, float] = field(default_factory=dict)
    """By name: seconds for which the same other size has been wanted."""
    silent_for: Mapping[str, float] = field(default_factory=dict)
    """By name: seconds for which Slurm has taken a node for not responding."""
    awaited: frozenset[str] = frozenset()
    """Names of nodes that were made a moment ago, and that Slurm's list may not have yet."""
