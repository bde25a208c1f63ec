"""From what Slurm shows of the nodes on a Kubernetes Node to labels. Pure.

============================  ==========================================================
label                         value
============================  ==========================================================
``node``                      the name of the Slurm node there, if there is one only
``node.<name>``               ``true``
``partition.<name>``          ``true``
``feature.<word>``            ``true``
``gres.<name>``               how many the nodes there have together
``gres.<name>.<type>``        how many of that type
``workload-manager``          ``slurm``
============================  ==========================================================

What is no name of a label (a feature ``k8s/zone=a``) is left out, and so is what exceeds the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from slinky_operator.node_labels.config_format import MOST_LABELS, WORKLOAD_MANAGER
from slinky_operator.node_labels.model import is_name, is_value
from slinky_operator.slurm.nodes.gres_amounts import gres_amounts
from slurm_client.models import Node

YES = "true"


@dataclass(frozen=True, slots=True)
class SlurmLabels:
    """Labels by what Slurm shows."""

    labels: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """What has no label: kind and name of each."""


def facts_of(node: Node) -> tuple[object, ...]:
    """What labels are made from; an event of a node that changes nothing else needs no pass."""
    return node.partitions, node.features, node.gres


def slurm_labels(nodes: Sequence[Node]) -> SlurmLabels:
    """Make labels from the records of the nodes on one Kubernetes Node; none if there are none."""
    if not nodes:
        return SlurmLabels()
    amounts: dict[str, int] = {}
    for node in nodes:
        for name, count in gres_amounts(node.gres):
            amounts[name] = amounts.get(name, 0) + count
    names = sorted({node.name for node in nodes})
    # Names and partitions first: what exceeds the limit is the last.
    wanted = {
        **({"node": names[0]} if len(names) == 1 else {}),
        **{f"node.{name}": YES for name in names},
        **{f"partition.{name}": YES for name in sorted({partition for node in nodes for partition in node.partitions})},
        **{f"gres.{name.replace(':', '.')}": str(count) for name, count in sorted(amounts.items())},
        **{f"feature.{name}": YES for name in sorted({feature for node in nodes for feature in node.features})},
    }
    found, left_out = {WORKLOAD_MANAGER: "slurm"}, []
    for name, value in wanted.items():
        if len(found) < MOST_LABELS and is_name(name) and is_value(value):
            found[name] = value
        else:
            left_out.append(name.replace(".", " ", 1))
    return SlurmLabels(found, tuple(left_out))
