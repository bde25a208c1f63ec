"""Names and objects of the simulated world, and how objects are copied."""

from __future__ import annotations

import marshal
from datetime import datetime
from typing import Any

NAMESPACE = "ns"
NODESET = "a"
CLUSTER = "c"
CLUSTER_UID = "cluster-uid"
TAG = f"{NAMESPACE}/{NODESET}"
HOSTS = ("host-0", "host-1", "host-2")
"""Kubernetes Nodes; the first is never cordoned, so that there is always room."""
SELECTED = {"slurm": "yes"}
"""Labels of the Nodes that are to have a pod each."""
RACK = "rack"
"""Label of Nodes that is their place in the topology, where the spec says so."""
NEIGHBOUR = f"{NAMESPACE}/a-b"
"""Tag of somebody else's nodes; ours is how it begins."""

NEIGHBOUR_UID = "uid-of-a-b"

REGISTERED = "nodeset.slinky.slurm.net/Registered"
PROTECT_LABEL = "nodeset.slinky.slurm.net/pod-protect"
UID_LABEL = "nodeset.slinky.slurm.net/uid"
NAME_LABEL = "nodeset.slinky.slurm.net/name"
CLUSTER_LABEL = "cluster.slinky.slurm.net/name"
RETENTION = "nodeset.slinky.slurm.net/claim-retention"
OURS = "slurm-operator: "
PATIENCE = 60
"""Seconds that a slurmd has to register: few, so that there are histories in which that is too long."""
SICK = "Bad"
"""Type of the condition of a Node for which rules drain."""

BAD = "bad"
"""An image that no kubelet can start."""

MISFIT = "misfit"
"""An image whose slurmds register with less than their own spec says."""
LOW = "Low RealMemory (reported:256 < 100.00% of configured:999999)"
"""What Slurm says of that."""

Object = dict[str, Any]


def revision_of(obj: Object) -> str:
    return str((obj["metadata"].get("labels") or {}).get("controller-revision-hash"))


def is_selected(host: Object) -> bool:
    """Whether a Node is to have a pod."""
    return bool(host["metadata"]["labels"].items() >= SELECTED.items())


def owners_of(obj: Object) -> list[Object]:
    return list(obj["metadata"].get("ownerReferences") or ())


def clone(obj: Object) -> Object:
    """A copy of an object as it comes over the wire, in the fastest way there is: histories spend their time here."""
    copied: Object = marshal.loads(marshal.dumps(obj))  # noqa: S302 - written a moment before
    return copied


def stamp(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
