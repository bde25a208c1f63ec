"""What the Cluster controller exports to the process: the caches it reads, and how it is built from the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.controller import ClusterReconciler
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.observe import CHILDREN, INDEXERS, Caches
from slinky_operator.cluster.parts.connection.slurm_connection import Pace
from slinky_operator.cluster.plan import Environment
from slinky_operator.cluster.rollout.config_sources import ConfigMapWatcher
from slinky_operator.cluster.triggers import ClusterTriggers
from slinky_operator.kube.domain import own_domain
from slinky_operator.kube.resources import CLUSTERS, LOGINSETS, NODESETS, PODS, TOKENS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import (
    INDEXES_OF_NODESETS,
    KEEP_OUR_FIELDS,
    MANAGED,
    OWNERS,
    PODS_OF_CLUSTERS,
)
from slinky_operator.reconcile.cached.kept_fields import prune_pod
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings
from slinky_operator.slurm.naming import AGENT_CONTAINER


def _caches(_: Settings) -> Sequence[CacheSpec]:
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        CacheSpec(NODESETS, INDEXES_OF_NODESETS, mirrored=True),
        CacheSpec(PODS, INDEXERS, PODS_OF_CLUSTERS, prune_pod, owners=OWNERS),
        CacheSpec(LOGINSETS, {**INDEXES_OF_NODESETS, **INDEXERS}, prune=KEEP_OUR_FIELDS, mirrored=True),
        CacheSpec(TOKENS, INDEXERS, prune=KEEP_OUR_FIELDS, mirrored=True),
        *(
            CacheSpec(resource, INDEXERS, MANAGED, KEEP_OUR_FIELDS, owners=OWNERS)
            for resource in CHILDREN
            if resource not in {LOGINSETS, TOKENS}
        ),
    ]


def _build(services: Services) -> Built:
    settings, store = services.settings, services.caches.store
    texts = ConfigMapWatcher(services.kube, services.supervisor, services.caches.of_operator)
    context = PassContext(
        kube=services.kube,
        sources=SecretReader(services.kube),
        texts=texts,
        clients=services.slurm,
        recorder=services.recorder,
        http=services.http,
        changes=services.changes,
    )
    pace = Pace(
        settings.slurm_timeout,
        settings.node_poll_interval,
        settings.node_poll_interval_max,
        settings.external_clusters_per_namespace,
    )
    caches = Caches(store(CLUSTERS), store(NODESETS), store(PODS), *(store(resource) for resource in CHILDREN))
    triggers = ClusterTriggers(services.slurm).table(texts.subscribe)
    return Built(
        ClusterReconciler(caches, context, Environment(images_of(settings), pace, switched_off(settings))), triggers
    )


def images_of(settings: Settings) -> Images:
    """The images in the settings, and that of the agent."""
    named = {**settings.images, AGENT_CONTAINER: settings.image_agent}
    domain = settings.cluster_domain or own_domain()
    return Images(named, settings.image_pull_policy, settings.daemon_priority_class, domain)


def switched_off(settings: Settings) -> tuple[str, ...]:
    """Fields of Clusters that only controllers read which are switched off."""
    runs = {
        "jobs.tenants": settings.slurmjobs,
        "jobs.sylabs": settings.sylabs_jobs,
        "jobs.virtualNodes": bool(settings.virtual_nodes_clusters),
        "jobs.bridge": bool(settings.bridge_clusters),
    }
    return tuple(field for field, is_on in runs.items() if not is_on)


SPEC: Final = ControllerSpec(
    "cluster", CLUSTERS, caches=_caches, build=_build, workers=lambda settings: settings.cluster_workers
)
