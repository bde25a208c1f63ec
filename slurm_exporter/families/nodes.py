"""Nodes by state, and the CPUs, memory and GRES on them: of the cluster, of each partition, of each node.

A node is counted once in the families of the cluster and once in each of its partitions. CPUs, memory and GRES are
`allocated`, `idle` on a node that takes jobs, or `unavailable`: free on a node that takes none. The three add up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from slurm_client.models import Node
from slurm_client.notation import gres as notation
from slurm_exporter.samples import words
from slurm_exporter.samples.budget import KINDS, LONGEST, PARTITIONS, Kinds, Names, cut
from slurm_exporter.samples.family import Family, Labels, Samples, gauge
from slurm_exporter.samples.shared import shared

MIB: Final = 1024 * 1024

KINDS_OF_NODE: Final = 16
"""Most kinds of GRES of one node, the first that it names."""

KINDS_OF_PARTITION: Final = 64
"""Most kinds of GRES of one partition."""

_STATES: Final = "nodes/: state"
NODES = gauge("nodes", "Nodes by base state; the states add up to all nodes.", _STATES, ["state"])
NODES_FLAGGED = gauge(
    "nodes_flagged", "Nodes by flag beside the base state, such as drain; a node may have several.", _STATES, ["flag"]
)
NODES_USABLE = gauge("nodes_usable", "Nodes on which slurmctld may start a job that names no reservation.", _STATES)
NODES_DRAIN = gauge(
    "nodes_drain", "Nodes that take no new job because of a drain: still with work, or without.", _STATES, ["phase"]
)
CPUS = gauge(
    "cpus", "CPUs: allocated, idle, or unavailable on nodes that take no job.", "nodes/: cpus, alloc_cpus", ["state"]
)
MEMORY = gauge(
    "memory_bytes",
    "Memory: allocated, idle, or unavailable on nodes that take no job.",
    "nodes/: real_memory, alloc_memory",
    ["state"],
    "bytes",
)
GRES = gauge(
    "gres",
    "Generic resources such as GPUs: allocated, idle, or unavailable on nodes that take no job.",
    "nodes/: gres, gres_used",
    ["gres", "type", "state"],
)
PARTITION_NODES = gauge("partition_nodes", "Nodes of a partition by base state.", _STATES, ["partition", "state"])
PARTITION_NODES_USABLE = gauge(
    "partition_nodes_usable", "Nodes of a partition on which a job may be started.", _STATES, ["partition"]
)
PARTITION_CPUS = gauge(
    "partition_cpus", "CPUs on the nodes of a partition.", "nodes/: cpus, alloc_cpus", ["partition", "state"]
)
PARTITION_MEMORY = gauge(
    "partition_memory_bytes",
    "Memory on the nodes of a partition.",
    "nodes/: real_memory, alloc_memory",
    ["partition", "state"],
    "bytes",
)
PARTITION_GRES = gauge(
    "partition_gres",
    "Generic resources on the nodes of a partition.",
    "nodes/: gres, gres_used",
    ["partition", "gres", "type", "state"],
)
NODE_STATE = gauge("node_state", "1 for the base state that a node has.", _STATES, ["node", "state"])
NODE_USABLE = gauge("node_usable", "Whether a job may be started on the node.", _STATES, ["node"])
NODE_INFO = gauge(
    "node_info",
    "1, with what seldom changes.",
    "nodes/: version, architecture, address",
    ["node", "version", "architecture"],
)
NODE_CPUS = gauge("node_cpus", "CPUs of a node.", "nodes/: cpus", ["node"])
NODE_CPUS_ALLOCATED = gauge("node_cpus_allocated", "CPUs of a node that jobs have.", "nodes/: alloc_cpus", ["node"])
NODE_LOAD = gauge("node_load", "Load average of a node, as its slurmd says.", "nodes/: cpu_load", ["node"])
NODE_MEMORY = gauge("node_memory_bytes", "Memory of a node.", "nodes/: real_memory", ["node"], "bytes")
NODE_MEMORY_ALLOCATED = gauge(
    "node_memory_allocated_bytes", "Memory of a node that jobs have.", "nodes/: alloc_memory", ["node"], "bytes"
)
NODE_MEMORY_FREE = gauge(
    "node_memory_free_bytes", "Memory that the node's own kernel calls free.", "nodes/: free_mem", ["node"], "bytes"
)
NODE_GRES = gauge("node_gres", "Generic resources of a node.", "nodes/: gres", ["node", "gres", "type"])
NODE_GRES_ALLOCATED = gauge(
    "node_gres_allocated", "Generic resources of a node that jobs have.", "nodes/: gres_used", ["node", "gres", "type"]
)
NODE_BOOT = gauge(
    "node_boot_time_seconds", "When the node booted, since 1970.", "nodes/: boot_time", ["node"], "seconds"
)

CLUSTER_FAMILIES: Final = (NODES, NODES_FLAGGED, NODES_USABLE, NODES_DRAIN, CPUS, MEMORY, GRES)
PARTITION_FAMILIES: Final = (PARTITION_NODES, PARTITION_NODES_USABLE, PARTITION_CPUS, PARTITION_MEMORY, PARTITION_GRES)
NODE_FAMILIES: Final = (
    NODE_STATE, NODE_USABLE, NODE_INFO, NODE_CPUS, NODE_CPUS_ALLOCATED, NODE_LOAD, NODE_MEMORY, NODE_MEMORY_ALLOCATED,
    NODE_MEMORY_FREE, NODE_GRES, NODE_GRES_ALLOCATED, NODE_BOOT,
)  # fmt: skip
ALL: Final = (*CLUSTER_FAMILIES, *PARTITION_FAMILIES, *NODE_FAMILIES)

STATES: Final = ("allocated", "down", "idle", "mixed")
"""States that have a sample even where no node is in them: an alert on zero needs a zero."""

Amounts = Mapping[tuple[str, str], int]
"""Count by name and type of a generic resource."""


@shared(4096)
def gres_counts(text: str) -> Amounts:
    """Read Slurm's notation of generic resources; what cannot be read counts as nothing."""
    counts: dict[tuple[str, str], int] = {}
    try:
        found = notation.parse(text)
    except ValueError:
        return counts
    for each in found:
        key = (each.name, each.type)
        counts[key] = counts.get(key, 0) + each.count
    return counts


