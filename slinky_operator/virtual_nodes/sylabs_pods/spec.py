"""What the controller of pods that show old objects exports to the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from slinky_operator.kube.resources import CLUSTERS, SLURMJOBS, VIRTUAL_NODES, VIRTUAL_PODS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings
from slinky_operator.virtual_nodes import directory, pod_jobs
from slinky_operator.virtual_nodes.sylabs_pods import model
from slinky_operator.virtual_nodes.sylabs_pods.controller import SylabsPodReconciler
from slinky_operator.virtual_nodes.sylabs_pods.triggers import SylabsPodTriggers


def _caches(_: Settings) -> Sequence[CacheSpec]:
    jobs = pod_jobs.JOBS_CACHE
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        directory.CACHE,
        replace(jobs, indexers={**jobs.indexers, model.OF_CLUSTER: model.by_cluster}),
        pod_jobs.PODS_CACHE,
    ]


def _build(services: Services) -> Built:
    store = services.caches.store
    jobs = store(SLURMJOBS)
    reconciler = SylabsPodReconciler(
        services.kube,
        services.recorder,
        jobs,
        store(VIRTUAL_PODS),
        store(VIRTUAL_NODES),
        services.clusters,
        services.settings.virtual_nodes_clusters,
    )
    return Built(reconciler, SylabsPodTriggers(jobs).table())


SPEC: Final = ControllerSpec(
    "virtual-sylabs-pods",
    SLURMJOBS,
    caches=_caches,
    build=_build,
    workers=lambda settings: settings.slurmjob_workers,
)
"""One pass over a SlurmJob for its pod; off unless the settings name Clusters, and the site has the old kinds."""
