"""Where nodes are in Slurm's topologies, by labels of Kubernetes Nodes: a part of a NodeSet's spec."""

from typing import Annotated, Final

from pydantic import Field

from slinky_api.v1alpha1.common import SET, ApiModel
from slinky_api.v1alpha1.rules import Text, matching

__all__ = ["MAX_LEVELS", "MAX_TOPOLOGIES", "NodeTopology"]

MAX_TOPOLOGIES: Final = 8
"""Topologies of one NodeSet."""

MAX_LEVELS: Final = 8
"""Labels of one topology, which are levels of switches."""

_UNIT: Final = matching(r"[A-Za-z0-9_./-]+", "must be letters, digits, '_', '.', '/' and '-'")
_LABEL: Final = matching(
    r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?",
    "must be the name of a label, for example topology.kubernetes.io/zone",
)


class NodeTopology(ApiModel):
    """The place of nodes in one topology, by labels of their Kubernetes Nodes."""

    name: Annotated[str, Text(_UNIT, at_least=1, at_most=64, by_pattern=True)]
    """Name of the topology in topology.yaml; that of a topology.conf is default."""
    root: Annotated[str, Text(_UNIT, at_least=1, at_most=64, by_pattern=True)] | None = None
    """A switch in a topology.yaml with a tree. Below it Slurm makes a switch for each value of the labels: with the
    labels zone and rack the switches eu-1 and eu-1/r7. Default: none; the block, or the leaf switch, eu-1/r7 must be in
    the file."""
    node_labels: Annotated[
        tuple[Annotated[str, Text(_LABEL, at_least=1, at_most=317, by_pattern=True)], ...],
        Field(min_length=1, max_length=MAX_LEVELS),
        SET,
    ]
    """Labels of Nodes, from the top to the leaf. A node whose Node lacks one of them is in no switch and no block of
    this topology."""