def gres_of(node: Node) -> dict[tuple[str, str], tuple[int, int]]:
    """How many a node has of each kind of generic resources, and how many of them jobs have."""
    used = gres_counts(node.gres_used)
    kinds = Kinds(KINDS_OF_NODE)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for kind, count in gres_counts(node.gres).items():
        total, allocated = found.get(own := kinds.of(kind), (0, 0))
        found[own] = total + count, allocated + used.get(kind, 0)
    return found


def states(total: float, allocated: float, *, usable: bool) -> dict[str, float]:
    """Split an amount into allocated, idle and unavailable."""
    rest = max(0.0, total - allocated)
    return {"allocated": allocated, "idle": rest if usable else 0.0, "unavailable": 0.0 if usable else rest}


class NodeSums:
    """Sums over nodes, for the cluster or for one partition.

    Parameters
    ----------
    kinds
        Most kinds of GRES; the rest of them are added up.
    """

    def __init__(self, kinds: int = KINDS) -> None:
        self._kinds = Kinds(kinds)
        self.count = 0
        self.usable = 0
        self.by_state: defaultdict[str, int] = defaultdict(int, dict.fromkeys(STATES, 0))
        self.by_flag: defaultdict[str, int] = defaultdict(int)
        self.drain = {"draining": 0, "drained": 0}
        self.cpus: defaultdict[str, float] = defaultdict(float)
        self.memory: defaultdict[str, float] = defaultdict(float)
        self.gres: defaultdict[Labels, float] = defaultdict(float)

    def add(self, node: Node, gres: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        """Count a node with what :func:`gres_of` says of it."""
        usable = node.is_usable
        self.count += 1
        self.usable += usable
        self.by_state[words.base(node.state).lower()] += 1
        for flag in words.flags(node.state):
            self.by_flag[flag.lower()] += 1
        if node.is_drain:
            self.drain["drained" if node.is_drained else "draining"] += 1
        for state, value in states(node.cpus, node.alloc_cpus, usable=usable).items():
            self.cpus[state] += value
        for state, value in states(node.real_memory_mib * MIB, node.alloc_memory_mib * MIB, usable=usable).items():
            self.memory[state] += value
        for kind, (total, allocated) in gres.items():
            own = self._kinds.of(kind)
            for state, value in states(total, allocated, usable=usable).items():
                self.gres[*own, state] += value


class NodeTally:
    """Sums over all nodes, and samples of single ones.

    Parameters
    ----------
    single_nodes
        Most nodes that have samples of their own; further ones, by name, are only in the sums.
    names
        Partitions that have samples of their own. A node counts once in the others, however many it is in.
    """

    def __init__(self, single_nodes: int, names: Names | None = None) -> None:
        self._budget = single_nodes
        self._names = names or Names(PARTITIONS)
        self.cluster = NodeSums()
        self.partitions: defaultdict[str, NodeSums] = defaultdict(partial(NodeSums, KINDS_OF_PARTITION))
        self.left_out = 0
        self._single: dict[Family, dict[Labels, float]] = {family: {} for family in NODE_FAMILIES}

    def add(self, node: Node) -> None:
        """Count a node; give nodes in the order of their names."""
        gres = gres_of(node)
        self.cluster.add(node, gres)
        for partition in self._names.each(node.partitions):
            self.partitions[partition].add(node, gres)
        if self.cluster.count - self.left_out > self._budget or len(node.name) > LONGEST:
            self.left_out += 1
            return
        self._add_single(node, gres)

    def _add_single(self, node: Node, gres: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        name = node.name
        single = self._single
        single[NODE_STATE][name, words.base(node.state).lower()] = 1
        single[NODE_USABLE][name,] = node.is_usable
        single[NODE_INFO][name, cut(node.version), cut(node.architecture)] = 1
        single[NODE_CPUS][name,] = node.cpus
        single[NODE_CPUS_ALLOCATED][name,] = node.alloc_cpus
        single[NODE_MEMORY][name,] = node.real_memory_mib * MIB
        single[NODE_MEMORY_ALLOCATED][name,] = node.alloc_memory_mib * MIB
        if node.cpu_load is not None:
            single[NODE_LOAD][name,] = node.cpu_load
        if node.free_memory_mib is not None:
            single[NODE_MEMORY_FREE][name,] = node.free_memory_mib * MIB
        if node.boot_time is not None:
            single[NODE_BOOT][name,] = node.boot_time.timestamp()
        for kind, (total, allocated) in gres.items():
            single[NODE_GRES][name, *kind] = total
            single[NODE_GRES_ALLOCATED][name, *kind] = allocated

    def samples(self) -> Iterator[Samples]:
        """All families of nodes."""
        whole = self.cluster
        yield Samples(NODES, {(state,): count for state, count in whole.by_state.items()})
        yield Samples(NODES_FLAGGED, {(flag,): count for flag, count in whole.by_flag.items()})
        yield Samples(NODES_USABLE, {(): whole.usable})
        yield Samples(NODES_DRAIN, {(phase,): count for phase, count in whole.drain.items()})
        yield Samples(CPUS, {(state,): value for state, value in whole.cpus.items()})
        yield Samples(MEMORY, {(state,): value for state, value in whole.memory.items()})
        yield Samples(GRES, whole.gres)
        parts = self.partitions.items()
        yield Samples(PARTITION_NODES, {(name, state): n for name, sums in parts for state, n in sums.by_state.items()})
        yield Samples(PARTITION_NODES_USABLE, {(name,): sums.usable for name, sums in parts})
        yield Samples(PARTITION_CPUS, {(name, state): n for name, sums in parts for state, n in sums.cpus.items()})
        yield Samples(PARTITION_MEMORY, {(name, state): n for name, sums in parts for state, n in sums.memory.items()})
        yield Samples(PARTITION_GRES, {(name, *key): n for name, sums in parts for key, n in sums.gres.items()})
        for family, values in self._single.items():
            yield Samples(family, values)
