"""What autoscaling exports to the process: the caches it reads, and how it is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.autoscaling.controller import AutoscalingReconciler
from slinky_operator.autoscaling.triggers import AutoscalingTriggers
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings


def _caches(_: Settings) -> Sequence[CacheSpec]:
    return [CacheSpec(CLUSTERS, mirrored=True), CacheSpec(NODESETS, INDEXES_OF_NODESETS, mirrored=True)]


def _build(services: Services) -> Built:
    store = services.caches.store
    reconciler = AutoscalingReconciler(
        services.kube, services.recorder, store(CLUSTERS), store(NODESETS), services.slurm, services.changes
    )
    return Built(reconciler, AutoscalingTriggers(services.slurm).table())


SPEC: Final = ControllerSpec(
    "autoscaling", CLUSTERS, caches=_caches, build=_build, workers=lambda settings: settings.autoscaling_workers
)
"""One pass over a Cluster: its jobs are asked for once, and each of its NodeSets is decided on."""
