"""Nodes outside Kubernetes: their lines, and that none has the name of another node.

Slurm ends at a name that stands there twice, and at a node named like a NodeSet. A node named like one that a NodeSet
may have some day is worse, because it is noticed only then: the pod would take over the record of a machine elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from slinky_api.errors import Problem
from slinky_operator.slurm.conf.inputs import NodeSetConf
from slinky_operator.slurm.conf.spec_lines import MOST, REMEMBERED, StaticNodeConf
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem
from slinky_operator.slurm.conf.syntax.parsed import FUTURE, FUTURE_PART, Line, Parsed
from slurm_client.notation import hostlist

PER_LINE: Final = 512
"""Nodes in one line where a host list is taken apart."""

_EACH: Final = frozenset({"nodename", "nodeaddr", "nodehostname", "bcastaddr", "port"})
"""Words of a line that are lists as long as that of its names."""

_ORDINAL: Final = re.compile(r"(?P<set>.+)-[0-9]+")
_FUTURE: Final = re.compile(rf"(?P<set>.+){FUTURE_PART}(?P<number>0|[1-9][0-9]{{0,8}})")


@dataclass(frozen=True, slots=True)
class Names:
    """Names of nodes, one by one."""

    all: AbstractSet[str] = frozenset()
    bases: Mapping[str, str] = field(default_factory=dict)
    """Of names that end in `-` and a number what comes before, and one of the names."""

    future: Mapping[str, int] = field(default_factory=dict)
    """Of names as nodes of the future have them, the NodeSets with their lowest number."""

    def taken_from(self, node_set: NodeSetConf) -> str | None:
        """A name that a NodeSet has itself, or that one of its nodes may have."""
        if node_set.name in self.all:
            return node_set.name
        if node_set.ordinals and node_set.name in self.bases:
            return self.bases[node_set.name]
        number = self.future.get(node_set.name, MOST)
        taken = node_set.future is not None and number < node_set.future.count
        return f"{node_set.name}{FUTURE_PART}{number}" if taken else None


@dataclass(frozen=True, slots=True)
class StaticNodes:
    """What came of them."""

    lines: tuple[Line, ...]
    names: Names
    problems: tuple[Problem, ...]


def static_nodes(
    nodes: Iterable[StaticNodeConf],
    node_sets: Iterable[NodeSetConf],
    running: Parsed,
    future: frozenset[str] = frozenset(),
) -> StaticNodes:
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
    future
        Names of nodes that are to be `State=FUTURE`, whatever their state would be.
    """
    lines: list[Line] = []
    problems: list[Problem] = []
    names: set[str] = set()
    bases: dict[str, str] = {}
    waiting: dict[str, int] = {}
    total = 0
    settled = [one for one in node_sets if one.name in running.node_sets]
    for index, one in sorted(enumerate(nodes), key=lambda pair: pair[1].name):
        if isinstance(one.words, TextProblem):
            problems.append(Problem(f"spec.nodes[{index}].config", one.words.reason))
            continue
        total += MOST + 1 if one.names is None else len(one.names)
        if one.names is None or total > MOST:
            words = f"stands for more than {MOST} nodes, alone or with those before it"
            problems.append(Problem(f"spec.nodes[{index}].name", words))
            break
        mine = _names(one.names)
        reason = _clash(mine, names, settled)
        if reason is not None and _runs(mine, running):
            # It was there first, and another line may have it now.
            reason = _clash(mine, names, ())
        if reason is not None:
            problems.append(Problem(f"spec.nodes[{index}].name", reason))
            continue
        names |= mine.all
        bases |= mine.bases
        waiting |= {name: min(number, waiting.get(name, number)) for name, number in mine.future.items()}
        lines += _lines(one.name, one.names, one.words, future & mine.all)
    return StaticNodes(tuple(lines), Names(names, bases, waiting), tuple(problems))


def _runs(mine: Names, running: Parsed) -> bool:
    """Whether all these nodes run, in whatever lines."""
    future = frozenset(running.future.values())
    return mine.all <= {name for key in running.nodes if key not in future for name in hostlist.expand(key)}


def _lines(expression: str, names: Sequence[str], words: tuple[Directive, ...], future: frozenset[str]) -> list[Line]:
    """The line of a host list; several where some of its nodes are of the future (`future`), and others are not."""
    now, later = (Directive("NodeName", expression), *words), Directive("State", FUTURE)
    if not future:
        return [Line(now)]
    then = (*(word for word in now if word.folded != "state"), later)
    waiting = [name in future for name in names]
    if all(waiting):
        return [Line(then)]
    # Taken apart once, for all parts.
    lists = {word.value: hostlist.expand(word.value) for word in words if word.folded in _EACH}
    lists = {value: items for value, items in lists.items() if len(items) == len(names)} | {expression: tuple(names)}
    lines = []
    for is_waiting, mine in ((False, now), (True, then)):
        places = [place for place, one in enumerate(waiting) if one is is_waiting]
        for begin in range(0, len(places), PER_LINE):
            part = places[begin : begin + PER_LINE]
            lines.append(Line(tuple(_part(word, lists, part) for word in mine)))
    return lines


def _part(word: Directive, lists: Mapping[str, Sequence[str]], places: Sequence[int]) -> Directive:
    """Of a word with one item for each node, those of some; any other is left as it is."""
    items = lists.get(word.value) if word.folded in _EACH else None
    return word if items is None else Directive(word.key, ",".join(items[place] for place in places), word.operator)


def _clash(mine: Names, others: AbstractSet[str], node_sets: Iterable[NodeSetConf]) -> str | None:
    twice = min(mine.all & others, default=None)
    if twice is not None:
        return f"there is a node {twice} already"
    for one in node_sets:
        found = mine.taken_from(one)
        if found is not None:
            return f"{found} is the name of NodeSet {one.name}, or of a node it may have"
    return None


@lru_cache(maxsize=REMEMBERED)
def _names(names: tuple[str, ...]) -> Names:
    future: dict[str, int] = {}
    # Most names have no such part, and there may be tens of thousands.
    for match in filter(None, (_FUTURE.fullmatch(name) for name in names if FUTURE_PART in name)):
        number = int(match["number"])
        future[match["set"]] = min(number, future.get(match["set"], number))
    return Names(frozenset(names), {base: name for name in names if (base := base_of(name)) is not None}, future)


def base_of(name: str) -> str | None:
    """What comes before the number of a numbered name: the NodeSet whose node it could be."""
    match = _ORDINAL.fullmatch(name)
    return None if match is None else match["set"]
