"""The common half of every controller: get the object, parse it, report what is invalid, run a pass, report failures.

What a pass does is the controller's. What it remembers is kept by uid, so that an object that was deleted and created
again under its name starts clean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from slinky_api.errors import InvalidObjectError
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import StatusPatcher, Warner
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.failures import Failures
from slinky_operator.reconcile.writes.status_writer import StatusWriter
from slinky_operator.runtime.controller import Result

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Postponed(Result):
    """The result of a pass that has tried nothing: earlier failures stay reported."""


class Reconciler(ABC):
    """Reconciles objects of one kind.

    Parameters
    ----------
    resource
        The kind.
    objects
        Its cache.
    kube, recorder
        Write the status and Events.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        resource: Resource,
        objects: Store,
        kube: StatusPatcher,
        recorder: Warner,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self.resource = resource
        self.objects = objects
        self.status = StatusWriter(resource, kube)
        self.failures = Failures(resource, kube, recorder, clock=clock, now=now)

    async def reconcile(self, key: Key) -> Result:
        """Run one pass over an object.

        Parameters
        ----------
        key
            Namespace and name.

        Raises
        ------
        KubeError
            The API server failed or refused. The pass is repeated, and `tell` reports it on the object.
        """
        obj = self.objects.get(*key)
        if obj is None:
            return await self.gone(key)
        result = await self.run_pass(key, obj)
        if not isinstance(result, Postponed):
            self.failures.passed(obj["metadata"]["uid"])
        return result

    async def tell(self, key: Key, error: BaseException) -> None:
        """Report the error of a pass on its object; called by the controller loop."""
        obj = self.objects.get(*key)
        if obj is not None:
            await self.failures.tell(obj, error)

    @abstractmethod
    async def run_pass(self, key: Key, obj: Object) -> Result:
        """Run one pass over an object that exists."""

    async def gone(self, key: Key) -> Result:  # noqa: ARG002 - for those who tidy up
        """Clean up after an object that no longer exists."""
        return Result()


class ParsingReconciler(Reconciler, Generic[T_co]):
    """Reconciles objects of a kind of its own: it parses them, and reports those that are invalid on their status."""

    async def parse(self, obj: Object) -> T_co | None:
        """Parse an object; None if it is invalid, which its status then reports."""
        try:
            return await self.read(obj)
        except InvalidObjectError as error:
            stored, wanted = self.invalid(obj, error)
            _ = await self.status.write(obj, stored, wanted)
            return None

    @abstractmethod
    async def read(self, obj: Object) -> T_co:
        """Parse an object into its API type.

        Raises
        ------
        InvalidObjectError
            The object does not match its type.
        """

    @abstractmethod
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The current status of an object, and the wanted one while it is invalid."""
