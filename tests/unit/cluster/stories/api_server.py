"""An API server in memory that keeps preconditions, tells of each request, and may fail, or end its caller.

It applies an object as a whole, as a field manager does who names all of its fields. Schemas and admission are left to
the integration tests, which have real API servers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from slinky_operator.kube import errors
from slinky_operator.kube.errors import Target
from slinky_operator.kube.objects import Listing, Object, Page
from slinky_operator.kube.resources import PODS, SECRETS, STATEFULSETS, Resource
from tests.support.memory_kube import MemoryKube, merge, name_of

CREATED = "2026-01-01T00:00:00Z"

_KEPT = ("uid", "creationTimestamp", "generation", "finalizers", "deletionTimestamp", "namespace")
"""Metadata that no write of the operator changes."""


class OperatorKilledError(BaseException):
    """The operator's process is gone; nothing of it catches this."""


@dataclass(frozen=True)
class Request:
    """What was asked of the API server."""

    verb: str
    kind: str
    name: str
    before: Object | None = None
    """The object as it was."""

    after: Object | None = None
    """The object as it is then; of a status, only that."""

    refusal: str = ""
    """Why it was refused; empty if it was not."""


class ApiServer(MemoryKube):
    """Objects by resource, namespace and name.

    Attributes
    ----------
    tell
        Called with each request of the operator.
    refuse
        Says why a request is refused; nothing if it is not.
    writes_left
        Writes after which the operator ends; never if None.
    lags
        Whether caches do not show what is written.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tell: Callable[[Request], None] = lambda request: None
        self.refuse: Callable[[str, str, str], errors.KubeError | None] = lambda verb, kind, name: None
        self.writes_left: int | None = None
        self.lags = False
        self._late: list[tuple[Resource, Object]] = []

    @override
    def put(self, resource: Resource, obj: Object) -> Object:
        metadata = {"creationTimestamp": CREATED, **obj["metadata"]}
        obj = {"apiVersion": resource.api_version, **obj, "metadata": metadata}
        if not self.lags or name_of(resource) not in self.caches:
            return super().put(resource, obj)
        cache = self.caches.pop(name_of(resource))
        try:
            stored = super().put(resource, obj)
        finally:
            self.caches[name_of(resource)] = cache
        self._late.append((resource, stored))
        return stored

    def catch_up(self) -> None:
        """Let caches show what there is."""
        self.lags, late, self._late = False, self._late, []
        for resource, obj in late:
            if self.find(resource, obj["metadata"]["name"], obj["metadata"].get("namespace")) is not None:
                shown = {**obj, "metadata": dict(obj["metadata"])}
                self._prunes[name_of(resource)](shown)
                self.caches[name_of(resource)].put(shown)

    def of(self, resource: Resource) -> list[Object]:
        """All objects of a resource, in order of their names."""
        found = [obj for (plural, _, _), obj in self.objects.items() if plural == name_of(resource)]
        return sorted(found, key=lambda one: one["metadata"]["name"])

    def end(self, resource: Resource, name: str, namespace: str) -> None:
        """Let an object be gone, and with a StatefulSet its pods; no request of the operator."""
        obj = self.objects.pop((name_of(resource), namespace, name), None)
        if obj is None:
            return
        if name_of(resource) in self.caches:
            self.caches[name_of(resource)].remove(obj)
        if resource is STATEFULSETS:
            self.end(PODS, f"{name}-0", namespace)

    # requests of the operator

    @override
    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        if resource is not SECRETS:
            self.tell(Request("look", resource.kind, name))
        return await self._get(resource, name, namespace)

    @override
    async def list(self, resource: Resource, namespace: str | None = None, **options: Any) -> Listing:
        self.tell(Request("list", resource.kind, ""))
        wanted = [one.partition("=") for one in (options.get("label_selector") or "").split(",") if one]
        found = []
        for obj in self.of(resource):
            own = obj["metadata"].get("labels") or {}
            if all(own.get(key) == value if equals else key in own for key, equals, value in wanted):
                found.append(obj)
        return Listing(found, "1")

    @override
    async def pages(self, resource: Resource, namespace: str | None = None, **options: Any) -> AsyncIterator[Page]:
        listing = await self.list(resource, namespace, label_selector=options.get("label_selector"))
        yield Page(listing.items, listing.resource_version, "")

    @override
    async def create(
        self, resource: Resource, body: Object, namespace: str | None = None, *, dry_run: bool = False
    ) -> Object:
        name = body["metadata"]["name"]
        self._admit("try to create" if dry_run else "create", resource, name)
        if dry_run:
            return body
        answer = await super().create(resource, body, namespace)
        self._done("create", resource, name, None, answer)
        return answer

    @override
    async def apply(self, resource: Resource, body: Object, *, force: bool = True, **_: Any) -> Object:
        metadata = body["metadata"]
        name, namespace = metadata["name"], metadata["namespace"]
        self._admit("write", resource, name)
        known = self.find(resource, name, namespace)
        target = Target("apply", str(resource), namespace, name)
        if known is None and metadata.get("uid"):
            raise errors.Conflict(target, "it is gone", status=409)
        if known is not None and not force:
            raise errors.Conflict(target, "another field manager has it", status=409)
        if known is not None and metadata.get("uid") not in {None, known["metadata"]["uid"]}:
            raise errors.Conflict(target, "it is another one", status=409)
        answer = self.put(resource, _applied(known or {}, body))
        self._done("create" if known is None else "write", resource, name, known, answer)
        return answer

    @override
    async def merge_patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        **_: Any,
    ) -> Object:
        self._admit("patch", resource, name)
        found = await self._get(resource, name, namespace)
        metadata = found["metadata"]
        if uid not in {None, metadata["uid"]} or resource_version not in {None, metadata["resourceVersion"]}:
            raise errors.Conflict(Target("patch", str(resource), namespace, name), "it has changed", status=409)
        answer = self.put(resource, merge(found, patch))
        if answer["metadata"].get("deletionTimestamp") and not answer["metadata"].get("finalizers"):
            self.end(resource, name, namespace or "")
        self._done("patch", resource, name, found, answer)
        return answer

    @override
    async def patch_status(
        self, resource: Resource, name: str, status: Object, namespace: str | None = None, **_: Any
    ) -> Object:
        self._admit("status", resource, name)
        found = await self._get(resource, name, namespace)
        answer = self.put(resource, merge(found, {"status": status}))
        before, after = found.get("status") or {}, answer.get("status") or {}
        self._done("status", resource, name, before, after)
        return answer

    @override
    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None = None, **_: Any
    ) -> Object:
        self._admit("remove", resource, name)
        found = await self._get(resource, name, namespace)
        if uid not in {None, found["metadata"]["uid"]}:
            raise errors.Conflict(Target("delete", str(resource), namespace, name), "it is another one", status=409)
        self.end(resource, name, namespace or "")
        self._done("remove", resource, name, found, None)
        return found

    async def _get(self, resource: Resource, name: str, namespace: str | None) -> Object:
        return await super().get(resource, name, namespace)

    def _admit(self, verb: str, resource: Resource, name: str) -> None:
        error = self.refuse(verb, resource.kind, name)
        if error is not None:
            self.tell(Request(verb, resource.kind, name, refusal=error.message))
            raise error

    def _done(self, verb: str, resource: Resource, name: str, before: Object | None, after: Object | None) -> None:
        self.tell(Request(verb, resource.kind, name, before, after))
        if self.writes_left is not None:
            self.writes_left -= 1
            if self.writes_left <= 0:
                raise OperatorKilledError


def _applied(known: Object, body: Object) -> Object:
    """An object after an apply: what the operator does not name stays in metadata and status."""
    own = known.get("metadata") or {}
    kept = {key: own[key] for key in _KEPT if key in own}
    made = {**body, "metadata": {**body["metadata"], **kept}}
    if "status" in known:
        made["status"] = known["status"]
    address = (known.get("spec") or {}).get("clusterIP")
    if address and "spec" in made:
        made["spec"] = {"clusterIP": address, **made["spec"]}
    return made
