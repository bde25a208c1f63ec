"""The place of a Slurm node in Slurm's topologies, by labels of its Kubernetes Node.

Slurm takes a place as `<topology>:<unit>`, several with commas between them. A unit is a block or a leaf switch of
topology.yaml; in a tree it may be a path from a switch that is there, and Slurm makes the switches that are missing
(`topology_p_add_rm_node` in src/plugins/topology/tree of Slurm 26.05; so do restarts, from the saved places). So racks
may come and go without a change of topology.yaml.

A name of a switch is looked up in the whole tree. Racks of two zones often have the same label, so the name of a switch
is the values of all labels from the top to it, with slashes between them, which no value of a label contains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from slinky_api.v1alpha1.nodeset.topology import NodeTopology


def place(labels: Mapping[str, str], wanted: Sequence[NodeTopology]) -> str:
    """The place of nodes as Slurm takes it; empty if they have none.

    Parameters
    ----------
    labels
        Labels of the Kubernetes Node.
    wanted
        The topologies. One for which a label is missing is left out.
    """
    return ",".join(f"{one.name}:{_unit(labels, one)}" for one in wanted if not missing(labels, one))


def missing(labels: Mapping[str, str], one: NodeTopology) -> tuple[str, ...]:
    """Names of labels that a Node lacks for a place in a topology; one without a value counts as missing."""
    return tuple(key for key in one.node_labels if not labels.get(key))


def _unit(labels: Mapping[str, str], one: NodeTopology) -> str:
    units = list(accumulate((labels[key] for key in one.node_labels), "{}/{}".format))
    return ":".join((one.root, *units)) if one.root is not None else units[-1]
