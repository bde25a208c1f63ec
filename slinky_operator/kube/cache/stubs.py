"""Small objects in place of those for which a namespace has no room.

A stub shows that an object exists, who it is and what has become of it. It has no spec that rules could read: to
parse it is an error (`parse_cache`), as for an object with more values than are read. The names in its spec stay, and
the operator's own annotations, so that indexes find it for the objects that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_api.v1alpha1.common import GROUP
from slinky_operator.kube.cache.budget import footprint
from slinky_operator.kube.objects import Object

MARK: Final = "leftOut"
"""Key of a stub, beside `metadata`: the bytes that the whole object would take."""

CONDITIONS_LEFT_OUT: Final = "conditionsLeftOut"
"""Key of a stub, beside `metadata`: its conditions were too long to be kept. A list is written whole, so nothing may be
written that would take the place of these."""

LONGEST: Final = 253
"""Characters of a text that is kept, which a name may have."""

MOST: Final = 32
"""Entries of a mapping, and items of a list, that are kept."""

FIELD: Final = 8 * 2**10
"""Bytes of a field of the status that is kept."""

CONDITIONS: Final = 64 * 2**10
"""Bytes of conditions that are kept: the operator's have less."""

_IDENTITY: Final = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "finalizers",
        "ownerReferences",
    }
)


def stub(obj: Object) -> Object:
    """Make the stub of an object."""
    metadata: Mapping[str, Any] = obj["metadata"]
    status = _of_status(obj.get("status"))
    given = obj.get("status")
    is_cut = isinstance(given, Mapping) and "conditions" in given and "conditions" not in status
    return {
        "apiVersion": obj.get("apiVersion", ""),
        "kind": obj.get("kind", ""),
        "metadata": {
            **{key: _small(value) for key, value in metadata.items() if key in _IDENTITY},
            "labels": _texts(metadata.get("labels")),
            "annotations": _texts(_own(metadata.get("annotations"))),
        },
        "spec": _texts(obj.get("spec")),
        "status": status,
        MARK: footprint(obj),
        **({CONDITIONS_LEFT_OUT: True} if is_cut else {}),
    }


def is_stub(obj: Mapping[str, Any]) -> bool:
    """Whether an object is a stub."""
    return MARK in obj


def may_be_told(obj: Mapping[str, Any]) -> bool:
    """Whether conditions may be written to an object as it is kept."""
    return CONDITIONS_LEFT_OUT not in obj


def _small(value: Any) -> Any:
    if isinstance(value, list):
        return [_small(one) for one in value[:MOST]]
    if isinstance(value, dict):
        return _texts(value)
    return value if not isinstance(value, str) else value[:LONGEST]


def _own(annotations: Any) -> Mapping[str, Any]:
    """The operator's annotations."""
    given = annotations if isinstance(annotations, Mapping) else {}
    return {key: value for key, value in given.items() if key.partition("/")[0].endswith(GROUP)}


def _texts(value: Any) -> dict[str, Any]:
    """The first short texts and other scalars of a mapping."""
    if not isinstance(value, Mapping):
        return {}
    found = [
        (key, one)
        for key, one in value.items()
        if len(key) <= LONGEST + 64 and not isinstance(one, (dict, list)) and len(str(one)) <= LONGEST
    ]
    return dict(found[:MOST])


def _of_status(status: Any) -> dict[str, Any]:
    if not isinstance(status, Mapping):
        return {}
    return {
        key: value
        for key, value in status.items()
        if footprint(value) <= (CONDITIONS if key == "conditions" else FIELD)
    }
