"""What the controllers of the old kinds export to the process: one for each kind, all built alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from slinky_operator.kube.resources import CLUSTERS, SLURMJOBS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.scripts import prune_job, prune_old_job
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings
from slinky_operator.sylabs.controller import OldJobReconciler
from slinky_operator.sylabs.kinds import KINDS, OldKind
from slinky_operator.sylabs.observation import indexes_of


def _caches(kind: OldKind) -> Callable[[Settings], Sequence[CacheSpec]]:
    wanted = [
        CacheSpec(CLUSTERS, mirrored=True),
        CacheSpec(SLURMJOBS, prune=prune_job, mirrored=True),
        CacheSpec(kind.resource, indexes_of(kind), prune=prune_old_job, mirrored=True),
    ]
    return lambda _: wanted


def _build(kind: OldKind) -> Callable[[Services], Built]:
    def build(services: Services) -> Built:
        store = services.caches.store
        reconciler = OldJobReconciler(
            kind,
            services.kube,
            services.recorder,
            store(kind.resource),
            store(SLURMJOBS),
            services.clusters,
            services.slurm,
            trusted=frozenset(services.settings.sylabs_clusters),
            with_nodes=frozenset(services.settings.virtual_nodes_clusters),
        )
        return Built(reconciler, reconciler.triggers.table())

    return build


SPECS: Final = tuple(
    ControllerSpec(
        kind.name,
        kind.resource,
        caches=_caches(kind),
        build=_build(kind),
        workers=lambda settings: settings.slurmjob_workers,
    )
    for kind in KINDS
)
"""One for each kind; off unless the site has installed them."""
