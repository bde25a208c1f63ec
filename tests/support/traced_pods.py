"""Pods as the caches keep them, that complain if a rule reads a field which the caches do not keep.

What is not kept looks as if it were not set. So the worlds in which rules are tested have these pods: a rule that reads
a further field fails there, whether the pod of that test has it or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import override

from slinky_operator.kube.cache.store import Change, Store
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.cached.kept_fields import POD, WHOLE, Each, prune_pod


class FieldNotKept(AssertionError):
    """A rule reads a field of a pod that is not in `kept_fields`."""


class Traced(dict[str, Any]):
    """A mapping that has only the fields of a table."""

    __slots__ = ("is_kept", "path")

    def __init__(self, fields: Mapping[str, Any], is_kept: Callable[[str], bool], path: str) -> None:
        super().__init__(fields)
        self.is_kept = is_kept
        self.path = path

    def _check(self, key: str) -> None:
        if not self.is_kept(key):
            raise FieldNotKept(
                f"{self.path}.{key} is read and not kept: add it to slinky_operator.reconcile.cached.kept_fields"
            )

    @override
    def __getitem__(self, key: str) -> Any:
        self._check(key)
        return super().__getitem__(key)

    @override
    def get(self, key: str, default: Any = None, /) -> Any:
        self._check(key)
        return super().get(key, default)

    @override
    def __contains__(self, key: object) -> bool:
        self._check(str(key))
        return super().__contains__(key)


def traced(pod: Object) -> Object:
    """A pod as a cache keeps it."""
    kept = dict(pod)
    prune_pod(kept)
    found: Object = _traced(kept, POD, "pod")
    return found


def traced_or_none(pod: Object | None) -> Object | None:
    """The same for one that need not be there."""
    return None if pod is None else traced(pod)


def _traced(value: Any, wanted: Any, path: str) -> Any:
    if wanted is WHOLE:
        return value
    if isinstance(wanted, Each):
        if not isinstance(value, list):
            return value
        return [_traced(one, wanted.fields, f"{path}[]") for one in value]
    if not isinstance(value, dict):
        return value
    if callable(wanted):
        return Traced(value, wanted, path)
    return Traced(
        {key: _traced(one, wanted[key], f"{path}.{key}") for key, one in value.items()}, wanted.__contains__, path
    )


class TracedPods(Store):
    """A cache of such pods."""

    @override
    def put(self, obj: Object, *, restored: bool = False) -> Change | None:
        return super().put(traced(obj), restored=restored)

    @override
    def remove(self, obj: Object) -> Change | None:
        return super().remove(traced(obj))
