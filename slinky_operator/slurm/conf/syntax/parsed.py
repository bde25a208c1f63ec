"""A slurm.conf that the operator has rendered, read again: which partitions, NodeSets, nodes and keys it has.

What runs is known by its file alone: the rules about what a change would end, the lines a refused NodeSet
keeps, and the look at which keys need a restart all start from here. A file is read once (`ConfFiles`), and what was
read is handed on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

from typing_extensions import override

from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem, logical_lines, parse_lines
from slinky_operator.slurm.conf.syntax.set_states import SetState, told_by

_PARTITION: Final = "partitionname"
_NODE_SET: Final = "nodeset"
_NODE: Final = "nodename"
_FILE: Final = "slurm.conf"

FUTURE: Final = "FUTURE"
"""State of nodes that may exist some day (`future_nodes`)."""

FUTURE_PART: Final = "_future_"
"""What is between the name of their NodeSet and their numbers."""

FUTURE_NODES: Final = re.compile(rf"(?P<set>[a-z0-9](?:[-a-z0-9]*[a-z0-9])?){FUTURE_PART}\[0-(?P<last>[0-9]{{1,5}})\]")
"""Host list of those of a NodeSet."""

_REMEMBERED_UP_TO: Final = 16_384
"""Characters: what 16 such files are read to takes few megabytes."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of words."""

    words: tuple[Directive, ...]

    @classmethod
    def of(cls, **words: str) -> Self:
        """Make a line of keys and values, in this order."""
        return cls(tuple(Directive(key, value) for key, value in words.items()))

    @classmethod
    def of_partition(cls, name: str, nodes: str, words: Iterable[Directive]) -> Self:
        """Make the line of a partition, which is up unless the words say otherwise: Slurm would take it for down."""
        given = tuple(words)
        state = () if any(word.folded == "state" for word in given) else (Directive("State", "UP"),)
        where = (Directive("Nodes", nodes),) if nodes else ()
        return cls((Directive("PartitionName", name), *where, *given, *state))

    @property
    def partition(self) -> str:
        """Name of the partition that the line declares; empty for any other line."""
        return self.words[0].value if self.words and self.words[0].folded == _PARTITION else ""

    def get(self, key: str, default: str = "") -> str:
        """Value of a key, compared as Slurm does; the last one where there are several."""
        found = [word.value for word in self.words if word.folded == key.lower()]
        return found[-1] if found else default

    def replaced(self, **values: str) -> Line:
        """The same line with other values; keys it does not have come last."""
        wanted = {key.lower(): Directive(key, value) for key, value in values.items()}
        words = [wanted.pop(word.folded, word) for word in self.words]
        return Line((*words, *wanted.values()))

    def stated(self, states: Mapping[str, str]) -> Line:
        """The same line, of a partition with the state that is given for it."""
        state = states.get(self.partition)
        return self if state is None else self.replaced(State=state)

    @property
    def state(self) -> str:
        """State in the line, as Slurm reads it; empty where a node's line names none."""
        return self.get("State", "UP" if self.partition else "").upper()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Items of `Nodes=`: names of NodeSets, hostlists, `ALL`."""
        return split_nodes(self.get("Nodes"))

    @override
    def __str__(self) -> str:
        return " ".join(map(str, self.words))


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a slurm.conf says."""

    partitions: Mapping[str, Line] = field(default_factory=dict)
    """By name, in the order of the file."""

    node_sets: Mapping[str, Line] = field(default_factory=dict)
    nodes: Mapping[str, Line] = field(default_factory=dict)
    """Lines `NodeName=`, by name or hostlist as written."""

    future: Mapping[str, str] = field(default_factory=dict)
    """Host lists of nodes of the future, by NodeSet; each has a line in `nodes`."""

    by_node_set: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    """All lines of each NodeSet: its own, that of its nodes of the future, and that of its partition."""

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of all other keys, in lower case: several where a key occurs several times."""

    set_states: Mapping[str, SetState] = field(default_factory=dict)
    """States of partitions that an administrator has set, of which its comments tell."""

    @classmethod
    def of(cls, lines: Iterable[Line], comments: Iterable[str] = ()) -> Self:
        """Sort lines by what they declare."""
        found: dict[str, dict[str, Line]] = {_PARTITION: {}, _NODE_SET: {}, _NODE: {}}
        keys: dict[str, list[str]] = {}
        for line in lines:
            first = line.words[0]
            if first.folded in found:
                found[first.folded][first.value] = line
                continue
            for word in line.words:
                keys.setdefault(word.folded, []).append(word.value)
        partitions, node_sets, nodes = found[_PARTITION], found[_NODE_SET], found[_NODE]
        values = {key: tuple(given) for key, given in keys.items()}
        future = dict(_future(nodes, node_sets))
        by_node_set = {
            name: tuple(filter(None, (line, nodes.get(future.get(name, "")), _own_partition(name, partitions))))
            for name, line in node_sets.items()
        }
        return cls(partitions, node_sets, nodes, future, by_node_set, values, told_by(comments))

    def value(self, key: str, default: str = "") -> str:
        """Value of a key of the whole cluster; the last one where there are several."""
        return (self.keys.get(key.lower()) or (default,))[-1]

    @property
    def words_for_node_sets(self) -> frozenset[str]:
        """What stands for NodeSets in ``Nodes=`` of a partition: their names, and ``ALL``."""
        return frozenset({*self.node_sets, "ALL"})


def _future(nodes: Mapping[str, Line], node_sets: Collection[str]) -> Iterator[tuple[str, str]]:
    """NodeSets with the host lists of their nodes of the future."""
    for expression, line in nodes.items():
        match = FUTURE_NODES.fullmatch(expression)
        # A node outside Kubernetes may be called so where no NodeSet is.
        if match is not None and match["set"] in node_sets and line.state == FUTURE:
            yield match["set"], expression


def _own_partition(node_set: str, partitions: Mapping[str, Line]) -> Line | None:
    """The partition of a NodeSet's name over exactly its nodes."""
    line = partitions.get(node_set)
    return line if line is not None and line.get("Nodes") == node_set else None


