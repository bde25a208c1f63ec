"""Names of virtual Nodes, what marks them as the operator's, and what each stands for. Pure.

Labels that users select by, and all else that a Node has, are in `nodes`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from slinky_api import labels
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object

PREFIX: Final = "slurm"
TAINT_KEY: Final = "virtual-kubelet.io/provider"
TAINT_VALUE: Final = "wlm"
"""The taint of wlm-operator's virtual nodes, with the effect NoSchedule."""

MAX_NAME: Final = 253
"""Most characters of the name of a Node."""

_NOT_IN_NAMES: Final = re.compile("[^a-z0-9.-]")


@dataclass(frozen=True, slots=True)
class VirtualNode:
    """A Node that stands for a partition."""

    name: str
    uid: str
    """Uid of the Node object."""
    cluster: Key
    """Namespace and name of the Cluster."""
    cluster_uid: str
    partition: str
    """As Slurm writes it."""


def node_name(host: str, partition: str) -> str:
    """Name of the Node of a partition: lower-case, with a dash for each character that a name must not have.

    Two partitions can have the same name; which gets it is left to `nodes`.
    """
    return f"{PREFIX}-{host}-{_NOT_IN_NAMES.sub('-', partition.lower())}".rstrip("-.")[:MAX_NAME]


def virtual_node(obj: Object) -> VirtualNode | None:
    """What a Node stands for; None if it is not a virtual Node of the operator's."""
    about = obj.get("metadata") or {}
    partition = (about.get("labels") or {}).get(labels.LABEL_VIRTUAL_NODE)
    cluster = str((about.get("annotations") or {}).get(labels.ANNOTATION_VIRTUAL_NODE_CLUSTER, "")).split("/")
    if not partition or len(cluster) != len(("namespace", "name", "uid")) or not all(cluster):
        return None
    namespace, name, uid = cluster
    return VirtualNode(str(about["name"]), str(about.get("uid", "")), (namespace, name), uid, str(partition))
