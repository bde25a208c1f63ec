"""Whether a fragment of a Kubernetes object has the shape that the API server's own types have.

The CRD leaves templates open, so that fields of a newer Kubernetes can be used. A known field of the wrong kind, such
as a text where a list belongs, would break the code that reads it; it is refused here, by its path, before that. The
table comes from the API server (`hack.documents.tables.merge_keys`). Fields that it does not name are left to the API
server, and most of the directives of a strategic merge to `templates`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

POD_TEMPLATE: Final = "PodTemplateSpec"
POD_SPEC: Final = "PodSpec"
CLAIM: Final = "PersistentVolumeClaim"

_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "any": (str, int, float, bool, dict, list),
}
_NAMES: Final = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


def misfits(fragment: object, kind: str, at: str = "") -> Iterator[tuple[str, str]]:
    """Find fields of the wrong kind.

    Parameters
    ----------
    fragment
        As the user wrote it; `null` stands for a field that is to go.
    kind
        Its type, one of those in the table.
    at
        Path of the fragment, for the paths of fields; empty for paths from its root.

    Yields
    ------
    tuple of str
        Path of a field, and what it must be.
    """
    yield from _misfits(fragment, kind, at)


def spec_of(template: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The pod spec of a user's template, to read from it; empty for a template that `misfits` refuses."""
    found: Mapping[str, Any] | None = None
    if template and next(misfits(template, POD_TEMPLATE), None) is None:
        found = template.get("spec")
    return found or {}


@cache
def _types() -> Mapping[str, Mapping[str, str]]:
    text = resources.files(__package__).joinpath("pod_shapes.json").read_text(encoding="utf-8")
    types: Mapping[str, Mapping[str, str]] = json.loads(text)["types"]
    return types


def _misfits(value: object, shape: str, at: str) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    if shape.startswith("["):
        yield from _list(value, shape[1:-1], at)
    elif shape.startswith("{"):
        yield from _map(value, shape[1:-1], at)
    elif shape in _types():
        yield from _object(value, _types()[shape], at)
    elif not isinstance(value, _SCALARS[shape]) or (isinstance(value, bool) and shape in {"integer", "number"}):
        yield at, f"must be {_NAMES[shape]}"


def _list(value: object, shape: str, at: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list):
        yield at, "must be a list"
        return
    for place, item in enumerate(value):
        if item is None:
            yield f"{at}[{place}]", "must not be null"
        else:
            yield from _misfits(item, shape, f"{at}[{place}]")


def _map(value: object, shape: str, at: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield at, "must be a map"
        return
    for key, item in value.items():
        if not str(key).startswith("$"):
            yield from _misfits(item, shape, f"{at}[{key}]")


def _object(value: object, fields: Mapping[str, str], at: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield at, "must be a map of fields"
        return
    for key, item in value.items():
        where = f"{at}.{key}" if at else str(key)
        if key == "$patch":
            if item not in ("replace", "delete", None):
                yield where, "must be replace or delete"
        elif str(key).startswith("$"):
            if not isinstance(item, list):
                yield where, "must be a list"
        elif key in fields:
            yield from _misfits(item, fields[key], where)
