"""Parsed custom resources: each version of an object is parsed once, large ones in a thread.

A cache of Kubernetes objects returns the same dictionary until a new version arrives, so its identity shows whether it
has been parsed. An object with more values than `weight` allows is refused here, before any other processing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from slinky_api.errors import InvalidObjectError, Problem
from slinky_api.v1alpha1.common import ApiObject
from slinky_operator.kube.cache.stubs import is_stub
from slinky_operator.kube.cache.weight import MOST_LEVELS, MOST_VALUES, Weight, is_small, run_in_thread, weigh
from slinky_operator.kube.objects import Object

M = TypeVar("M", bound=ApiObject)


class ParseCache(Generic[M]):
    """Objects of one kind, by uid.

    Parameters
    ----------
    model
        What they are read as.
    """

    def __init__(self, model: type[M]) -> None:
        self._model = model
        self._known: dict[str, tuple[Object, M | InvalidObjectError]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def read(self, obj: Object) -> M:
        """Read an object.

        Raises
        ------
        InvalidObjectError
            It is none that can be read, or has too many values.
        """
        uid = obj["metadata"].get("uid", "")
        known = self._known.get(uid)
        if known is None or known[0] is not obj:
            known = self._known[uid] = obj, self._parse(obj, weigh(obj))
        if isinstance(known[1], InvalidObjectError):
            raise known[1]
        return known[1]

    async def prepare(self, *objects: Object | None) -> None:
        """Read them, in a thread where they would block the event loop; `read` finds them read."""
        large = []
        for obj in self._unread(objects):
            if is_small(obj):
                self._known[obj["metadata"].get("uid", "")] = obj, self._parse(obj, weigh(obj))
            else:
                large.append(obj)
        if large:
            first = large[0]["metadata"]
            key = str(first.get("namespace", "")), self._model.__name__, str(first.get("uid", ""))
            for obj, parsed in zip(large, await run_in_thread(key, self._parse_all, large), strict=True):
                self._known[obj["metadata"].get("uid", "")] = obj, parsed

    def keep(self, uids: Iterable[str]) -> None:
        """Forget all others."""
        self._known = {uid: self._known[uid] for uid in uids if uid in self._known}

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._known.pop(uid, None)

    def _unread(self, objects: Iterable[Object | None]) -> list[Object]:
        known: Any = (None,)
        return [
            obj
            for obj in objects
            if obj is not None and self._known.get(obj["metadata"].get("uid", ""), known)[0] is not obj
        ]

    def _parse_all(self, objects: list[Object]) -> list[M | InvalidObjectError]:
        return [self._parse(obj, weigh(obj)) for obj in objects]

    def _parse(self, obj: Object, weight: Weight) -> M | InvalidObjectError:
        if weight.too_many:
            return self._unread_because(
                obj, f"has more than {MOST_VALUES} values; the operator reads no object as big as this"
            )
        if weight.too_deep:
            return self._unread_because(
                obj, f"is nested more than {MOST_LEVELS} levels deep; the operator reads no object as deep as this"
            )
        if is_stub(obj):
            return self._unread_because(obj, "was not read: the objects of its namespace are over their budget")
        try:
            return self._model.parse(obj)
        except InvalidObjectError as error:
            return error

    def _unread_because(self, obj: Object, reason: str) -> InvalidObjectError:
        metadata = obj["metadata"]
        return InvalidObjectError(
            self._model.__name__,
            str(metadata.get("namespace", "")),
            str(metadata.get("name", "")),
            (Problem("", reason),),
        )
