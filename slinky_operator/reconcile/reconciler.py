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
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.failures import Failures, Recorder, StatusPatcher
from slinky_operator.reconcile.status_writer import StatusWriter
from slinky_operator.runtime.controller import Result

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Postponed(Result):
    """The end of a pass that has tried nothing: earlier failures stay reported."""


class Reconciler(ABC, Generic[T_co]):
    """Brings objects of one kind in line with their specs.

    Parameters
    ----------
    resource
        The kind.
    objects
        Its cache.
    kube, recorder
        What a status and Events are written with.
    clock, now
        Seconds that are never set back, and the wall clock.
    """

    def __init__(
        self,
        resource: Resource,
        objects: Store,
        kube: StatusPatcher,
        recorder: Recorder,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self.resource = resource
        self.objects = objects
        self.status = StatusWriter(resource, kube)
        self.failures = Failures(resource, kube, recorder, clock=clock, now=now)

    async def reconcile(self, key: Key) -> Result:
        """Bring one object nearer to its spec.

        Parameters
        ----------
        key
            Namespace and name.

        Raises
        ------
        KubeError
            What the API server could not do. The pass is repeated, and `tell` reports it on the object.
        """
        obj = self.objects.get(*key)
        if obj is None:
            return await self.gone(key)
        result = await self.run_pass(key, obj)
        if not isinstance(result, Postponed):
            self.failures.passed(obj["metadata"]["uid"])
        return result

    async def tell(self, key: Key, error: BaseException) -> None:
        """Report on an object what a pass over it has ended with; called by what runs the passes."""
        obj = self.objects.get(*key)
        if obj is not None:
            await self.failures.tell(obj, error)

    async def parse(self, obj: Object) -> T_co | None:
        """Read an object; None if it is invalid, which its status says then."""
        try:
            return await self.read(obj)
        except InvalidObjectError as error:
            stored, wanted = self.invalid(obj, error)
            _ = await self.status.write(obj, stored, wanted)
            return None

    @abstractmethod
    async def run_pass(self, key: Key, obj: Object) -> Result:
        """One pass over an object that is there."""

    @abstractmethod
    async def read(self, obj: Object) -> T_co:
        """Read an object as the API types have it.

        Raises
        ------
        InvalidObjectError
            The object is not what it says it is.
        """

    @abstractmethod
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The status that an object has, and the one it is to have while it is invalid."""

    async def gone(self, key: Key) -> Result:  # noqa: ARG002 - for those who tidy up
        """What is done when there is no object of a key any more."""
        return Result()
