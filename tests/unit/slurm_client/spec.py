"""
Checks JSON against the slimmed specifications of the data parsers, as far as those go.

The specifications know types, properties and references; nothing in them is required and null is never mentioned.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import hack.client.wire

_SPECS = Path(hack.client.wire.__file__).parent / "specs"
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@functools.cache
def spec(version: str) -> dict[str, Any]:
    """Return the slimmed specification of a data parser, of slurmctld's half and of slurmdbd's."""
    slurmctld, slurmdbd = (json.loads((_SPECS / f"{version}{half}.json").read_text()) for half in ("", "-slurmdb"))
    paths = slurmctld["paths"] | {f"/slurmdb{path}": methods for path, methods in slurmdbd["paths"].items()}
    schemas = slurmdbd["components"]["schemas"] | slurmctld["components"]["schemas"]
    return {**slurmctld, "paths": paths, "components": {"schemas": schemas}}


def operation(version: str, name: str) -> dict[str, Any]:
    """Return an operation by its name."""
    for methods in spec(version)["paths"].values():
        for found in methods.values():
            if found["operationId"] == name:
                return dict(found)
    raise KeyError(name)


def complaints_about_answer(version: str, name: str, body: Any) -> list[str]:
    """Return what is wrong with the answer of an operation."""
    schema = operation(version, name)["responses"]["200"]["content"]["application/json"]["schema"]
    return complaints(version, schema, body, "")


def complaints_about_request(version: str, name: str, body: Any) -> list[str]:
    """Return what is wrong with the body of a request."""
    schema = operation(version, name)["requestBody"]["content"]["application/json"]["schema"]
    return complaints(version, schema, body, "")


def complaints(version: str, schema: dict[str, Any], value: Any, where: str) -> list[str]:
    """Return what is wrong with a value, each with the path to it."""
    if "$ref" in schema:
        schema = spec(version)["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    kind = schema.get("type")
    if kind is not None and not isinstance(value, _TYPES[kind]):
        return [f"{where}: {value!r} is no {kind}"]
    if kind in {"integer", "number"} and isinstance(value, bool):
        return [f"{where}: {value!r} is no {kind}"]
    found = []
    if isinstance(value, list) and "items" in schema:
        for index, entry in enumerate(value):
            found += complaints(version, schema["items"], entry, f"{where}[{index}]")
    if isinstance(value, dict) and "properties" in schema:
        for key, entry in value.items():
            if key not in schema["properties"]:
                found.append(f"{where}.{key} is unknown")
            else:
                found += complaints(version, schema["properties"][key], entry, f"{where}.{key}")
    return found
