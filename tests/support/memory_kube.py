"""An API server in memory that executes requests at once, and caches that show the result at once.

For tests that run whole passes with many inputs. It has no schema, no conflicts and no faults: those are tested with
real API servers and in the models.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from slinky_operator.kube import errors
from slinky_operator.kube.cache.informer import prune_managed_fields
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Listing, Object, Page, WatchEvent
from slinky_operator.kube.resources import PODS, Resource
from tests.support import conditions
from tests.support.traced_pods import TracedPods


class MemoryKube:
    """Objects by resource, namespace and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self._prunes: dict[str, Callable[[Object], None]] = {}
        self.caches: dict[str, Store] = {}
        """By plural name of the resource; each change is shown there at once."""

        self.statuses: list[Object] = []
        """Every status as it was after a write."""

        self._numbers = itertools.count(1)

    def cache(
        self,
        resource: Resource,
        indexers: Mapping[str, Any] | None = None,
        prune: Callable[[Object], None] = prune_managed_fields,
    ) -> Store:
        """Make the cache of a resource, whose objects are shortened on the way into it."""
        self._prunes[name_of(resource)] = prune
        store = TracedPods(indexers) if resource is PODS else Store(indexers)
        self.caches[name_of(resource)] = store
        return store

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store an object and show it in the cache."""
        metadata = {**obj["metadata"]}
        metadata["resourceVersion"] = str(next(self._numbers))
        metadata.setdefault("uid", f"uid-{metadata['resourceVersion']}")
        stored = {"kind": resource.kind, **obj, "metadata": metadata}
        self.objects[name_of(resource), metadata.get("namespace") or "", metadata["name"]] = stored
        if name_of(resource) in self.caches:
            shown = {**stored, "metadata": dict(metadata)}
            self._prunes[name_of(resource)](shown)
            self.caches[name_of(resource)].put(shown)
        return stored

    def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        """An object as it is stored."""
        return self.objects.get((name_of(resource), namespace or "", name))

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        found = self.find(resource, name, namespace)
        if found is None:
            raise errors.NotFound(Target("get", str(resource), namespace, name), "not found", status=404)
        return _copied(found)

    async def list(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str | None = None, **_: Any
    ) -> Listing:
        key, separator, value = (label_selector or "").partition("=")
        found = [
            _copied(obj)
            for (plural, where, _), obj in self.objects.items()
            if plural == name_of(resource)
            and namespace in {None, where}
            and (not key or key in (obj["metadata"].get("labels") or {}))
            and (not separator or obj["metadata"]["labels"][key] == value)
        ]
        return Listing(found, str(next(self._numbers)))

    async def pages(self, resource: Resource, namespace: str | None = None, **options: Any) -> AsyncIterator[Page]:
        """All in one page."""
        listing = await self.list(resource, namespace, **options)
        yield Page(listing.items, listing.resource_version, "")

    async def each(self, resource: Resource, namespace: str | None = None, **options: Any) -> AsyncIterator[Object]:
        """One after the other."""
        for obj in (await self.list(resource, namespace, **options)).items:
            yield obj

    async def some(
        self, resource: Resource, namespace: str | None = None, *, field_selector: str | None = None, most: int
    ) -> Page:
        """The first objects, by fields of spec and status that have a value, or have not."""
        terms = [one.partition("=") for one in (field_selector or "").split(",") if one]
        listing = await self.list(resource, namespace)
        found = [one for one in listing.items if all(_has(one, path, value) for path, _, value in terms)]
        return Page(found[:most], listing.resource_version, "more" if len(found) > most else "")

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        """Nothing ever happens by itself."""
        await asyncio.Event().wait()
        yield WatchEvent("BOOKMARK", {})

    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object:
        name = body["metadata"]["name"]
        where = namespace or body["metadata"].get("namespace") or ""
        if (name_of(resource), where, name) in self.objects:
            raise errors.AlreadyExists(Target("create", str(resource), namespace, name), "exists", status=409)
        body = _copied(body)
        return _copied(self.put(resource, {**body, "metadata": {**body["metadata"], "namespace": where}}))

    async def apply(self, resource: Resource, body: Object, **_: Any) -> Object:
        metadata = body["metadata"]
        known = self.objects.get((name_of(resource), metadata.get("namespace") or "", metadata["name"])) or {}
        merged = merge(known, _copied(body))
        return _copied(self.put(resource, merged))

    async def merge_patch(
        self, resource: Resource, name: str, patch: Object, namespace: str | None = None, **_: Any
    ) -> Object:
        return _copied(self.put(resource, merge(await self.get(resource, name, namespace), patch)))

    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, **_: Any
    ) -> Object:
        patched = self.put(resource, merge(await self.get(resource, name, namespace), {"status": status}))
        self.statuses.append(patched["status"])
        conditions.check(patched["status"])
        return _copied(patched)

    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **_: Any) -> Object:
        found = await self.get(resource, name, namespace)
        del self.objects[name_of(resource), namespace or "", name]
        if name_of(resource) in self.caches:
            self.caches[name_of(resource)].remove(found)
        return found


def _has(obj: Object, path: str, value: str) -> bool:
    """Whether a field has a value; has not, if the path ends in an exclamation mark."""
    part, _, key = path.removesuffix("!").partition(".")
    return ((obj.get(part) or {}).get(key) == value) is not path.endswith("!")


def name_of(resource: Resource) -> str:
    """Plural name of a resource; with its group for the old job kinds, whose names are those of others."""
    return str(resource) if resource.group.endswith("sylabs.io") else resource.plural


def _copied(obj: Object) -> Object:
    """A copy by way of JSON, as an API server gives; made in C, since tests count lines of Python."""
    copied: Object = json.loads(json.dumps(obj))
    return copied


def merge(old: Object, patch: Object) -> Object:
    """A merge patch, carried out."""
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged
