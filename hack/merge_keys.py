"""Write the table of merge keys that pod templates are merged by: ``python -m hack.merge_keys write|check``.

How lists and maps of a pod template are merged stands in the API server's own description of its types
(``/openapi/v2``, the extensions ``x-kubernetes-patch-merge-key`` and ``x-kubernetes-patch-strategy``). That description
has some megabytes; what is about pod templates has a few kilobytes, and goes into the package. The API server is the
one of the local Kubernetes, whose version is pinned.
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

__all__ = ["TABLE", "main", "table"]

TABLE: Final = Path(__file__).parents[1] / "slinky_operator" / "slurm" / "merge_keys.json"

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


def _pruned(types: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Without fields below which nothing has a merge key: maps are merged all the same."""
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
    parser = argparse.ArgumentParser(prog="python -m hack.merge_keys", description=__doc__)
    parser.add_argument("action", choices=("write", "check"))
    action = parser.parse_args(arguments).action
    wanted = json.dumps(table(fetch()), indent=1, sort_keys=True) + "\n"
    if action == "write":
        TABLE.write_text(wanted, encoding="utf-8")
        return 0
    if TABLE.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{TABLE} is not what the API server says; run python -m hack.merge_keys write", file=sys.stderr)
    return 1


def _reference(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref") or "").removeprefix("#/definitions/")


def _short(reference: str) -> str:
    return reference.rpartition(".")[2]


if __name__ == "__main__":
    sys.exit(main())
