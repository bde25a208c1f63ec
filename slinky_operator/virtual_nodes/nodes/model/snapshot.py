"""What a pass knows of a Cluster and its virtual Nodes, frozen. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from slinky_api.conditions import Reason
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.slurm.jobs.job_facts import PartitionJobs
from slinky_operator.virtual_nodes.node_names import virtual_node
from slinky_operator.virtual_nodes.nodes.model.node_object import Availability
from slinky_operator.virtual_nodes.nodes.model.partition_config import PartitionOverride
from slinky_operator.virtual_nodes.nodes.model.partitions import PartitionFacts

Problem: TypeAlias = tuple[Reason, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a Cluster wants, as far as it is allowed."""

    host: str
    partitions: tuple[str, ...] = ()
    """Empty for all."""
    unlimited: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    zone: str | None = None
    overrides: Mapping[str, PartitionOverride] | None = field(default_factory=dict)
    """The partition configuration; None if it is invalid: no Node is made by it, and labels stay."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a pass knows."""

    cluster: Key
    uid: str
    wanted: Wanted | None
    """None if the Cluster is to have no virtual Nodes."""
    why_not: str
    """Why it is to have none: said of Nodes that are left."""
    facts: Mapping[str, PartitionFacts] | None
    """By partition, as of Slurm's last answer; None before the first."""
    availability: Availability
    nodes: Sequence[Object]
    """Those that carry the Cluster's name."""
    taken: Mapping[str, str]
    """By name of a Node that is somebody else's: whose."""
    address: str
    port: int
    problems: tuple[Problem, ...] = ()
    """What is wrong with the spec."""
    jobs: PartitionJobs | None = None
    """Jobs of each partition, by the last list; None before the first."""


def owner_of(obj: Object) -> str:
    """Whose a Node is: that of a Cluster, or one that the operator has not made."""
    node = virtual_node(obj)
    return "not made by this operator" if node is None else f"of Cluster {'/'.join(node.cluster)}"
