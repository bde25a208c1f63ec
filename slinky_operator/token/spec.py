"""What the Token controller exports to the process: the caches it reads, and how it is built from the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from slinky_operator.kube.resources import CLUSTERS, TOKENS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import KEEP_OUR_FIELDS
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import Settings
from slinky_operator.token.controller import TokenReconciler
from slinky_operator.token.observation import INDEXES_OF_TOKENS


def _caches(_: Settings) -> Sequence[CacheSpec]:
    return [
        CacheSpec(CLUSTERS, mirrored=True),
        CacheSpec(TOKENS, INDEXES_OF_TOKENS, prune=KEEP_OUR_FIELDS, mirrored=True),
    ]


def _build(services: Services) -> Built:
    store = services.caches.store
    reconciler = TokenReconciler(
        services.kube, SecretReader(services.kube), services.recorder, store(TOKENS), services.clusters
    )
    return Built(reconciler, reconciler.triggers.table())


SPEC: Final = ControllerSpec(
    "token", TOKENS, caches=_caches, build=_build, workers=lambda settings: settings.token_workers
)
