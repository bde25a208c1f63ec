"""A user's pod template fragment over a generated pod template, by the rules of strategic merge.

Maps are merged; lists whose items have a name (containers, volumes, environment, ports, mounts) are merged item by
item; other lists and plain values are replaced by the user's; `null` takes a field away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_MERGE_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}


def merge_template(generated: Mapping[str, Any], fragment: Mapping[str, Any]) -> dict[str, Any]:
    """Put the fragment over the generated template; neither is changed.

    Parameters
    ----------
    generated
        A whole pod template.
    fragment
        `metadata` and `spec`, as far as the user says anything.
    """
    merged: dict[str, Any] = dict(generated)
    for key, value in fragment.items():
        present = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(present, Mapping):
            merged[key] = merge_template(present, value)
        elif key in _MERGE_KEYS and isinstance(value, list) and isinstance(present, list):
            merged[key] = _merge_list(present, value, _MERGE_KEYS[key])
        else:
            merged[key] = value
    return merged


def _merge_list(generated: list[Any], fragment: list[Any], key: str) -> list[Any]:
    merged = list(generated)
    places = {item.get(key): index for index, item in enumerate(merged) if isinstance(item, Mapping)}
    for item in fragment:
        index = places.get(item.get(key)) if isinstance(item, Mapping) else None
        if index is None:
            merged.append(item)
        else:
            merged[index] = merge_template(merged[index], item)
    return merged
