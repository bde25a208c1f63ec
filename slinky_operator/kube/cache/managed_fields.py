"""Which fields of an object the operator's server-side apply has set, as the API server records it.

An object that contains all wanted fields may contain more: API server defaults, additions by people and admission
webhooks, and fields of an earlier manifest of the operator. Only the last must be removed, and only the API server can
distinguish them: it records for each field manager the paths it has applied, in `metadata.managedFields`. A path of the
operator that the wanted manifest no longer has is removed by applying that manifest. So nothing has to be stored beside
the object, and an object from an older version of the operator needs no migration.

Paths end at what the API server treats as one value (a node selector, the tolerations). Such a value is compared as
a whole, except for defaults that the API server sets inside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from slinky_operator.kube.objects import Object

Fields = Mapping[str, Any]
"""`fieldsV1`: `f:<name>`, `k:<keys of a list's item>` and `v:<value of a set>`, each with the same inside."""

_DEFAULTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "apiVersion": ("v1",),
    "kind": ("PersistentVolumeClaim",),
    "status": ({"phase": "Pending"},),
    "creationTimestamp": (None,),
    "volumeMode": ("Filesystem",),
    "divisor": ("0",),
    "expirationSeconds": (3600,),
}
"""What the API server adds inside values that it treats as one."""


def fields_of(obj: Object, manager: str) -> Fields | None:
    """Fields that a manager has applied; `None` if it has applied none, or that is not known."""
    for entry in obj["metadata"].get("managedFields") or ():
        if _is_applied_by(entry, manager):
            fields: Fields = entry.get("fieldsV1") or {}
            return fields
    return None


def keep_fields_of(manager: str) -> Callable[[Object], None]:
    """Make a pruning function that drops the records of all other managers."""

    def prune(obj: Object) -> None:
        kept = [one for one in obj["metadata"].pop("managedFields", None) or () if _is_applied_by(one, manager)]
        if kept:
            obj["metadata"]["managedFields"] = kept

    return prune


def inside(fields: Fields | None, *names: str) -> Fields | None:
    """Fields below a path of names; `None` if nothing is known."""
    for name in names:
        if fields is None:
            return None
        fields = fields.get(f"f:{name}") or {}
    return fields


def has_leftovers(fields: Fields, wanted: Any, live: Any) -> bool:
    """Whether `live` shows a field that was applied and that `wanted` no longer has.

    Parameters
    ----------
    fields
        What was applied.
    wanted, live
        The same part of an object, as it is to be and as it is; everything wanted is in `live`.
    """
    for key, below in fields.items():
        if key == "." or key.startswith("i:"):
            continue
        found, item = _at(wanted, key)
        if not found:
            return True
        _, seen = _at(live, key)
        if below:
            if has_leftovers(below, item, seen):
                return True
        elif item and not _same(item, seen):
            # Others may fill an empty value of the operator: `resources: {}` does not set limits.
            return True
    return False


def applied_part(fields: Fields, live: Any) -> Any:
    """Cut down `live` to what was applied."""
    below = {key: inner for key, inner in fields.items() if key != "."}
    if not below:
        return live
    if isinstance(live, list):
        kept = []
        for item in live:
            inner = next((inner for key, inner in below.items() if _is_item(item, key)), None)
            if inner is not None:
                kept.append(applied_part(inner, item))
        return kept
    if not isinstance(live, dict):
        return live
    return {
        key[2:]: applied_part(inner, live[key[2:]])
        for key, inner in below.items()
        if key.startswith("f:") and key[2:] in live
    }


def _is_applied_by(entry: Mapping[str, Any], manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")


def _at(value: Any, key: str) -> tuple[bool, Any]:
    """Whether a value has something at one step of a path, and what."""
    if key.startswith("f:"):
        return (True, value[key[2:]]) if isinstance(value, dict) and key[2:] in value else (False, None)
    for item in value if isinstance(value, list) else ():
        if _is_item(item, key):
            return True, item
    return False, None


def _is_item(item: Any, key: str) -> bool:
    """Whether an item of a list is the one of a path; keys that it leaves out have their defaults."""
    if key.startswith("v:"):
        return bool(item == json.loads(key[2:]))
    if not key.startswith("k:") or not isinstance(item, dict):
        return False
    return all(name not in item or item[name] == value for name, value in json.loads(key[2:]).items())


def _same(wanted: Any, live: Any) -> bool:
    """Whether nothing is in `live` that is not wanted, below a value that the API server treats as one."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(
            _same(wanted[name], value) if wanted.get(name) is not None else value in _DEFAULTS.get(name, ({}, [], None))
            for name, value in live.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(_same(*pair) for pair in zip(wanted, live, strict=True))
    return True
