"""The ConfigMap's text, as sylabs' resource-daemon reads it, to what each Node is to have. Pure.

A mapping in YAML, by the name of the Kubernetes Node:

.. code-block:: yaml

    worker-1:
      slurm_local: http://localhost:8080   # or slurm_ssh: the label integration-type is `local`, or `ssh`
      labels: {nvidia-gpu: a100}
      resources: {gpu: 4}

Each Node that is named gets the label `workload-manager: slurm` too. The addresses themselves are for a daemon that no
longer exists: they are written nowhere.

Unlike that daemon, this is strict: an unknown field, a name given twice, or a value that Kubernetes would refuse makes
the whole text invalid, with the line. Nodes of the YAML tree are read without constructing objects from them, so that
neither tags nor merge keys have an effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from slinky_operator.node_labels.model import LONGEST_NAME, WantedLabels, is_name, is_value
from slinky_operator.reconcile.text import cut

T = TypeVar("T")

LONGEST_TEXT: Final = 262_144
"""Characters of the text: some 3,000 Nodes with four labels each."""

MOST_LABELS: Final = 64
"""Labels of one Node."""

MOST_RESOURCES: Final = 32
"""Extended resources of one Node."""

WORKLOAD_MANAGER: Final = "workload-manager"
INTEGRATION: Final = "integration-type"

_INTEGRATIONS: Final = {"slurm_local": "local", "slurm_ssh": "ssh"}
"""Value of `INTEGRATION` by field; the first one wins."""

_FIELDS: Final = frozenset({*_INTEGRATIONS, "labels", "resources"})

_NODE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_COUNT: Final = re.compile(r"0|[1-9][0-9]{0,11}")


class ConfigError(Exception):
    """The text cannot be used.

    Parameters
    ----------
    field
        Where, as `worker-1.resources.gpu (line 7)`; empty for the text as a whole.
    reason
        What is wrong with it.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


def parse(text: str) -> Mapping[str, WantedLabels]:
    """Read the text; large ones take seconds.

    Returns
    -------
    Mapping
        What is wanted, by the name of the Node.

    Raises
    ------
    ConfigError
        It is invalid; nothing of it counts.
    """
    if len(text) > LONGEST_TEXT:
        raise ConfigError("", f"has more than {LONGEST_TEXT} characters")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigError("", f"is no YAML: {cut(str(error), 300)}") from error
    except RecursionError as error:
        raise ConfigError("", "is nested too deeply") from error
    if root is None:
        return {}
    wanted = {}
    for name, value in _entries(root, ""):
        if not _NODE_NAME.fullmatch(name):
            raise ConfigError(_place(name, value), "is not a name of a Kubernetes Node")
        wanted[name] = _node(name, value)
    return wanted


def _node(name: str, root: Node) -> WantedLabels:
    fields = dict(_entries(root, name))
    for key, value in fields.items():
        if key not in _FIELDS:
            raise ConfigError(_place(f"{name}.{key}", value), f"is not a field; known are {', '.join(sorted(_FIELDS))}")
    own = {WORKLOAD_MANAGER: "slurm"}
    for key, integration in _INTEGRATIONS.items():
        if key in fields and _text(fields[key], f"{name}.{key}"):
            own.setdefault(INTEGRATION, integration)
    return WantedLabels(
        labels={**own, **_values(fields.get("labels"), f"{name}.labels", _label, MOST_LABELS)},
        resources=_values(fields.get("resources"), f"{name}.resources", _count, MOST_RESOURCES),
    )


def _values(root: Node | None, field: str, read: Callable[[Node, str], T], most: int) -> dict[str, T]:
    if root is None:
        return {}
    found = {}
    for name, value in _entries(root, field):
        where = f"{field}.{name}"
        if not is_name(name):
            why = f"is not a name: at most {LONGEST_NAME} letters, digits, '-', '_' and '.', no sign first or last"
            raise ConfigError(_place(where, value), why)
        found[name] = read(value, where)
    if len(found) > most:
        raise ConfigError(_place(field, root), f"has more than {most} entries")
    return found


def _label(root: Node, field: str) -> str:
    text = _text(root, field)
    if not is_value(text):
        told = f"is not a label value: at most {LONGEST_NAME} letters, digits, '-', '_' and '.'"
        raise ConfigError(_place(field, root), told)
    return text


def _count(root: Node, field: str) -> int:
    if not isinstance(root, ScalarNode) or not root.tag.endswith(":int") or not _COUNT.fullmatch(root.value):
        raise ConfigError(_place(field, root), "is not a count: a whole number from 0 to 999999999999, without quotes")
    return int(root.value)


def _text(root: Node, field: str) -> str:
    """A scalar as it is written: `true` and `8` are texts too."""
    if not isinstance(root, ScalarNode):
        raise ConfigError(_place(field, root), "is not a text")
    return "" if root.tag.endswith(":null") else str(root.value)


def _entries(root: Node, field: str) -> Iterator[tuple[str, Node]]:
    """Keys and values of a mapping, each key once; an empty value counts as an empty mapping."""
    if isinstance(root, ScalarNode) and root.tag.endswith(":null"):
        return
    if not isinstance(root, MappingNode):
        raise ConfigError(_place(field, root), "is no mapping")
    seen: set[str] = set()
    for key, value in root.value:
        if not isinstance(key, ScalarNode):
            raise ConfigError(_place(field, key), "has a key that is not a text")
        if key.value in seen:
            raise ConfigError(_place(f"{field}.{key.value}" if field else key.value, key), "is there twice")
        seen.add(key.value)
        yield key.value, value


def _place(field: str, node: Node) -> str:
    line = f"line {node.start_mark.line + 1}"
    return f"{cut(field, 200)} ({line})" if field else line
