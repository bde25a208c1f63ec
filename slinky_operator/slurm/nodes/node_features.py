"""Features that a NodeSet's nodes register with, wherever its spec says so.

In slurm.conf the nodes of a NodeSet are those with a feature of its name. A feature that is called like another NodeSet
would put a node into its partitions, so the controllers look for it: a NodeSet that names such a feature gets no
further pods, and a new NodeSet under the name of a feature that is in use is left out of the configuration.

What is found is rather too much than too little: a word after `Features=` counts wherever it may reach slurmd.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_api.v1alpha1.nodeset.kind import NodeSet

_SLURMD: Final = "slurmd"
_FEATURES: Final = re.compile(r"""(?i)(?<![a-z])features?=("[^"]*"|'[^']*'|[^\s"']*)""")


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature, and the field that names it."""

    field: str
    word: str


def of(nodeset: NodeSet) -> tuple[Feature, ...]:
    """The features that the user has given to the nodes of a NodeSet."""
    spec = nodeset.spec
    found = [Feature(f"spec.features[{place}]", word) for place, word in enumerate(spec.features)]
    found += [Feature("spec.extraConf", word) for word in _in(spec.extra_conf)]
    found += _of_template(spec.template or {})
    return tuple(dict.fromkeys(found))


def clash(nodeset: str, features: Iterable[Feature], others: Iterable[str]) -> list[str]:
    """Why features may not be called so, with their fields; none for the NodeSet's own name."""
    names = frozenset(others) - {nodeset}
    return [
        f"{feature.field}: feature {feature.word} is the name of a NodeSet of this Cluster, and Slurm puts every node "
        "that has it into that NodeSet; call the feature something else"
        for feature in features
        if feature.word in names
    ]


def _of_template(template: Mapping[str, Any]) -> Iterator[Feature]:
    """Features in what slurmd's container is started with. The shape of a template is the user's."""
    where = "spec.template.spec.containers"
    pod_spec = template.get("spec")
    containers = pod_spec.get("containers") if isinstance(pod_spec, Mapping) else None
    for place, container in enumerate(containers if isinstance(containers, list) else ()):
        if not isinstance(container, Mapping) or container.get("name") != _SLURMD:
            continue
        for key in ("command", "args"):
            for number, text in enumerate(_list(container.get(key))):
                yield from (Feature(f"{where}[{place}].{key}[{number}]", word) for word in _in(text))
        for number, variable in enumerate(_list(container.get("env"))):
            if isinstance(variable, Mapping):
                words = _in(variable.get("value"))
                yield from (Feature(f"{where}[{place}].env[{number}]", word) for word in words)


def _in(text: object) -> Iterator[str]:
    if not isinstance(text, str):
        return
    for match in _FEATURES.finditer(text):
        yield from filter(None, re.split(r"[,&\s]+", match[1].strip("\"'")))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
