"""What matters of a Kubernetes Node: two that compare equal mean the same, so a heartbeat brings no pass. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from slinky_operator.bridge.devices import NodeDevices
from slinky_operator.bridge.features import feature_of
from slinky_operator.kube.node_taints import leaving
from slinky_operator.kube.objects import Object, is_ready
from slinky_operator.reconcile.writes.children import quantity

CORDONED: Final = "the Kubernetes Node is cordoned"
NOT_READY: Final = "the Kubernetes Node is not Ready"
LEAVING: Final = "the Kubernetes Node is being taken away by an autoscaler"
_NO_DEVICES: Final = NodeDevices()
DELETING: Final = "the Kubernetes Node is being deleted"


@dataclass(frozen=True, slots=True)
class Host:
    """A Kubernetes Node."""

    name: str
    uid: str
    features: tuple[str, ...] = ()
    """Of the labels that are to be features, sorted."""
    allocatable: Mapping[str, Decimal] = field(default_factory=dict)
    """By resource, in bytes and units."""
    trouble: str = ""
    """Why no pod is to come; empty if some may."""
    devices: NodeDevices = _NO_DEVICES
    """Those that ResourceClaims may ask for."""


def host_of(
    obj: Object,
    feature_labels: Collection[str],
    resources: Collection[str],
    devices: NodeDevices = _NO_DEVICES,
) -> Host:
    """Read a Node, complete or pruned.

    Parameters
    ----------
    feature_labels
        Labels that are to be features.
    resources
        Extended resources that count.
    devices
        Devices that ResourceClaims may ask for.
    """
    metadata, status = obj["metadata"], obj.get("status") or {}
    own = metadata.get("labels") or {}
    words = {word for label in feature_labels if label in own and (word := feature_of(label, own[label])) is not None}
    given = status.get("allocatable") or {}
    amounts = {key: quantity(given[key]) for key in ("cpu", "memory", *resources) if key in given}
    return Host(
        name=str(metadata["name"]),
        uid=str(metadata.get("uid") or ""),
        features=tuple(sorted(words)),
        allocatable={key: amount for key, amount in amounts.items() if amount is not None},
        trouble=_trouble(obj) or devices.problem,
        devices=devices,
    )


def marks_of_change(obj: Object) -> tuple[object, ...]:
    """What of a Node matters to any bridge, to be compared: neither heartbeats nor images are in here."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    return metadata.get("uid"), metadata.get("labels"), status.get("allocatable"), _trouble(obj)


def _trouble(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return DELETING
    if not is_ready(obj):
        return NOT_READY
    taint = leaving(obj)
    if taint:
        return f"{LEAVING} (taint {taint})"
    return CORDONED if (obj.get("spec") or {}).get("unschedulable") else ""
