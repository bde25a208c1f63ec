"""What the controller of pods on virtual Nodes exports to the process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from slinky_operator.kube.resources import CLUSTERS, SLURMJOBS, VIRTUAL_NODES, VIRTUAL_PODS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings
from slinky_operator.virtual_nodes import directory, pod_jobs
from slinky_operator.virtual_nodes.pods.controller import PodReconciler
from slinky_operator.virtual_nodes.pods.observation import INDEXES_OF_JOBS, INDEXES_OF_PODS, Observer
from slinky_operator.virtual_nodes.pods.triggers import PodTriggers


def _caches(_: Settings) -> Sequence[CacheSpec]:
    jobs = pod_jobs.JOBS_CACHE
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        directory.CACHE,
        replace(jobs, indexers={**jobs.indexers, **INDEXES_OF_JOBS}),
        replace(pod_jobs.PODS_CACHE, indexers=INDEXES_OF_PODS),
    ]


def _build(services: Services) -> Built:
    store = services.caches.store
    pods, jobs, nodes = store(VIRTUAL_PODS), store(SLURMJOBS), store(VIRTUAL_NODES)
    observer = Observer(
        services.kube,
        pods,
        jobs,
        nodes,
        services.clusters,
        services.settings.virtual_nodes_clusters,
        now=lambda: datetime.now(UTC),
        clock=time.monotonic,
    )
    reconciler = PodReconciler(services.kube, services.recorder, pods, jobs, observer)
    return Built(reconciler, PodTriggers(pods, nodes).table())


SPEC: Final = ControllerSpec(
    "virtual-pods",
    VIRTUAL_PODS,
    caches=_caches,
    build=_build,
    workers=lambda settings: settings.slurmjob_workers,
)
"""One pass over a pod on a virtual Node; off unless the settings name Clusters."""
