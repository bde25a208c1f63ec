"""The partition configuration of wlm-operator's red-box, which says what the labels of virtual Nodes are to have. Pure.

A mapping in YAML, by the name of the partition:

.. code-block:: yaml

    debug:
      nodes: 2                   # 0, or auto_nodes: true: what Slurm has
      cpu_per_node: 8
      mem_per_node: 16000        # MiB
      wall_time: 10h
      additional_features:
        - {name: cuda, version: "10.0", quantity: 4}

Its documentation has ``additional_feautres``, which red-box never read; both are read here. An unknown field, or a
value that is no label, makes the whole text invalid, with the line. YAML is read without constructing objects from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from slinky_operator.reconcile.text import cut
from slinky_operator.virtual_nodes.nodes.model.partitions import PartitionFacts

LONGEST_TEXT: Final = 16_384
"""Characters of the text."""

MOST_FEATURES: Final = 32
"""Features of one partition."""

FEATURES: Final = ("additional_features", "additional_feautres")
"""The field, as red-box reads it and as its documentation writes it."""

_NUMBERS: Final = {"nodes": "job_nodes", "cpu_per_node": "node_cpus", "mem_per_node": "node_memory_mib"}
"""By field: what it overrides."""

_AUTOMATIC: Final = frozenset({"auto_nodes", "auto_cpu_per_node", "auto_mem_per_node", "auto_wall_time"})
_FIELDS: Final = frozenset({*_NUMBERS, "wall_time", *_AUTOMATIC, *FEATURES})
_FEATURE_FIELDS: Final = frozenset({"name", "version", "quantity"})

_COUNT: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_DURATION: Final = re.compile(r"0|(?:[0-9]{1,9}h)?(?:[0-9]{1,9}m)?(?:[0-9]{1,9}s)?")
_SECONDS: Final = {"h": 3_600, "m": 60, "s": 1}
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")

_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off", ""})


class PartitionConfigError(Exception):
    """The text cannot be used; the message has field, line and reason."""


@dataclass(frozen=True, slots=True)
class PartitionOverride:
    """What the text says of one partition."""

    job_nodes: int = 0
    """0 for what Slurm has."""
    node_cpus: int = 0
    node_memory_mib: int = 0
    wall_time: int = 0
    """Seconds."""
    features: Mapping[str, str] = field(default_factory=dict)
    """Quantities, by name, or by name and version with an underscore between."""

    def applied_to(self, facts: PartitionFacts) -> PartitionFacts:
        """The facts, with what the text says in place of what Slurm does."""
        return replace(
            facts,
            job_nodes=self.job_nodes or facts.job_nodes,
            node_cpus=self.node_cpus or facts.node_cpus,
            node_memory_mib=self.node_memory_mib or facts.node_memory_mib,
            wall_time=self.wall_time or facts.wall_time,
        )


def parse(text: str) -> Mapping[str, PartitionOverride]:
    """Read the text.

    Raises
    ------
    PartitionConfigError
        It is invalid; nothing of it counts.
    """
    if len(text) > LONGEST_TEXT:
        raise PartitionConfigError(f"has more than {LONGEST_TEXT} characters")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise PartitionConfigError(f"is no YAML: {cut(str(error), 300)}") from error
    except RecursionError as error:
        raise PartitionConfigError("is nested too deeply") from error
    return {} if root is None else {name: _partition(name, value) for name, value in _entries(root, "")}


def _partition(name: str, root: Node) -> PartitionOverride:
    fields = dict(_entries(root, name))
    for key, value in fields.items():
        if key not in _FIELDS:
            raise _error(f"{name}.{key}", value, f"is not a field; known are {', '.join(sorted(_FIELDS))}")
    automatic = {key.removeprefix("auto_") for key in _AUTOMATIC & fields.keys() if _flag(fields[key], f"{name}.{key}")}
    numbers = {ours: _count(fields[key], f"{name}.{key}") for key, ours in _NUMBERS.items() if key in fields}
    wall_time = _seconds(fields["wall_time"], f"{name}.wall_time") if "wall_time" in fields else 0
    features: dict[str, str] = {}
    for key in FEATURES:
        if key in fields:
            features |= _features(fields[key], f"{name}.{key}")
    return PartitionOverride(
        **{ours: 0 if key in automatic else numbers.get(ours, 0) for key, ours in _NUMBERS.items()},
        wall_time=0 if "wall_time" in automatic else wall_time,
        features=features,
    )


def _features(root: Node, where: str) -> dict[str, str]:
    if isinstance(root, ScalarNode) and root.tag.endswith(":null"):
        return {}
    if not isinstance(root, SequenceNode):
        raise _error(where, root, "is no list")
    if len(root.value) > MOST_FEATURES:
        raise _error(where, root, f"has more than {MOST_FEATURES} entries")
    found = {}
    for number, item in enumerate(root.value):
        place = f"{where}[{number}]"
        fields = dict(_entries(item, place))
        for key, value in fields.items():
            if key not in _FEATURE_FIELDS:
                raise _error(f"{place}.{key}", value, "is not a field; known are name, quantity, version")
        if "name" not in fields:
            raise _error(place, item, "has no name")
        version = _text(fields["version"], f"{place}.version") if "version" in fields else ""
        label = f"{_text(fields['name'], f'{place}.name')}{f'_{version}' if version else ''}"
        if not _LABEL.fullmatch(label):
            raise _error(
                f"{place}.name", item, "with its version is no name of a label: letters, digits, '-', '_', '.'"
            )
        found[label] = str(_count(fields["quantity"], f"{place}.quantity")) if "quantity" in fields else "0"
    return found


def _count(root: Node, where: str) -> int:
    text = _text(root, where)
    if not _COUNT.fullmatch(text):
        raise _error(where, root, "is not a whole number from 0 to 999999999")
    return int(text)


def _seconds(root: Node, where: str) -> int:
    text = _text(root, where)
    if not text or not _DURATION.fullmatch(text):
        raise _error(where, root, "is not a duration such as 10h or 1h30m")
    return sum(int(count) * _SECONDS[unit] for count, unit in re.findall(r"([0-9]+)([hms])", text))


def _flag(root: Node, where: str) -> bool:
    text = _text(root, where).lower()
    if text not in _TRUE | _FALSE:
        raise _error(where, root, "is neither true nor false")
    return text in _TRUE


def _text(root: Node, where: str) -> str:
    if not isinstance(root, ScalarNode):
        raise _error(where, root, "is not a text")
    return "" if root.tag.endswith(":null") else str(root.value)


def _entries(root: Node, where: str) -> Iterator[tuple[str, Node]]:
    """Keys and values of a mapping, each key once; an empty value counts as an empty mapping."""
    if isinstance(root, ScalarNode) and root.tag.endswith(":null"):
        return
    if not isinstance(root, MappingNode):
        raise _error(where, root, "is no mapping")
    seen: set[str] = set()
    for key, value in root.value:
        if not isinstance(key, ScalarNode):
            raise _error(where, key, "has a key that is not a text")
        if key.value in seen:
            raise _error(f"{where}.{key.value}" if where else str(key.value), key, "is there twice")
        seen.add(key.value)
        yield str(key.value), value


def _error(where: str, node: Node, reason: str) -> PartitionConfigError:
    line = f"line {node.start_mark.line + 1}"
    return PartitionConfigError(f"{cut(where, 200)} ({line}) {reason}" if where else f"{line} {reason}")
