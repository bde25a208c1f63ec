"""What the controller of pods that Slurm places exports to the process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from slinky_operator.bridge.caches import device_caches, pods_cache
from slinky_operator.bridge.pods.clusters import BridgeClusters
from slinky_operator.bridge.pods.controller import GroupReconciler
from slinky_operator.bridge.pods.device_reader import DeviceReader
from slinky_operator.bridge.pods.left_out import LeftOut
from slinky_operator.bridge.pods.observation import INDEXES_OF_JOBS, INDEXES_OF_PODS, Observer, Singles
from slinky_operator.bridge.pods.triggers import GroupTriggers
from slinky_operator.kube.resources import BRIDGE_PODS, CLUSTERS, NODES, RESOURCECLAIMS, RESOURCESLICES, SLURMJOBS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import node_pruner
from slinky_operator.reconcile.cached.scripts import prune_job
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings

PODS_CACHE: Final = pods_cache(INDEXES_OF_PODS)
"""The cache of pods that Slurm places."""


def _caches(settings: Settings) -> Sequence[CacheSpec]:
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        CacheSpec(SLURMJOBS, INDEXES_OF_JOBS, prune=prune_job, mirrored=True),
        PODS_CACHE,
        CacheSpec(NODES, prune=node_pruner(bridged=bool(settings.bridge_clusters))),
        *device_caches(settings),
    ]


def _build(services: Services) -> Built:
    store = services.caches.store
    pods, jobs, singles = store(BRIDGE_PODS), store(SLURMJOBS), Singles()
    clusters = BridgeClusters(services.kube, services.clusters, services.settings.bridge_clusters, time.monotonic)
    devices = None
    if services.settings.bridge_devices:
        slices, claims = store(RESOURCESLICES), store(RESOURCECLAIMS)
        devices = DeviceReader(services.kube, slices, claims, pods, services.slurm, time.monotonic)
    observer = Observer(
        services.kube,
        pods,
        jobs,
        clusters,
        singles,
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
        slurm=services.slurm,
        devices=devices,
        hosts=store(NODES),
    )
    reconciler = GroupReconciler(services.kube, services.recorder, pods, jobs, observer)
    triggers = GroupTriggers(pods, jobs, singles).table(
        reconciler.subscribe,
        seen=reconciler.expectations.observe,
        left_out=LeftOut(pods, services.recorder).seen,
        reads_claims=devices is not None,
    )
    return Built(reconciler, triggers)


SPEC: Final = ControllerSpec(
    "bridge-pods",
    BRIDGE_PODS,
    caches=_caches,
    build=_build,
    workers=lambda settings: settings.slurmjob_workers,
)
"""One pass over a group of pods; off unless the settings name Clusters."""
