"""What the SlurmJob controller needs of the API server and of Events."""

from __future__ import annotations

from typing import Protocol

from typing_extensions import override

from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.failures import StatusPatcher
from slinky_operator.reconcile.namespaces import Getter
from slinky_operator.reconcile.writes.finalizers import Patcher


class Kube(Patcher, StatusPatcher, Getter, Protocol):
    """What is used of `kube.client.KubeClient`."""

    @override
    async def patch_status(
        self,
        resource: Resource,
        name: str,
        status: Object,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Object:
        """Merge into the status of an object."""
        ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None,
        resource_version: str | None = None,
    ) -> Object:
        """Delete an object."""
        ...


class Recorder(Protocol):
    """What is used of `kube.events.Recorder`."""

    def normal(self, obj: Object, reason: str, message: str) -> None:
        """Emit a Normal Event."""
        ...

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """Emit a Warning Event."""
        ...
