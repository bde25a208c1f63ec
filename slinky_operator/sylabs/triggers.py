"""What wakes an object of an old kind: itself, its SlurmJob, and Clusters while its job has no number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, SLURMJOBS, Resource
from slinky_operator.reconcile.triggers import Triggers, is_same, own_key, written_by_users
from slinky_operator.sylabs.observation import CHILD, WITHOUT_JOB


class OldJobTriggers:
    """Handlers of caches: each returns the keys of objects of one old kind.

    Parameters
    ----------
    resource
        The kind.
    objects
        Its cache, with `observation.indexes_of`.
    """

    def __init__(self, resource: Resource, objects: Store) -> None:
        self._resource = resource
        self._objects = objects

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={self._resource: self.old, SLURMJOBS: self.child, CLUSTERS: self.cluster},
        )

    def old(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of the kind: its own key, unless only the status has changed."""
        return () if is_same(old, new, written_by_users) else own_key(old, new)

    def child(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of SlurmJobs: the object of this kind that a SlurmJob has the name for, if what it shows changes."""
        obj = new or old
        if obj is None:
            return
        if is_same(old, new, _shown):
            return
        namespace, name = key_of(obj)
        for found in self._objects.find(CHILD, f"{namespace}/{name}"):
            yield key_of(found)

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: all objects whose job has no number, since another Cluster may be theirs now."""
        if is_same(old, new, written_by_users):
            return
        for found in self._objects.find(WITHOUT_JOB, ""):
            yield key_of(found)


def _shown(obj: Object) -> tuple[Any, ...]:
    metadata, status = obj["metadata"], obj.get("status") or {}
    return metadata.get("uid"), metadata.get("ownerReferences"), status
