"""What a partition has, from the records of Slurm: the capacity of a Node, and limits for its labels. Pure.

Slurm's texts are those of whoever runs it. A state and the names of GRES go into Nodes, and into the status of the
Cluster, so only known states and few valid names are taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, Literal, cast

from slinky_operator.slurm.nodes.gres_amounts import gres_amounts
from slinky_operator.virtual_nodes.node_names import is_resource
from slurm_client.models import Node, Partition

FUTURE = "FUTURE"
"""State of a node that does not exist yet."""

MOST_GRES: Final = 64
"""GRES of a partition, the first by name."""

KnownState = Literal["UP", "DOWN", "DRAIN", "INACTIVE", "UNKNOWN"]
"""States of a partition that are shown; any other word of Slurm is UNKNOWN."""

_STATES: Final = frozenset({"UP", "DOWN", "DRAIN", "INACTIVE"})


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """One partition."""

    name: str
    """As Slurm writes it."""
    state: KnownState | Literal[""] = "UP"
    """Empty if nothing is known but the name."""
    nodes: int = 0
    cpus: int = 0
    memory_mib: int = 0
    gres: Mapping[str, int] = field(default_factory=dict)
    """How many of each GRES its nodes have together, by its name without a type."""
    job_nodes: int = 0
    """Nodes that one job may have."""
    node_cpus: int = 0
    """CPUs that a job may have on the largest node."""
    node_memory_mib: int = 0
    """Memory of the node that has the most."""
    wall_time: int | None = None
    """Seconds that a job may run; None for no limit."""

    @property
    def is_known(self) -> bool:
        """Whether Slurm has shown the partition."""
        return bool(self.state)

    @property
    def is_up(self) -> bool:
        """Whether jobs are taken and started."""
        return self.state == "UP"


def known_state(word: str) -> KnownState:
    """The state of a partition by Slurm's word for it."""
    return cast("KnownState", word) if word in _STATES else "UNKNOWN"


def facts_of_node(node: Node) -> tuple[object, ...]:
    """What a Node is made from; an event of a node that changes nothing else needs no pass."""
    return node.partitions, node.cpus, node.real_memory_mib, node.gres, node.state.base == FUTURE, node.is_external


def facts(partitions: Sequence[Partition], nodes: Iterable[Node]) -> Mapping[str, PartitionFacts]:
    """The facts of every partition, by name."""
    found = {one.name: PartitionFacts(one.name, state=known_state(one.state.base)) for one in partitions}
    limits = {one.name: one for one in partitions}
    totals = {name: _Total() for name in found}
    known: dict[str, tuple[tuple[str, int], ...]] = {}
    for node in nodes:
        if node.state.base == FUTURE or node.is_external:
            # No batch job gets a node without a slurmd.
            continue
        if node.gres not in known:
            known[node.gres] = tuple((name, count) for name, count in gres_amounts(node.gres) if is_resource(name))
        for name in node.partitions:
            if name in totals:
                totals[name].add(node, known[node.gres])
    return {name: totals[name].complete(one, limits[name]) for name, one in found.items()}


class _Total:
    """What the nodes of one partition have together."""

    def __init__(self) -> None:
        self.nodes = self.cpus = self.memory = self.most_cpus = self.most_memory = 0
        self.gres: dict[str, int] = {}

    def add(self, node: Node, gres: Iterable[tuple[str, int]]) -> None:
        self.nodes += 1
        self.cpus += node.cpus
        self.memory += node.real_memory_mib
        self.most_cpus = max(self.most_cpus, node.cpus)
        self.most_memory = max(self.most_memory, node.real_memory_mib)
        for name, count in gres:
            self.gres[name] = self.gres.get(name, 0) + count

    def complete(self, about: PartitionFacts, limits: Partition) -> PartitionFacts:
        return replace(
            about,
            nodes=self.nodes,
            cpus=self.cpus,
            memory_mib=self.memory,
            gres=dict(sorted(self.gres.items())[:MOST_GRES]),
            job_nodes=_least(limits.max_nodes, self.nodes),
            node_cpus=_least(limits.max_cpus_per_node, self.most_cpus),
            node_memory_mib=self.most_memory,
            wall_time=int(limits.max_time.total_seconds()) if isinstance(limits.max_time, timedelta) else None,
        )


def _least(limit: Any, there: int) -> int:
    """A limit of Slurm's, where there is one below what there is."""
    return min(limit, there) if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else there
