"""What triggers the LoginSet controller: which LoginSets an event is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    DEPLOYMENTS,
    LOGINSETS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SERVICES,
)
from slinky_operator.loginset.observe import by_loginset
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX
from slinky_operator.reconcile.triggers import Triggers, is_same, own_key, written_by_users


class LoginSetTriggers:
    """Handlers of caches: each returns the keys of the LoginSets to reconcile.

    Parameters
    ----------
    loginsets
        Their cache, with the index `CLUSTER_INDEX`.
    """

    def __init__(self, loginsets: Store) -> None:
        self._loginsets = loginsets

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={
                LOGINSETS: own_key,
                CLUSTERS: self.cluster,
                **dict.fromkeys((PODS, DEPLOYMENTS, SERVICES, CONFIGMAPS, PODDISRUPTIONBUDGETS), self.child),
            },
        )

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: the LoginSets that name one, unless nothing of interest to them has changed."""
        obj = new or old
        if obj is None or is_same(old, new, _of_interest):
            return
        namespace, name = key_of(obj)
        for one in self._loginsets.find(CLUSTER_INDEX, f"{namespace}/{name}"):
            yield key_of(one)

    def child(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of objects that LoginSets own: the one that their label names, or named."""
        for obj in filter(None, (old, new)):
            for value in by_loginset(obj):
                namespace, _, name = value.partition("/")
                yield namespace, name


def _of_interest(obj: Object) -> tuple[Any, ...]:
    """What login pods depend on: the rest of a Cluster's status changes all the time."""
    status = obj.get("status") or {}
    return (
        *written_by_users(obj),
        status.get("slurmdImage"),
        status.get("slurmVersion"),
        status.get("slurmKeyFile"),
        bool((status.get("config") or {}).get("appliedHash")),
    )
