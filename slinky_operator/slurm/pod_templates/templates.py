"""A user's pod template, or a fragment of one, over the generated one, by the rules of a strategic merge.

Which lists are merged item by item, and by which key, is what the API server says of its own types; the table comes
from there (`hack.documents.tables.merge_keys`). The directives `$patch`, `$retainKeys` and `$deleteFromPrimitiveList`
mean what they mean to `kubectl patch --type=strategic`. Three things differ, all in favour of somebody who writes a
manifest rather than a patch:

- generated items keep their place and new items follow, so that the user's variables can refer to generated ones;
- where the fields of an item exclude each other, as the sources of a volume and of a variable do, the user's source
  takes the place of the generated one and need not be preceded by a deletion;
- `$setElementOrder`, which only `kubectl apply` writes, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cache
from importlib import resources
from typing import Any, Final

from slinky_operator.slurm.pod_templates.shapes import POD_SPEC, POD_TEMPLATE, misfits

__all__ = ["POD_SPEC", "POD_TEMPLATE", "RefusedFragment", "merge"]

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"

_VARIABLE: Final = "env"
_SOURCES_OF_A_VARIABLE: Final = frozenset({"value", "valueFrom"})


class RefusedFragment(ValueError):
    """A fragment that cannot be merged; carries the field, from the fragment's root."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


def merge(base: Mapping[str, Any], over: Mapping[str, Any], kind: str = POD_TEMPLATE) -> dict[str, Any]:
    """Lay a fragment over an object; neither is changed, and the result shares nothing with them.

    Parameters
    ----------
    base, over
        The object, and the fragment.
    kind
        Type of both, one of those in the table.

    Raises
    ------
    RefusedFragment
        If a field is of the wrong kind, a directive means nothing where it stands, or an item has no merge key.
    """
    for field, reason in misfits(over, kind):
        raise RefusedFragment(field, reason)
    return _merge(base, over, kind, "")


@cache
def _types() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    text = resources.files(__package__).joinpath("merge_keys.json").read_text(encoding="utf-8")
    types: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(text)["types"]
    return types


def _merge(base: Mapping[str, Any], over: Mapping[str, Any], kind: str, at: str) -> dict[str, Any]:
    directive = over.get(_PATCH)
    if directive not in (None, "replace", "delete"):
        raise RefusedFragment(f"{at}{_PATCH}", f"is {directive!r}, not replace or delete")
    if directive == "delete":
        return {}
    result: dict[str, Any] = {} if directive == "replace" else {key: _copied(value) for key, value in base.items()}
    fields = _types().get(kind, {})
    for key, value in over.items():
        if key.startswith(_ORDER):
            raise RefusedFragment(f"{at}{key}", "is not served: lists keep their order, and new items follow")
        if key.startswith(_DELETE_FROM):
            name = key.removeprefix(_DELETE_FROM)
            result[name] = _without(result.get(name), value, fields.get(name, {}), f"{at}{key}")
        elif value is None:
            result.pop(key, None)
        elif key not in {_PATCH, _RETAIN}:
            result[key] = _merge_value(result.get(key), value, key, fields.get(key, {}), f"{at}{key}")
    retained = over.get(_RETAIN)
    return result if retained is None else {key: value for key, value in result.items() if key in retained}


def _copied(value: Any) -> Any:
    """A copy that shares nothing which can change; `deepcopy` is slow, and most is what JSON is made of."""
    if isinstance(value, str):
        return value
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    if type(value) is list:
        return [_copied(one) for one in value]
    return deepcopy(value)


def _merge_value(below: object, value: object, name: str, about: Mapping[str, Any], at: str) -> Any:
    if isinstance(value, Mapping):
        return _merge(below if isinstance(below, Mapping) else {}, value, about.get("of", ""), f"{at}.")
    if isinstance(value, list) and about.get("list"):
        return _merge_list(below if isinstance(below, list) else [], value, name, about, at)
    _check_plain(value, at)
    return _copied(value)


def _merge_list(base: Sequence[Any], over: Sequence[Any], name: str, about: Mapping[str, Any], at: str) -> list[Any]:
    """Items of the base in their order, merged with those of the same key; then the new ones."""
    key = about.get("key")
    if key is None:
        # Words: those that are not there yet are added.
        return [*map(_copied, base), *(word for word in dict.fromkeys(over) if word not in base)]
    if any(isinstance(item, Mapping) and item.get(_PATCH) == "replace" for item in over):
        # It applies to the list that contains it, and its other keys are ignored, as in kubectl.
        base, over = [], [item for item in over if not (isinstance(item, Mapping) and item.get(_PATCH) == "replace")]
    items: dict[Any, Any] = {}
    for place, item in enumerate(base):
        items[item.get(key) if isinstance(item, Mapping) else ("generated", place)] = _copied(item)
    for place, item in enumerate(over):
        where = f"{at}[{place}]"
        if not isinstance(item, Mapping) or item.get(key) is None:
            raise RefusedFragment(where, f"has no {key}, the key that distinguishes items of {name}")
        identity = item[key]
        if item.get(_PATCH) == "delete":
            items.pop(identity, None)
            continue
        merged = _merge(items.get(identity, {}), item, about.get("of", ""), f"{where}.")
        items[identity] = _exclusive(merged, item, name, key, retain=bool(about.get("retain")))
    return list(items.values())


def _exclusive(merged: dict[str, Any], item: Mapping[str, Any], name: str, key: str, *, retain: bool) -> dict[str, Any]:
    """Without the generated source where the user's item names another."""
    given = {word for word, value in item.items() if value is not None and not word.startswith("$")}
    if retain and given - {key}:
        return {word: value for word, value in merged.items() if word in given}
    if name == _VARIABLE and given & _SOURCES_OF_A_VARIABLE:
        return {word: value for word, value in merged.items() if word in given or word not in _SOURCES_OF_A_VARIABLE}
    return merged


def _without(base: object, words: object, about: Mapping[str, Any], at: str) -> list[Any]:
    """A list of words without some."""
    if not about.get("list") or "key" in about:
        raise RefusedFragment(at, "means nothing here: the list is not one of words that are merged")
    gone = words if isinstance(words, list) else [words]
    return [word for word in (base if isinstance(base, list) else []) if word not in gone]


def _check_plain(value: object, at: str) -> None:
    """Refuse directives in what is replaced as a whole, where they would end up in the object."""
    items: Iterable[object] = value if isinstance(value, list) else ()
    for place, item in enumerate(items):
        if isinstance(item, Mapping):
            for word in item:
                if str(word).startswith("$"):
                    raise RefusedFragment(
                        f"{at}[{place}].{word}", "means nothing here: the list is replaced as a whole"
                    )
