"""Which NodeSets take part in a configuration, and with what.

A NodeSet whose text cannot be used harms nobody else: it is left out, or keeps the lines it has in the running file,
since taking them away would end its jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_api.errors import Problem
from slinky_operator.slurm.conf.inputs import ConfInputs, NodeSetConf
from slinky_operator.slurm.conf.nodes import Names, base_of
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem
from slinky_operator.slurm.conf.syntax.parsed import Line, Parsed, says_default

ALL_PARTITION: Final = "all"
"""Name of the partition over all nodes."""

_HELD_FIELD: Final = "spec.partition.config"
"""The one field of a NodeSet whose text only Slurm can judge."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A NodeSet whose part of the configuration cannot be used."""

    node_set: str
    problem: Problem
    """Field of the NodeSet, and reason."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A NodeSet that takes part."""

    node_set: NodeSetConf
    partition: tuple[Directive, ...] | None = None
    """Further words of its own partition, read; `None` for no partition, or if running lines are kept."""


def admit(inputs: ConfInputs, outside: Names, running: Parsed) -> tuple[list[Admitted], list[Refused]]:
    """Decide which NodeSets take part, and with what.

    Parameters
    ----------
    outside
        Nodes outside Kubernetes.
    running
        The slurm.conf that is in use, read once for all NodeSets.
    """
    admitted: list[Admitted] = []
    refused: list[Refused] = []
    taken = {partition.name.lower() for partition in inputs.partitions} | {ALL_PARTITION}
    default = _default_owner(inputs, running)
    problems = _problems(inputs, outside, running, taken, default)
    for one in inputs.node_sets:
        problem = problems.get(one.name)
        if problem is None:
            admitted.append(Admitted(one, None if isinstance(one.partition, TextProblem) else one.partition))
            continue
        refused.append(Refused(one.name, problem))
        kept = running.by_node_set.get(one.name)
        if kept is None:
            continue
        # A partition of the Cluster's own takes the place of the NodeSet's; its nodes stay known.
        kept = tuple(line for line in kept if line.partition.lower() not in taken)
        if default != one.name:
            kept = tuple(map(_not_default, kept))
        admitted.append(Admitted(NodeSetConf(one.name, gres=one.gres, kept=kept, checks=one.checks)))
    return admitted, refused


def _problems(
    inputs: ConfInputs, outside: Names, running: Parsed, taken: set[str], default: str | None
) -> dict[str, Problem]:
    """Why NodeSets cannot take part as they are, by name."""
    found: dict[str, Problem] = {}
    numbered = {one.name: one for one in inputs.node_sets if one.ordinals}
    earlier: list[NodeSetConf] = []
    for one in sorted(inputs.node_sets, key=lambda one: _precedence(one, running)):
        problem = (
            _bridge_problem(one, inputs)
            or _name_problem(one, numbered, outside, running)
            or _feature_problem(one, earlier, running)
            or _partition_problem(one, taken, default)
        )
        if problem is None and one.name in inputs.held:
            problem = Problem(_HELD_FIELD, inputs.held[one.name])
        if problem is not None:
            found[one.name] = problem
        if problem is None or one.name in running.node_sets:
            # One that is left out has no nodes, and none to come.
            earlier.append(one)
    return found


def _name_problem(
    one: NodeSetConf, numbered: Mapping[str, NodeSetConf], outside: Names, running: Parsed
) -> Problem | None:
    other = numbered.get(base_of(one.name) or "")
    if other is not None and _precedence(other, running) < _precedence(one, running):
        reason = (
            f"a node of NodeSet {other.name}, which existed before, could have this name, and Slurm takes no node "
            "that is named like a NodeSet: give this one another name"
        )
        return Problem("metadata.name", reason)
    node = outside.taken_from(one)
    if node is not None:
        return Problem("metadata.name", f"the Cluster has a node {node} outside Kubernetes (spec.nodes)")
    return None


def _bridge_problem(one: NodeSetConf, inputs: ConfInputs) -> Problem | None:
    """Why a NodeSet stays out that is named like the Kubernetes Nodes that are nodes: they would be among its own."""
    if inputs.bridge is None or one.name != inputs.bridge.name:
        return None
    reason = (
        f"Kubernetes Nodes that are nodes of Slurm are called {one.name} (spec.jobs.bridge.name of the Cluster), and "
        "would be among the nodes of the NodeSet: give one of them another name"
    )
    return Problem("metadata.name", reason)


def _feature_problem(one: NodeSetConf, earlier: Iterable[NodeSetConf], running: Parsed) -> Problem | None:
    """Why a NodeSet whose name is a feature of earlier nodes stays out. One that runs stays: jobs may be in it.

    Parameters
    ----------
    earlier
        The NodeSets that come first and take part.
    """
    if one.name in running.node_sets:
        return None
    for other in earlier:
        if one.name in other.features:
            reason = (
                f"the spec of NodeSet {other.name}, which existed before, names the feature {one.name}, and Slurm "
                "would put its nodes into this NodeSet: give this one another name, or take that feature from the other"
            )
            return Problem("metadata.name", reason)
    return None


def _precedence(one: NodeSetConf, running: Parsed) -> tuple[bool, float, str]:
    """What comes first keeps its name: what Slurm knows, since nodes may be there already, then what is older."""
    since = one.since.timestamp() if one.since is not None else math.inf
    return one.name not in running.node_sets, since, one.name


def _partition_problem(one: NodeSetConf, taken: set[str], default: str | None) -> Problem | None:
    words = one.partition
    if words is None:
        return None
    if isinstance(words, TextProblem):
        return Problem("spec.partition.config", words.reason)
    if one.name.lower() in taken:
        return Problem(
            "spec.partition.enabled", "the Cluster has a partition of this name, which is used; set it to false"
        )
    if says_default(words) and default != one.name:
        return Problem("spec.partition.config", f"Default=YES: partition {default} is the default already")
    return None


def _default_owner(inputs: ConfInputs, running: Parsed) -> str | None:
    """Name of the partition that may say Default=YES: the Cluster's, else the one that has it, else the first."""
    for partition in inputs.partitions:
        if not isinstance(partition.words, TextProblem) and says_default(partition.words):
            return partition.name
    claims = []
    for one in inputs.node_sets:
        if one.partition is None:
            continue
        unusable = isinstance(one.partition, TextProblem)
        if isinstance(one.partition, TextProblem) or says_default(one.partition):
            # Where the new text is unusable, the running one goes on to count.
            if any(says_default(line.words) for line in running.by_node_set.get(one.name, ())):
                return one.name
            claims += [] if unusable else [one.name]
    return claims[0] if claims else None


def _not_default(line: Line) -> Line:
    """The same line without a claim to be the default."""
    return Line(tuple(Directive(word.key, "NO") if word.folded == "default" else word for word in line.words))
