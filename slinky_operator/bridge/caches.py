"""Caches that both rooms of the bridge read, and what of an object they keep: pods, and devices if these are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from slinky_api import labels
from slinky_operator.bridge.device_claims import OF_CLAIM, OF_POOL, by_claim, by_pool, prune_claim
from slinky_operator.bridge.devices import by_node, prune_slice
from slinky_operator.kube.cache.informer import prune_managed_fields
from slinky_operator.kube.cache.store import Indexer
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BRIDGE_PODS, RESOURCECLAIMS, RESOURCESLICES
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.settings import Settings

OF_NODE: Final = "of node"
"""Index of the cache of ResourceSlices over the Node."""

INDEXES_OF_SLICES: Final[Mapping[str, Indexer]] = {OF_NODE: by_node}
INDEXES_OF_CLAIMS: Final[Mapping[str, Indexer]] = {OF_POOL: by_pool}

_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SPEC: Final = (
    "activeDeadlineSeconds",
    "affinity",
    "nodeName",
    "nodeSelector",
    "overhead",
    "resourceClaims",
    "resources",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
)
"""Fields of the spec of a pod that are read, beside its containers."""

_CONTAINER: Final = ("name", "image", "resources", "restartPolicy")


def prune_pod(obj: Object) -> None:
    """Shorten a pod, in place, to what is read of it: variables, volumes and probes are not."""
    prune_managed_fields(obj)
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    annotations = metadata.get("annotations") or {}
    if _APPLIED in annotations:
        obj["metadata"] = {**metadata, "annotations": {k: v for k, v in annotations.items() if k != _APPLIED}}
    kept: dict[str, Any] = {key: spec[key] for key in _SPEC if key in spec}
    for name in ("containers", "initContainers"):
        if spec.get(name):
            kept[name] = [{key: one[key] for key in _CONTAINER if key in one} for one in spec[name]]
    obj["spec"] = kept
    shown = {key: status[key] for key in ("phase", "reason", "conditions", "resourceClaimStatuses") if key in status}
    ends = [
        {"name": one.get("name"), "state": one["state"]}
        for one in status.get("containerStatuses") or ()
        if (one.get("state") or {}).get("terminated")
    ]
    obj["status"] = {**shown, **({"containerStatuses": ends} if ends else {})}


def keep_slice(obj: Object) -> None:
    """Shorten a ResourceSlice, in place."""
    prune_managed_fields(obj)
    prune_slice(obj)


def keep_claim(obj: Object) -> None:
    """Shorten a ResourceClaim, in place."""
    prune_managed_fields(obj)
    prune_claim(obj)


def pods_cache(indexers: Mapping[str, Indexer]) -> CacheSpec:
    """The cache of pods that Slurm places: those with the label alone."""
    own = {**indexers, OF_CLAIM: by_claim}
    return CacheSpec(BRIDGE_PODS, own, f"{labels.LABEL_BRIDGE_POD}=true", prune_pod, is_of_users=True)


def device_caches(settings: Settings) -> Sequence[CacheSpec]:
    """The caches of devices and of who has them; none if the settings let Slurm give no devices to pods."""
    if not settings.bridge_devices:
        return ()
    return (
        CacheSpec(RESOURCESLICES, INDEXES_OF_SLICES, prune=keep_slice),
        CacheSpec(RESOURCECLAIMS, INDEXES_OF_CLAIMS, prune=keep_claim, is_of_users=True),
    )
