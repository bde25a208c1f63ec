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
    post_job_allocate
    get_partitions post_partitions get_partition delete_partition
    get_reservations post_reservations get_reservation post_reservation delete_reservation
    """.split()  # noqa: SIM905 - a table reads better than a list of quotes
)
"""Names of slurmctld's operations without prefix and version."""

KEPT_OF_SLURMDBD = frozenset(
    """
    db_get_ping db_get_diag db_get_conf db_get_config db_get_tres db_get_instances db_get_instance
    db_get_jobs db_get_job db_post_jobs db_post_job
    db_get_clusters db_get_cluster db_post_clusters db_delete_cluster
    db_get_accounts db_get_account db_post_accounts db_post_accounts_association db_delete_account
    db_get_users db_get_user db_post_users db_post_users_association db_delete_user
    db_get_associations db_get_association db_post_associations db_delete_associations db_delete_association
    db_get_qos db_get_single_qos db_post_qos db_delete_single_qos
    db_get_wckeys db_get_wckey db_post_wckeys db_delete_wckey
    """.split()  # noqa: SIM905
)
"""Names of slurmdbd's operations, some of which slurmctld has as well, without version. Left out are those that write
all of the configuration at once, and new TRES, which slurmctld registers."""

SERVICES = ("slurm", "slurmdb")
"""The first part of a path: whose operations are below it, slurmctld's or slurmdbd's."""

_METHODS = frozenset({"get", "post", "put", "delete", "patch"})
_SCHEMA = "#/components/schemas/"


def slim(spec: dict[str, Any], version: str, service: str = "slurm") -> dict[str, Any]:
    """
    Return the part of a specification that concerns the wrapped operations of one data parser and one service.

    Parameters
    ----------
    spec
        What ``slurmrestd --generate-openapi-spec`` prints.
    version
        Data parser, e.g. ``v0.0.42``.
    service
        One of `SERVICES`.
    """
    prefix, wanted = f"/{service}/{version}", KEPT_OPERATIONS if service == "slurm" else KEPT_OF_SLURMDBD
    paths: dict[str, Any] = {}
    for path, methods in spec["paths"].items():
        if not path.startswith(f"{prefix}/"):
            continue
        kept = {
            method: _operation(operation, name)
            for method, operation in methods.items()
            if method in _METHODS and (name := operation_name(operation["operationId"])) in wanted
        }
        if kept:
            paths[path.removeprefix(prefix)] = kept
    schemas = spec["components"]["schemas"]
    needed = sorted(_reachable(paths, schemas))
    return {
        "openapi": spec["openapi"],
        "info": {"title": service, "version": version},
        "paths": {path: _repaired(paths[path], version) for path in sorted(paths)},
        "components": {"schemas": {_plain(name, version): _repaired(schemas[name], version) for name in needed}},
    }


def operation_name(operation_id: str) -> str:
    """Return the name of an operation: ``slurm_v0042_get_jobs`` is ``get_jobs``, slurmdbd's is ``db_get_jobs``."""
    return re.sub(r"^slurm_v\d+_", "", re.sub(r"^slurmdb_v\d+_", "db_", operation_id))


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
