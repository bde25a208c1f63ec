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

PROVIDER: Final = "slurm://"
"""Scheme of the provider's id: cloud controllers leave Nodes of a provider that they do not know."""

GPU: Final = "nvidia.com/gpu"
"""The extended resource that stands for the GRES gpu, of whatever maker, so that usual manifests fit."""

GRES_PREFIX: Final = "slinky.slurm.net/gres-"
"""Prefix of the extended resources that stand for other GRES, followed by their names."""

MAX_NAME: Final = 253
"""Most characters of the name of a Node."""

MAX_RESOURCE: Final = 63
"""Most characters of the name of a resource after its prefix."""

_NOT_IN_NAMES: Final = re.compile("[^a-z0-9.-]")
_RESOURCE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")


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
    """What a Node stands for; None if it is not a virtual Node of the operator's.

    Labels and annotations are easily put on a real Node; its provider's id cannot be changed.
    """
    about = obj.get("metadata") or {}
    partition = (about.get("labels") or {}).get(labels.LABEL_VIRTUAL_NODE)
    cluster = str((about.get("annotations") or {}).get(labels.ANNOTATION_VIRTUAL_NODE_CLUSTER, "")).split("/")
    if (obj.get("spec") or {}).get("providerID") != f"{PROVIDER}{about.get('name')}":
        return None
    if not partition or len(cluster) != len(("namespace", "name", "uid")) or not all(cluster):
        return None
    namespace, name, uid = cluster
    return VirtualNode(str(about["name"]), str(about.get("uid", "")), (namespace, name), uid, str(partition))


def extended_resource(gres: str) -> str:
    """Name of the extended resource that stands for a GRES, which is named without its type."""
    return GPU if gres == "gpu" else GRES_PREFIX + gres


def is_resource(gres: str) -> bool:
    """Whether the name of a GRES can be in that of an extended resource; one with a type cannot."""
    name = extended_resource(gres).partition("/")[2]
    return len(name) <= MAX_RESOURCE and _RESOURCE.fullmatch(name) is not None


def gres_of(resource: str) -> str | None:
    """Name of the GRES that an extended resource stands for; None if it stands for none."""
    if resource == GPU:
        return "gpu"
    return resource.removeprefix(GRES_PREFIX) if resource.startswith(GRES_PREFIX) else None
