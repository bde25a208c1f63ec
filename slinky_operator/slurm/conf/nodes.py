"""Nodes outside Kubernetes: their lines, and that none has the name of another node.

Slurm ends at a name that stands there twice, and at a node named like a NodeSet. A node named like one that a NodeSet
may have some day is worse, because it is noticed only then: the pod would take over the record of a machine elsewhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from slinky_api.errors import Problem
from slinky_api.v1alpha1.fields import MAX_ORDINALS
from slinky_operator.slurm.conf.directives import Directive, TextProblem, parse_words
from slinky_operator.slurm.conf.inputs import NodeSetConf, StaticNodeConf, base_of
from slinky_operator.slurm.conf.parsed import Parsed
from slurm_client import hostlist

MOST: Final = MAX_ORDINALS
"""Nodes that one Slurm cluster can have."""

_BRACKET: Final = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Names:
    """Names of nodes, one by one."""

    all: AbstractSet[str] = frozenset()
    bases: Mapping[str, str] = field(default_factory=dict)
    """Of names that end in `-` and a number what comes before, and one of the names."""

    def taken_from(self, node_set: NodeSetConf) -> str | None:
        """A name that a NodeSet has itself, or that one of its nodes may have."""
        if node_set.name in self.all:
            return node_set.name
        return self.bases.get(node_set.name) if node_set.ordinals else None


@dataclass(frozen=True, slots=True)
class StaticNodes:
    """What came of them."""

    lines: tuple[str, ...]
    names: Names
    problems: tuple[Problem, ...]


def static_nodes(nodes: Iterable[StaticNodeConf], node_sets: Iterable[NodeSetConf], running: Parsed) -> StaticNodes:
    """Render lines in order of name.

    Parameters
    ----------
    nodes
        As the spec has them.
    node_sets
        All that want to take part.
    running
        What runs: a NodeSet that is in there keeps its names, and a node that is not is refused. Otherwise the NodeSet
        is (`admit`).
    """
    lines: list[str] = []
    problems: list[Problem] = []
    names: set[str] = set()
    bases: dict[str, str] = {}
    settled = [one for one in node_sets if one.name in running.node_sets]
    for index, one in sorted(enumerate(nodes), key=lambda pair: pair[1].name):
        words = parse_words(one.config, forbidden=("NodeName", "NodeSet", "PartitionName", "Include"))
        if isinstance(words, TextProblem):
            problems.append(Problem(f"spec.nodes[{index}].config", words.reason))
            continue
        if _size(one.name) > MOST:
            problems.append(Problem(f"spec.nodes[{index}].name", f"stands for more than {MOST} nodes"))
            continue
        mine = _names(one.name)
        reason = _clash(mine, names, () if one.name in running.nodes else settled)
        if reason is not None:
            problems.append(Problem(f"spec.nodes[{index}].name", reason))
            continue
        names |= mine.all
        bases |= mine.bases
        lines.append(" ".join(map(str, (Directive("NodeName", one.name), *words))))
    return StaticNodes(tuple(lines), Names(names, bases), tuple(problems))


def _clash(mine: Names, others: AbstractSet[str], node_sets: Iterable[NodeSetConf]) -> str | None:
    twice = min(mine.all & others, default=None)
    if twice is not None:
        return f"there is a node {twice} already"
    for one in node_sets:
        found = mine.taken_from(one)
        if found is not None:
            return f"{found} is the name of NodeSet {one.name}, or of a node it may have"
    return None


@lru_cache(maxsize=256)
def _names(expression: str) -> Names:
    found = hostlist.expand(expression)
    return Names(frozenset(found), {base: name for name in found if (base := base_of(name)) is not None})


def _size(expression: str) -> int:
    """How many names an expression stands for at most, without making them."""
    total = 0
    for word in re.split(r",(?![^\[]*\])", expression):
        total += math.prod(map(_choices, _BRACKET.findall(word)))
    return total


def _choices(inner: str) -> int:
    count = 0
    for part in inner.split(","):
        low, _, high = part.partition("-")
        count += int(high) - int(low) + 1 if low.isdecimal() and high.isdecimal() else 1
    return count
