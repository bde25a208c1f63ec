"""Write what pod templates are merged and checked by: ``python -m hack.documents.tables.merge_keys write|check``.

Two tables go into the package. The first says how lists and maps of a pod template are merged. It comes from the API
server's own description of its types (``/openapi/v2``, the extensions ``x-kubernetes-patch-merge-key`` and
``x-kubernetes-patch-strategy``), which has some megabytes; what is about pod templates has a few kilobytes. The second
says of what kind each field is (a text, a number, a list of what), so that a template of another shape is refused by
its field before anything reads it. The API server is the one of the local Kubernetes, whose version is pinned.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hack.localkube import control_plane_only
from hack.localkube.kubectl import Kubectl

__all__ = ["SHAPES", "TABLE", "main", "shapes", "table"]

TABLE: Final = Path(__file__).parents[3] / "slinky_operator" / "slurm" / "pod_templates" / "merge_keys.json"

SHAPES: Final = TABLE.with_name("pod_shapes.json")

CLAIM: Final = "io.k8s.api.core.v1.PersistentVolumeClaim"

ROOT: Final = "io.k8s.api.core.v1.PodTemplateSpec"

_KEY: Final = "x-kubernetes-patch-merge-key"
_STRATEGY: Final = "x-kubernetes-patch-strategy"


def table(document: Mapping[str, Any]) -> dict[str, Any]:
    """Make the table from an OpenAPI document, version 2.

    Returns
    -------
    dict
        ``kubernetes`` is the version of the server. ``types`` has for each type reached from a pod template those
        fields that are not simply replaced or merged: ``of`` is the type of the field or its items, ``key`` the
        merge key of a list, ``list`` says that a list is merged at all, ``retain`` that an item's fields exclude
        each other.
    """
    definitions = document["definitions"]
    types: dict[str, Any] = {}
    waiting = [ROOT]
    while waiting:
        reference = waiting.pop()
        name = _short(reference)
        if name in types:
            continue
        types[name] = {}
        for field, schema in (definitions[reference].get("properties") or {}).items():
            target = _reference(schema) or _reference(schema.get("items") or {})
            strategies = str(schema.get(_STRATEGY) or "").split(",")
            about: dict[str, Any] = {}
            if target and definitions[target].get("properties"):
                about["of"] = _short(target)
                waiting.append(target)
            if schema.get("type") == "array" and "merge" in strategies:
                about["list"] = True
                if _KEY in schema:
                    about["key"] = schema[_KEY]
            elif schema.get("type") == "array":
                # Replaced as a whole: what its items look like does not matter.
                about = {}
            if "retainKeys" in strategies:
                about["retain"] = True
            if about:
                types[name][field] = about
    return {"kubernetes": document["info"]["version"], "types": _pruned(types)}


def shapes(document: Mapping[str, Any]) -> dict[str, Any]:
    """Make the table of shapes from an OpenAPI document, version 2.

    Returns
    -------
    dict
        ``types`` has for each type reached from a pod template or a claim the shape of each field: ``string``,
        ``integer``, ``number``, ``boolean``, ``any`` (a quantity, or a number or text), the name of a type, ``[x]`` for
        a list and ``{x}`` for a map of these.
    """
    definitions = document["definitions"]
    types: dict[str, dict[str, str]] = {}
    waiting = [ROOT, CLAIM]
    while waiting:
        reference = waiting.pop()
        if _short(reference) in types:
            continue
        types[_short(reference)] = fields = {}
        for field, schema in (definitions[reference].get("properties") or {}).items():
            fields[field] = _shape(schema, definitions, waiting)
    return {"kubernetes": document["info"]["version"], "types": {name: types[name] for name in sorted(types)}}


def _shape(schema: Mapping[str, Any], definitions: Mapping[str, Any], waiting: list[str]) -> str:
    reference = _reference(schema)
    if reference:
        target = definitions[reference]
        if target.get("properties"):
            waiting.append(reference)
            return _short(reference)
        # Quantities and numbers or texts: the API server reads both.
        return "string" if target.get("format") == "date-time" else "any"
    match schema.get("type"):
        case "array":
            return f"[{_shape(schema['items'], definitions, waiting)}]"
        case "object" if "additionalProperties" in schema:
            return f"{{{_shape(schema['additionalProperties'], definitions, waiting)}}}"
        case "string" | "integer" | "number" | "boolean" as kind:
            return str(kind)
        case _:
            return "any"


def _pruned(types: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Without fields below which nothing has a merge key: maps are merged anyway."""
    useful: set[str] = set()
    while True:
        found = {
            name
            for name, fields in types.items()
            if any("list" in about or about.get("of") in useful for about in fields.values())
        }
        if found == useful:
            break
        useful = found
    return {
        name: {
            field: {word: value for word, value in about.items() if word != "of" or value in useful}
            for field, about in types[name].items()
            if "list" in about or about.get("of") in useful
        }
        for name in sorted(useful)
    }


def fetch() -> dict[str, Any]:
    """Ask the pinned API server for its description."""
    name = f"merge-keys-{os.getpid()}"
    paths = control_plane_only.up(name)
    try:
        document: dict[str, Any] = json.loads(Kubectl(paths.kubeconfig)("get", "--raw", "/openapi/v2"))
    finally:
        control_plane_only.down(name)
    return document


def main(arguments: list[str] | None = None) -> int:
    """Run the program; gives 0, or 1 if ``check`` found a difference."""
    parser = argparse.ArgumentParser(prog="python -m hack.documents.tables.merge_keys", description=__doc__)
    parser.add_argument("action", choices=("write", "check"))
    action = parser.parse_args(arguments).action
    document = fetch()
    status = 0
    for path, found in ((TABLE, table(document)), (SHAPES, shapes(document))):
        wanted = json.dumps(found, indent=1, sort_keys=True) + "\n"
        if action == "write":
            path.write_text(wanted, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != wanted:
            print(
                f"{path} is not what the API server says; run python -m hack.documents.tables.merge_keys write",
                file=sys.stderr,
            )
            status = 1
    return status


def _reference(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref") or "").removeprefix("#/definitions/")


def _short(reference: str) -> str:
    return reference.rpartition(".")[2]


if __name__ == "__main__":
    sys.exit(main())
