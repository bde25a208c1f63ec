"""Partitions that are made or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slurm_client.encode.values import listed, minutes, seconds, set_number
from slurm_client.models.values import INFINITE

PLACES = {
    "state": "partition.state",
    "nodes": "nodes.configured",
    "max_time": "maximums.time",
    "default_time": "defaults.time",
    "max_nodes": "maximums.nodes",
    "min_nodes": "minimums.nodes",
    "max_cpus_per_node": "maximums.cpus_per_node",
    "default_memory_per_cpu_mib": "defaults.partition_memory_per_cpu",
    "default_memory_per_node_mib": "defaults.partition_memory_per_node",
    "priority_tier": "priority.tier",
    "priority_job_factor": "priority.job_factor",
    "grace_time": "grace_time",
    "qos": "qos.assigned",
    "allowed_qos": "qos.allowed",
    "allowed_accounts": "accounts.allowed",
    "denied_accounts": "accounts.deny",
    "allowed_groups": "groups.allowed",
    "alternate": "alternate",
    "flags": "flags",
}
"""Where in the object of a partition a wish is written."""

_PLAIN = frozenset({"min_nodes", "priority_tier", "priority_job_factor"})
"""Numbers without marks for unset and infinite."""


def partition(name: str, wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Write what is wished about a partition, by the names that calls give it; what is not wished stays as it is."""
    body: dict[str, Any] = {"name": name}
    for key, value in wishes.items():
        if value is None:
            continue
        *folders, last = PLACES[key].split(".")
        place = body
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = _written(key, value)
    return body


def _written(key: str, value: Any) -> Any:
    match key:
        case "state":
            return [value]
        case "flags":
            return listed(value)
        case "max_time" | "default_time":
            return minutes(value)
        case "grace_time":
            return seconds(value)
        case _ if key in _PLAIN or isinstance(value, str):
            return value
        case _:
            return {"set": True, "infinite": True, "number": 0} if value is INFINITE else set_number(value)
