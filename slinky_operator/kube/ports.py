"""What controllers use of the API server and of Events: one protocol for all, so that tests can stand in for both.

`kube.client.KubeClient` and `kube.events.Recorder` are the implementations. What needs a single verb names the protocol
of that verb; a controller takes `Kube`.
"""

# ruff: noqa: D102 - each call is documented where it is implemented, in `kube.calls`

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource


class Getter(Protocol):
    """Reads one object."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object: ...


class Lister(Protocol):
    """Reads a whole collection, one object at a time."""

    def each(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> AsyncIterator[Object]: ...


class Creator(Protocol):
    """Creates objects; the API server answers a review that is created."""

    async def create(self, resource: Resource, body: Object, namespace: str | None = None) -> Object: ...


class Patcher(Protocol):
    """Merges into objects."""

    async def merge_patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object: ...


class StatusPatcher(Protocol):
    """Merges into the status of objects."""

    async def patch_status(
        self,
        resource: Resource,
        name: str,
        status: Object,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object: ...


class Kube(Getter, Lister, Creator, Patcher, StatusPatcher, Protocol):
    """The calls that controllers make."""

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None,
        resource_version: str | None = None,
    ) -> Object: ...

    async def apply(
        self,
        resource: Resource,
        body: Object,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = True,
    ) -> Object: ...


class Warner(Protocol):
    """Emits Warning Events."""

    def warning(self, obj: Object, reason: str, message: str) -> None: ...


class Recorder(Warner, Protocol):
    """Emits Events."""

    def normal(self, obj: Object, reason: str, message: str) -> None: ...
