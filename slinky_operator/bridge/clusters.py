"""Which Clusters have a bridge, and may. Pure.

Nodes belong to no namespace: who may edit a Cluster must not choose among them for himself. So the operator's settings
name the Clusters whose Slurm may place pods.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.settings import ALL


def wants_bridge(obj: Object) -> bool:
    """Whether a Cluster wants Slurm to place pods; it may not have been parsed yet."""
    return _bridge_of(obj) is not None


def had_bridge(obj: Object) -> bool:
    """Whether a Cluster has, by its status, nodes of Slurm that are Kubernetes Nodes."""
    status = obj.get("status")
    return isinstance(status, dict) and isinstance(status.get("bridge"), dict)


def is_allowed(key: Key, allowed: Collection[str]) -> bool:
    """Whether the settings let the Slurm of a Cluster place pods."""
    return ALL in allowed or "/".join(key) in allowed


def chooses(obj: Object, node_labels: Mapping[str, str]) -> bool:
    """Whether a Cluster chooses a Kubernetes Node with these labels."""
    bridge = _bridge_of(obj)
    wanted = bridge.get("nodeLabels") if bridge is not None else None
    return isinstance(wanted, dict) and bool(wanted) and wanted.items() <= node_labels.items()


def _bridge_of(obj: Object) -> Mapping[str, Any] | None:
    spec = obj.get("spec")
    jobs = spec.get("jobs") if isinstance(spec, dict) else None
    bridge = jobs.get("bridge") if isinstance(jobs, dict) else None
    return bridge if isinstance(bridge, dict) else None
