"""What the LoginSet controller exports to the process: the caches it reads, and how it is built from the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.identity.pod import SSSD, SssdImage
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    DEPLOYMENTS,
    LOGINSETS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SERVICES,
)
from slinky_operator.loginset.controller import LoginSetReconciler
from slinky_operator.loginset.names import LOGIN
from slinky_operator.loginset.observe import INDEXERS, Caches
from slinky_operator.loginset.plan import Defaults
from slinky_operator.loginset.triggers import LoginSetTriggers
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

OBJECTS: Final = (DEPLOYMENTS, SERVICES, CONFIGMAPS, PODDISRUPTIONBUDGETS)
"""What LoginSets have, in the order of the stores in `Caches`."""


def _caches(_: Settings) -> Sequence[CacheSpec]:
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        # The same index over `clusterName` as that of NodeSets.
        CacheSpec(LOGINSETS, INDEXES_OF_NODESETS, prune=KEEP_OUR_FIELDS, mirrored=True),
        CacheSpec(PODS, INDEXERS, PODS_OF_CLUSTERS, prune_pod, owners=OWNERS),
        *(CacheSpec(resource, INDEXERS, MANAGED, KEEP_OUR_FIELDS, owners=OWNERS) for resource in OBJECTS),
    ]


def _build(services: Services) -> Built:
    settings, store = services.settings, services.caches.store
    caches = Caches(store(LOGINSETS), services.clusters, store(PODS), *(store(resource) for resource in OBJECTS))
    defaults = Defaults(
        image=settings.images[LOGIN],
        pull_policy=settings.image_pull_policy,
        sssd=SssdImage(settings.images[SSSD], settings.image_pull_policy),
        agent=settings.image_agent,
    )
    secrets = SecretReader(services.kube)
    reconciler = LoginSetReconciler(services.kube, services.recorder, caches, secrets, defaults)
    return Built(reconciler, LoginSetTriggers(caches.loginsets).table())


SPEC: Final = ControllerSpec(
    "loginset", LOGINSETS, caches=_caches, build=_build, workers=lambda settings: settings.loginset_workers
)