def parse(text: str) -> Parsed:
    """Read a slurm.conf; a line that is none of Slurm's is passed over, since the operator writes no such line.

    A pass reads the same few files in each of its rounds: what was read last is remembered, unless it is large.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_UP_TO else _read(text)


def _read(text: str) -> Parsed:
    read = (parse_lines(joined) for _, joined in logical_lines(text))
    lines = (Line(words) for words in read if words and not isinstance(words, TextProblem))
    return Parsed.of(lines, (line for line in text.split("\n") if line.startswith("#")))


_remembered: Final = lru_cache(maxsize=16)(_read)


@dataclass(frozen=True, slots=True)
class ConfFiles:
    """A configuration: its files by name, and what its slurm.conf says."""

    files: Mapping[str, str] = field(default_factory=dict)
    lines: Parsed = field(default_factory=Parsed)

    @classmethod
    def read(cls, files: Mapping[str, str]) -> ConfFiles:
        """Read the slurm.conf among these files; there may be none."""
        return ConfFiles(files, parse(files.get(_FILE, "")))


def says_default(words: Iterable[Directive]) -> bool:
    """Whether the words about a partition make it the default."""
    return any(word.folded == "default" and word.value.lower() in {"yes", "true", "1"} for word in words)


def split_nodes(text: str) -> tuple[str, ...]:
    """Items of a list of nodes, at the commas that are in no bracket."""
    items: list[str] = []
    depth = 0
    item = ""
    for character in text:
        if character == "," and not depth:
            items.append(item)
            item = ""
            continue
        depth += (character == "[") - (character == "]")
        item += character
    return tuple(one for one in (*items, item) if one)
