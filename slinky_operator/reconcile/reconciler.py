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

from typing_extensions import override

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.common import ApiObject
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import StatusPatcher, Warner
from slinky_operator.kube.resources import Resource
from slinky_operator.reconcile.failures import Failures
from slinky_operator.reconcile.writes.status_writer import StatusWriter
from slinky_operator.runtime.controller import Result

T_co = TypeVar("T_co", covariant=True)
M = TypeVar("M", bound=ApiObject)


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


class ModelReconciler(ParsingReconciler[M]):
    """Reconciles objects of a kind that no other controller parses: keeps each version that it has parsed.

    Parameters
    ----------
    model
        What objects are read as.
    resource, objects, kube, recorder, clock, now
        As for every `Reconciler`.
    """

    def __init__(
        self,
        model: type[M],
        resource: Resource,
        objects: Store,
        kube: StatusPatcher,
        recorder: Warner,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(resource, objects, kube, recorder, clock=clock, now=now)
        self._parsed: ParseCache[M] = ParseCache(model)
        self._uids: dict[Key, str] = {}

    @override
    async def read(self, obj: Object) -> M:
        key, uid = key_of(obj), str(obj["metadata"].get("uid") or "")
        before, self._uids[key] = self._uids.get(key, uid), uid
        if before != uid:
            self.forget(before)
        await self._parsed.prepare(obj)
        return self._parsed.read(obj)

    @override
    async def gone(self, key: Key) -> Result:
        uid = self._uids.pop(key, None)
        if uid is not None:
            self.forget(uid)
        return Result()

    def forget(self, uid: str) -> None:
        """Forget an object that is gone; also for what else is kept of it."""
        self._parsed.forget(uid)
