"""Caches that more than one controller reads: their indexes, and what of an object they keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from slinky_api import labels
from slinky_operator.kube.cache.managed_fields import keep_fields_of
from slinky_operator.kube.cache.store import Indexer
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, LOGINSETS, NODESETS
from slinky_operator.slurm.pods import pod_ownership

CLUSTER_INDEX: Final = "cluster"
"""Index of the NodeSet cache over `<namespace>/<cluster>`."""


def by_cluster_name(obj: Object) -> list[str]:
    """Indexer for `CLUSTER_INDEX`; an object without a usable `clusterName` is in no entry."""
    name = (obj.get("spec") or {}).get("clusterName")
    return [f"{obj['metadata'].get('namespace') or ''}/{name}"] if isinstance(name, str) else []


INDEXES_OF_NODESETS: Final[Mapping[str, Indexer]] = {CLUSTER_INDEX: by_cluster_name}
"""Indexes the NodeSet cache must have."""

NODE_INDEX: Final = "node"
"""Index of the pod cache over `<namespace>/<cluster>/<name of the Slurm node>`: pods outlive their Cluster."""

HOST_INDEX: Final = "host"
"""Index of the pod cache over the Kubernetes Node that a pod of a NodeSet is bound to."""

INDEXES_OF_SLURMD_PODS: Final[Mapping[str, Indexer]] = {
    NODE_INDEX: lambda obj: (
        [f"{obj['metadata'].get('namespace') or ''}/{cluster}/{pod_ownership.node_name(obj)}"]
        if (cluster := (obj["metadata"].get("labels") or {}).get(labels.LABEL_CLUSTER_NAME))
        and labels.LABEL_NODESET_UID in obj["metadata"]["labels"]
        else []
    ),
    HOST_INDEX: lambda obj: (
        [host]
        if labels.LABEL_NODESET_UID in (obj["metadata"].get("labels") or {})
        and (host := (obj.get("spec") or {}).get("nodeName"))
        else []
    ),
}
"""Indexes by which pods of NodeSets are found."""

OWNERS: Final = frozenset({CLUSTERS, NODESETS, LOGINSETS})
"""Kinds to which pods of Clusters and objects that the operator writes belong."""

PODS_OF_CLUSTERS: Final = labels.LABEL_CLUSTER_NAME
"""Label selector of pods that belong to a Cluster: daemons and nodes."""

MANAGED: Final = f"{labels.LABEL_APP_MANAGED_BY}={labels.MANAGED_BY}"
"""Label selector of objects that the operator writes."""

KEEP_OUR_FIELDS: Final = keep_fields_of(labels.FIELD_MANAGER)
"""Shortens such objects: of the records of field managers only the operator's stays."""


def node_pruner(*, bridged: bool) -> Callable[[Object], None]:
    """What shortens Kubernetes Nodes; all controllers that cache them must ask for the same.

    Parameters
    ----------
    bridged
        Whether Slurm places pods on some: then it is also kept what Nodes have to give.
    """
    return prune_bridged_node if bridged else prune_node


def prune_bridged_node(obj: Object) -> None:
    """Reduce a Node as `prune_node` does, and keep what it has to give and whether it is being deleted."""
    allocatable = (obj.get("status") or {}).get("allocatable") or {}
    deleted = obj["metadata"].get("deletionTimestamp")
    prune_node(obj)
    obj["status"]["allocatable"] = {
        key: value for key, value in allocatable.items() if key in {"cpu", "memory"} or "/" in key
    }
    if deleted:
        obj["metadata"]["deletionTimestamp"] = deleted


def prune_node(obj: Object) -> None:
    """Reduce a Node, in place, to what controllers read: the rest, above all its images, is most of its size."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    obj["metadata"] = {
        key: metadata[key] for key in ("name", "uid", "resourceVersion", "labels", "annotations") if key in metadata
    }
    obj["spec"] = {key: spec[key] for key in ("unschedulable", "taints") if key in spec}
    kept = ("type", "status", "reason", "message", "lastTransitionTime")
    conditions = [
        {key: condition[key] for key in kept if key in condition} for condition in status.get("conditions") or ()
    ]
    capacity = {
        key: value
        for key, value in (status.get("capacity") or {}).items()
        if key.startswith(labels.KUBERNETES_NODE_PREFIX)
    }
    boot = (status.get("nodeInfo") or {}).get("bootID")
    obj["status"] = {
        "conditions": conditions,
        **({"capacity": capacity} if capacity else {}),
        **({"nodeInfo": {"bootID": boot}} if boot else {}),
    }
