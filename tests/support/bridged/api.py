"""An API server in memory that knows what pods need: conditions by type, evictions with a grace period, owners."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from slinky_api import labels
from slinky_operator.kube.errors import NotFound, Target
from slinky_operator.kube.objects import Listing, Object
from slinky_operator.kube.resources import PODS, SLURMJOBS, Resource
from slinky_operator.reconcile.text import stamp
from tests.support.memory_kube import name_of
from tests.support.slurm_jobs import Kube

PODS_NAME = name_of(PODS)


class PodKube(Kube):
    """Pods go when their kubelets let them, and SlurmJobs with what owns them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []
        """Verb and kind of every request that changes something."""
        self.reads = 0
        """Requests for an object, or for a list of them."""
        self.pod_changed: list[Callable[[Object | None, Object | None], None]] = []
        """Called with each change of any pod, also of those that the operator does not watch."""

    @override
    def put(self, resource: Resource, obj: Object) -> Object:
        about = {"creationTimestamp": stamp(datetime.now(UTC)), "generation": 1, **obj["metadata"]}
        is_watched = name_of(resource) != PODS_NAME or labels.LABEL_BRIDGE_POD in (about.get("labels") or {})
        old = self.find(resource, about["name"], about.get("namespace"))
        if is_watched:
            stored = super().put(resource, {**obj, "metadata": about})
        else:
            store, handlers = self.caches.pop(PODS_NAME), self.handlers.pop(PODS_NAME, [])
            stored = super().put(resource, {**obj, "metadata": about})
            self.caches[PODS_NAME], self.handlers[PODS_NAME] = store, handlers
        if name_of(resource) == PODS_NAME:
            for handler in self.pod_changed:
                handler(old, stored)
        return stored

    @override
    def forget(self, resource: Resource, obj: Object) -> None:
        super().forget(resource, obj)
        if name_of(resource) == PODS_NAME:
            for handler in self.pod_changed:
                handler(obj, None)
        self.collect(str(obj["metadata"]["uid"]))

    def collect(self, uid: str) -> None:
        """Delete what the object of a uid owns, as the garbage collector does."""
        for (plural, _, _), obj in list(self.objects.items()):
            owners = obj["metadata"].get("ownerReferences") or ()
            if owners and owners[0]["uid"] == uid:
                self.mark(SLURMJOBS if plural == name_of(SLURMJOBS) else PODS, obj)

    def mark(self, resource: Resource, obj: Object) -> Object:
        """Delete an object: a pod goes when its kubelet lets it, others without their finalizers."""
        about = obj["metadata"]
        is_held = about.get("finalizers") or (obj.get("spec") or {}).get("nodeName")
        if about.get("deletionTimestamp"):
            return obj
        if not is_held:
            self.forget(resource, obj)
            return obj
        return self.put(resource, {**obj, "metadata": {**about, "deletionTimestamp": stamp(datetime.now(UTC))}})

    @override
    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        self.reads += 1
        return await super().get(resource, name, namespace)

    @override
    async def list(self, resource: Resource, namespace: str | None = None, **options: Any) -> Listing:
        self.reads += 1
        return await super().list(resource, namespace, **options)

    @override
    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        self.calls.append(("create", resource.plural))
        return await super().create(resource, body, namespace)

    @override
    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        self.calls.append(("patch", resource.plural))
        self.reads -= 1  # of the model itself
        old = self.find(resource, name, namespace)
        if "spec" in patch and old is not None:
            number = old["metadata"]["generation"] + 1
            patch = {**patch, "metadata": {**patch.get("metadata", {}), "generation": number}}
        return await super().merge_patch(resource, name, patch, namespace, **options)

    @override
    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, **options: Any
    ) -> Object:
        self.calls.append(("patch", f"{resource.plural}/status"))
        self.reads -= 1  # of the model itself
        return await super().patch_status(resource, name, status, namespace, **options)

    @override
    async def apply(self, resource: Resource, body: Object, **options: Any) -> Object:
        if name_of(resource) != PODS_NAME:
            return await super().apply(resource, body, **options)
        self.calls.append(("apply", "pods/status"))
        about = body["metadata"]
        self._check(resource, about["name"], about["namespace"], {"uid": about["uid"]})
        found = await super().get(resource, about["name"], about["namespace"])
        (shown,) = body["status"]["conditions"]
        others = [one for one in found["status"].get("conditions") or () if one["type"] != shown["type"]]
        return self.put(resource, {**found, "status": {**found["status"], "conditions": [*others, shown]}})

    @override
    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **options: Any) -> Object:
        self.calls.append(("delete", resource.plural))
        self._check(resource, name, namespace, options)
        found = self.find(resource, name, namespace)
        if found is None:
            raise NotFound(Target("delete", str(resource), namespace, name), "not found", status=404)
        return self.mark(resource, found)

    async def evict(
        self, resource: Resource, name: str, namespace: str, *, uid: str, resource_version: str | None = None
    ) -> Object:
        """Evict a pod: it goes in its grace period."""
        self.calls.append(("evict", resource.plural))
        return await self.delete(resource, name, namespace, uid=uid, resource_version=resource_version)
