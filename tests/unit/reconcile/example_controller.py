"""The smallest complete controller, as in docs/development/add-a-kind.md: each Cluster shows how many NodeSets name it.

`test_example_controller.py` runs it. A real one is a folder with the same parts as modules: `controller`, `triggers`
and `spec`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from typing_extensions import override

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import StatusPatcher, Warner
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX, INDEXES_OF_NODESETS
from slinky_operator.reconcile.reconciler import ModelReconciler
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.reconcile.triggers import Triggers, own_key
from slinky_operator.runtime.controller import Result
from slinky_operator.settings import Settings


class CensusReconciler(ModelReconciler[Cluster]):
    """Counts the NodeSets of each Cluster."""

    def __init__(
        self,
        kube: StatusPatcher,
        recorder: Warner,
        clusters: Store,
        nodesets: Store,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(Cluster, CLUSTERS, clusters, kube, recorder, clock=clock, now=now)
        self._nodesets = nodesets

    @override
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        stored = obj.get("status") or {}
        return stored, {**stored, "summary": "spec invalid"}

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        cluster = await self.parse(obj)
        if cluster is None:
            return Result()
        stored = obj.get("status") or {}
        _ = await self.status.write(
            obj, stored, {**stored, "summary": summary(self._nodesets.find(CLUSTER_INDEX, "/".join(key)))}
        )
        return Result()


def summary(nodesets: Iterable[Object]) -> str:
    """The rule: pure, from what was observed to what is to be."""
    count = len(list(nodesets))
    return "1 NodeSet" if count == 1 else f"{count} NodeSets"


def nodeset(old: Object | None, new: Object | None) -> Iterable[Key]:
    """Handler of NodeSets: the Clusters that one names and named."""
    for obj in filter(None, (old, new)):
        yield key_of(obj)[0], str((obj.get("spec") or {}).get("clusterName") or "")


TRIGGERS: Final = Triggers(
    objects={CLUSTERS: own_key, NODESETS: nodeset},
)


def _caches(_: Settings) -> Sequence[CacheSpec]:
    return [CacheSpec(CLUSTERS, mirrored=True), CacheSpec(NODESETS, INDEXES_OF_NODESETS, mirrored=True)]


def _build(services: Services) -> Built:
    store = services.caches.store
    reconciler = CensusReconciler(services.kube, services.recorder, store(CLUSTERS), store(NODESETS))
    return Built(reconciler, TRIGGERS)


SPEC: Final = ControllerSpec("census", CLUSTERS, caches=_caches, build=_build, workers=lambda _: 1)
