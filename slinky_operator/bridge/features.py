"""What labels of Kubernetes Nodes are called in Slurm, and whose a node of Slurm is. Pure.

A node of the bridge has three kinds of features: the word that partitions name (`spec.jobs.bridge.name`), one for each
label of `featureLabels`, and one mark. The mark says which Cluster has made the node. It is a feature because Slurm
takes no comment with a new node: what is written later is missing if the operator dies in between, and the node would
be nobody's. The mark is made of the uid of the Cluster's namespace and the name of the Cluster: it outlives a Cluster
that is created again, and two Kubernetes clusters with one Slurm do not take each other's nodes for their own.

Words of labels and marks have a dot, which no NodeSet has in its name: a feature of that name would make its nodes.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from slurm_client.models import Node

MARK_PREFIX: Final = "slurm-bridge."
"""How the mark begins."""

DEVICES_PREFIX: Final = "slurm-devices."
"""How the feature begins that says what the devices of a node are (`devices`)."""

LONGEST: Final = 128
"""Characters of a feature."""

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\.[A-Za-z0-9_.-]+", re.ASCII)


def feature_of(label: str, value: str) -> str | None:
    """The feature of a label with a value: zone.eu-1 of topology.kubernetes.io/zone=eu-1.

    None if it would be no feature. A label without a value has none.
    """
    word = f"{label.rpartition('/')[2]}.{value}"
    is_usable = _WORD.fullmatch(word) is not None and len(word) <= LONGEST
    return word if is_usable and not word.startswith((MARK_PREFIX, DEVICES_PREFIX)) else None


def mark_of(namespace_uid: str, cluster: str) -> str:
    """The mark of the nodes of a Cluster.

    Parameters
    ----------
    namespace_uid
        Uid of the Namespace of the Cluster.
    cluster
        Name of the Cluster.
    """
    return MARK_PREFIX + hashlib.sha256(f"{namespace_uid}/{cluster}".encode()).hexdigest()[:12]


def is_bridged(node: Node) -> bool:
    """Whether a node of Slurm is one of some bridge, of this Cluster or another."""
    return node.is_external and any(one.startswith(MARK_PREFIX) for one in node.features)


def is_ours(node: Node, mark: str) -> bool:
    """Whether a node of Slurm was made for the Cluster with this mark: no other is ever changed."""
    return node.is_external and node.is_dynamic and mark in node.features
