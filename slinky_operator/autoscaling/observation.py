"""From NodeSets and Slurm's answers to what the rules read."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.autoscaling.rules.rooms import Shape
from slinky_operator.autoscaling.rules.view import ScaledSet, Standing, View
from slinky_operator.slurm.nodes import drain_reasons
from slinky_operator.slurm.nodes.gres_amounts import gres_amounts
from slinky_operator.slurm.pod_templates.shapes import POD_TEMPLATE, misfits
from slinky_operator.slurm.pod_templates.templates import RefusedFragment
from slinky_operator.slurm.slurmd import launch, node_conf, resources
from slurm_client.models import Job, Node, Partition

ALL: Final = "ALL"
"""What stands for all nodes in a partition."""

SCALE_IN: Final = f"{drain_reasons.PREFIX}scale-in"
"""How the reason of a drain begins that is there because replicas are lower."""

UNKNOWN: Final = Shape(cpus=0, memory=0)
"""Of nodes of which nothing is known: no job fits."""


def shape_of_spec(nodeset: NodeSet) -> Shape:
    """What a node of this NodeSet registers with, by its spec; `UNKNOWN` if that is left to the machine."""
    template = nodeset.spec.template or {}
    if any(misfits(template, POD_TEMPLATE)):
        return UNKNOWN
    container = resources.own_container(nodeset)
    started = launch.read(container)
    if started.problems:
        return UNKNOWN
    try:
        given = resources.of(nodeset, [container])
        line = node_conf.node_line(nodeset, given, started.conf, machine=started.is_whole)
    except (RefusedFragment, node_conf.InvalidQuantity, node_conf.UnbalancedQuotes):
        return UNKNOWN
    words = {key.lower(): value.strip('"') for key, value in node_conf.pairs(line).items()}
    cpus = _number(words.get("cpus"))
    memory = _number(words.get("realmemory"))
    if not cpus or not memory:
        return UNKNOWN
    threads = _number(words.get("threadspercore")) or 1
    return Shape(
        cpus=max(0, cpus - _number(words.get("corespeccount")) * threads),
        memory=max(0, memory - _number(words.get("memspeclimit"))),
        features=frozenset(words.get("features", "").split(",")) - {""},
        gres=gres_amounts(words.get("gres", "")),
        threads=threads,
    )


def shape_of_node(node: Node) -> Shape:
    """What a node offers that has registered."""
    return Shape(
        cpus=node.effective_cpus or node.cpus,
        memory=max(0, node.real_memory_mib - node.specialized_memory_mib),
        features=frozenset((*node.features, *node.active_features)),
        gres=gres_amounts(node.gres),
        threads=max(1, node.threads),
    )


def scaled_set(nodeset: NodeSet, shape: Shape, partitions: Collection[str]) -> ScaledSet:
    """A NodeSet as the rules see it; it must have autoscaling."""
    autoscaling = nodeset.spec.autoscaling
    assert autoscaling is not None  # noqa: S101 - the caller has looked
    return ScaledSet(
        name=nodeset.name,
        replicas=nodeset.spec.replicas or 0,
        most=autoscaling.max_replicas,
        shape=shape,
        partitions=frozenset(partitions),
        weight=nodeset.spec.weight if nodeset.spec.weight is not None else 1,
        cost=cost_of(nodeset) or 0.0,
    )


def cost_of(nodeset: NodeSet) -> float | None:
    """The number in the annotation of the cost; None if there is none or it is no number."""
    try:
        cost = float(nodeset.metadata.annotations.get(labels.ANNOTATION_COST, ""))
    except ValueError:
        return None
    return cost if math.isfinite(cost) else None


def ours_of(nodeset: NodeSet) -> int | None:
    """The replicas that autoscaling last set; None if it never has."""
    text = nodeset.metadata.annotations.get(labels.ANNOTATION_AUTOSCALED, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None  # noqa: PLR2004 - 32 bits


def partitions_of(nodeset: str, partitions: Iterable[Partition]) -> frozenset[str]:
    """The partitions that the nodes of a NodeSet are in, or will be."""
    found = set()
    for partition in partitions:
        words = {*partition.node_sets.split(","), *partition.node_list.split(",")}
        if nodeset in words or ALL in words:
            found.add(partition.name)
    return frozenset(found)


def view(
    sets: Sequence[ScaledSet],
    jobs: Sequence[Job],
    nodes: Mapping[str, Node],
    partitions: Iterable[Partition],
    now: datetime,
) -> View:
    """What the rules look at.

    Parameters
    ----------
    sets
        The NodeSets with autoscaling.
    jobs, nodes, partitions
        What Slurm shows.
    now
        Wall-clock time.
    """
    names = frozenset(one.name for one in sets)
    occupied = {name for job in jobs if job.holds_nodes for name in job.nodes}
    return View(
        jobs=jobs,
        # Batch jobs never get a node without a slurmd, so it is no room for those that wait.
        nodes=[
            _standing(node, names, busy=node.is_busy or node.name in occupied)
            for node in nodes.values()
            if not node.is_external
        ],
        sets=sets,
        most_nodes={
            partition.name: partition.max_nodes if isinstance(partition.max_nodes, int) else None
            for partition in partitions
            if partition.is_up
        },
        now=now,
    )


def _standing(node: Node, sets: frozenset[str], *, busy: bool) -> Standing:
    shape = shape_of_node(node)
    used = dict(gres_amounts(node.gres_used))
    return Standing(
        node=node,
        owner=next((feature for feature in node.features if feature in sets), ""),
        leaving=node.is_drain and node.reason.startswith(SCALE_IN),
        shape=shape,
        free=(
            max(0, shape.cpus - node.alloc_cpus),
            max(0, shape.memory - node.alloc_memory_mib),
            tuple((key, max(0, count - used.get(key, 0))) for key, count in shape.gres),
        ),
        busy=busy,
    )


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 12 else 0  # noqa: PLR2004
