"""Whether an object is one that the CRD of its kind takes: its fields, by the schema, and its values, by the types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from slinky_api.errors import SlinkyApiError
from slinky_api.v1alpha1 import Cluster, LoginSet, NodeSet, Token
from slinky_api.v1alpha1.common import ApiObject

ROOT: Final = Path(__file__).parents[3]
KINDS: Final[dict[str, type[ApiObject]]] = {
    "Cluster": Cluster,
    "NodeSet": NodeSet,
    "LoginSet": LoginSet,
    "Token": Token,
}


@cache
def schema(kind: str) -> Mapping[str, Any]:
    path = ROOT / "config" / "crd" / f"slinky.slurm.net_{kind.lower()}s.yaml"
    crd = yaml.safe_load(path.read_text(encoding="utf-8"))
    (version,) = crd["spec"]["versions"]
    found: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def errors(obj: Mapping[str, Any]) -> list[str]:
    """What is wrong with an object; nothing if it is taken."""
    found = [*unknown(schema(obj["kind"]), obj["spec"], "spec")]
    try:
        KINDS[obj["kind"]].parse(obj)
    except SlinkyApiError as error:
        found.append(str(error))
    return found


def unknown(fields: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    """Fields that the schema does not have, and maps and lists where it has others."""
    if value is None or fields.get("x-kubernetes-preserve-unknown-fields"):
        return
    if "items" in fields:
        if not isinstance(value, list):
            yield f"{path}: no list"
            return
        for number, one in enumerate(value):
            yield from unknown(fields["items"], one, f"{path}[{number}]")
    elif "properties" in fields:
        if not isinstance(value, Mapping):
            yield f"{path}: no map"
            return
        for key, one in value.items():
            if key in fields["properties"]:
                yield from unknown(fields["properties"][key], one, f"{path}.{key}")
            else:
                yield f"{path}.{key}: unknown"
