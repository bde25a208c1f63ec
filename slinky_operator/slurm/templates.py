"""A user's pod template, or a fragment of one, over the generated one, by the rules of a strategic merge.

Mappings are merged, `null` removes, lists with a merge key are merged item by item, all other lists are replaced. The
keys are those of the pod's schema; `$patch` directives are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

MERGE_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
}


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one object over another; neither is changed, and the result shares nothing with them."""
    result: dict[str, Any] = {key: deepcopy(value) for key, value in base.items()}
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            below = result.get(key)
            result[key] = merge(below if isinstance(below, Mapping) else {}, value)
        elif isinstance(value, list) and key in MERGE_KEYS:
            below = result.get(key)
            result[key] = _merge_items(below if isinstance(below, list) else [], value, MERGE_KEYS[key])
        else:
            result[key] = deepcopy(value)
    return result


def _merge_items(base: Sequence[Any], over: Sequence[Any], key: str) -> list[Any]:
    """Items of the base in their order, merged with those of the same key; then the new ones."""
    items = [deepcopy(item) for item in base]
    places = {item[key]: place for place, item in enumerate(items) if isinstance(item, Mapping) and key in item}
    for item in over:
        if not isinstance(item, Mapping):
            items.append(deepcopy(item))
            continue
        place = places.get(item.get(key))
        if place is None:
            places[item.get(key)] = len(items)
            items.append(merge({}, item))
        elif key == "name" and ("valueFrom" in item or "value" in item):
            # The two exclude each other: merged they would be refused.
            items[place] = merge({}, item)
        else:
            items[place] = merge(items[place], item)
    return items
