"""
Slimming and mechanical repair of a specification: only what is wrapped, and only what a generator can read.

Descriptions are left out: they are sentences of another project, and the canonical models have their own.
"""

from __future__ import annotations

import re
from typing import Any

KEPT_OPERATIONS = frozenset(
    """
    get_ping get_diag get_conf get_reconfigure get_shares get_licenses get_resources
    get_nodes post_nodes get_node post_node delete_node post_new_node
    get_jobs delete_jobs get_jobs_state get_job post_job delete_job post_job_submit get_job_requeue post_jobs_requeue
    get_partitions post_partitions get_partition delete_partition
    get_reservations post_reservations get_reservation post_reservation delete_reservation
    """.split()  # noqa: SIM905 - a table reads better than a list of quotes
)
"""Names of operations without prefix and version."""

_METHODS = frozenset({"get", "post", "put", "delete", "patch"})
_SCHEMA = "#/components/schemas/"


def slim(spec: dict[str, Any], version: str) -> dict[str, Any]:
    """
    Return the part of a specification that concerns the wrapped operations of one data parser.

    Parameters
    ----------
    spec
        What ``slurmrestd --generate-openapi-spec`` prints.
    version
        Data parser, e.g. ``v0.0.42``.
    """
    prefix = f"/slurm/{version}"
    paths: dict[str, Any] = {}
    for path, methods in spec["paths"].items():
        if not path.startswith(f"{prefix}/"):
            continue
        kept = {
            method: _operation(operation, name)
            for method, operation in methods.items()
            if method in _METHODS and (name := operation_name(operation["operationId"])) in KEPT_OPERATIONS
        }
        if kept:
            paths[path.removeprefix(prefix)] = kept
    schemas = spec["components"]["schemas"]
    needed = sorted(_reachable(paths, schemas))
    return {
        "openapi": spec["openapi"],
        "info": {"title": "slurmrestd", "version": version},
        "paths": {path: _repaired(paths[path], version) for path in sorted(paths)},
        "components": {"schemas": {_plain(name, version): _repaired(schemas[name], version) for name in needed}},
    }


def operation_name(operation_id: str) -> str:
    """Return the name of an operation: ``slurm_v0042_get_nodes`` is ``get_nodes``."""
    return re.sub(r"^slurm_v\d+_", "", operation_id)


def _operation(operation: dict[str, Any], name: str) -> dict[str, Any]:
    kept: dict[str, Any] = {key: operation[key] for key in ("parameters", "requestBody") if key in operation}
    good = operation["responses"].get("200", {})
    return {"operationId": name, "tags": ["slurm"], **kept, "responses": {"200": {"description": "", **good}}}


def _reachable(node: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of all schemas that are referred to, directly or not."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, list):
            waiting.extend(current)
        elif isinstance(current, dict):
            reference = current.get("$ref")
            if isinstance(reference, str):
                name = reference.removeprefix(_SCHEMA)
                if name not in found:
                    found.add(name)
                    waiting.append(schemas[name])
            waiting.extend(current.values())
    return found


def _plain(name: str, version: str) -> str:
    """Return the name of a schema without the version: dots in names trouble generators."""
    return name.removeprefix(f"{version}_")


def _repaired(node: Any, version: str) -> Any:
    """Return a copy without descriptions, with plain names, and without what makes a specification invalid."""
    if isinstance(node, list):
        return [_repaired(entry, version) for entry in node]
    if not isinstance(node, dict):
        return node
    copy = {}
    for key, value in node.items():
        if key in {"description", "deprecated", "summary", "example", "style", "explode", "default"} and not isinstance(
            value, dict
        ):
            # Defaults are wrong in old parsers (numbers for Booleans), and nothing needs them.
            continue
        if key in {"allowEmptyValue", "allowReserved"}:
            continue
        if key == "required" and value == []:
            continue
        if key == "$ref":
            copy[key] = _SCHEMA + _plain(value.removeprefix(_SCHEMA), version)
        else:
            copy[key] = _repaired(value, version)
    if "schema" not in copy and "content" in copy and "description" not in copy and "in" not in copy:
        copy["description"] = ""
    return copy
