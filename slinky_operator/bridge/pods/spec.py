"""What the controller of pods that Slurm places exports to the process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from slinky_api import labels
from slinky_operator.bridge.pods.clusters import BridgeClusters
from slinky_operator.bridge.pods.controller import GroupReconciler
from slinky_operator.bridge.pods.observation import INDEXES_OF_JOBS, INDEXES_OF_PODS, Observer, Singles
from slinky_operator.bridge.pods.triggers import GroupTriggers
from slinky_operator.kube.cache.informer import prune_managed_fields
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BRIDGE_PODS, CLUSTERS, SLURMJOBS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings

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
    shown = {key: status[key] for key in ("phase", "reason", "conditions") if key in status}
    ends = [
        {"name": one.get("name"), "state": one["state"]}
        for one in status.get("containerStatuses") or ()
        if (one.get("state") or {}).get("terminated")
    ]
    obj["status"] = {**shown, **({"containerStatuses": ends} if ends else {})}


PODS_CACHE: Final = CacheSpec(
    BRIDGE_PODS,
    INDEXES_OF_PODS,
    f"{labels.LABEL_BRIDGE_POD}=true",
    prune_pod,
    is_of_users=True,
)
"""The cache of pods that Slurm places: those with the label alone."""


def _caches(_: Settings) -> Sequence[CacheSpec]:
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        CacheSpec(SLURMJOBS, INDEXES_OF_JOBS, prune=prune_job, mirrored=True),
        PODS_CACHE,
    ]


def _build(services: Services) -> Built:
    store = services.caches.store
    pods, jobs, singles = store(BRIDGE_PODS), store(SLURMJOBS), Singles()
    clusters = BridgeClusters(services.kube, services.clusters, services.settings.bridge_clusters, time.monotonic)
    observer = Observer(
        services.kube,
        pods,
        jobs,
        clusters,
        singles,
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        slurm=services.slurm,
    )
    reconciler = GroupReconciler(services.kube, services.recorder, pods, jobs, observer)
    return Built(
        reconciler, GroupTriggers(pods, jobs, singles).table(reconciler.subscribe, seen=reconciler.expectations.observe)
    )


SPEC: Final = ControllerSpec(
    "bridge-pods",
    BRIDGE_PODS,
    caches=_caches,
    build=_build,
    workers=lambda settings: settings.slurmjob_workers,
    wanted=lambda settings: bool(settings.bridge_clusters),
)
"""One pass over a group of pods; off unless the settings name Clusters."""
