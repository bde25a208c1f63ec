"""Placeholder of the generated operations; see the generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_client import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

PARSERS: tuple[str, ...] = ("v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")

# A GET that changes something is not repeated.
_UNSAFE_READS = frozenset({"get_reconfigure", "get_job_requeue"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation: method and path template below the version."""

    operation: str
    method: str
    path: str

    @property
    def is_safe(self) -> bool:
        """Whether it changes nothing and may be repeated at will."""
        return self.method == "GET" and self.operation not in _UNSAFE_READS

    def url(self, version: str, parameters: Mapping[str, str]) -> str:
        """Return the path with its parameters, which must be quoted already."""
        return f"/slurm/{version}{self.path.format_map(dict(parameters))}"


PING = Endpoint("get_ping", "GET", "/ping/")

_OPERATIONS = {
    name: Endpoint(name, method, path)
    for name, method, path in (
        ("get_ping", "GET", "/ping/"),
        ("get_diag", "GET", "/diag/"),
        ("get_nodes", "GET", "/nodes/"),
        ("post_nodes", "POST", "/nodes/"),
        ("get_node", "GET", "/node/{node_name}"),
        ("post_node", "POST", "/node/{node_name}"),
        ("delete_node", "DELETE", "/node/{node_name}"),
        ("get_jobs", "GET", "/jobs/"),
        ("get_job", "GET", "/job/{job_id}"),
        ("delete_job", "DELETE", "/job/{job_id}"),
        ("get_jobs_state", "GET", "/jobs/state/"),
        ("get_partitions", "GET", "/partitions/"),
        ("get_partition", "GET", "/partition/{partition_name}"),
        ("get_reconfigure", "GET", "/reconfigure/"),
    )
}


def endpoint(version: str, operation: str) -> Endpoint:
    """Return an operation of a data parser; NotSupported names the parsers that have it."""
    if operation == "post_nodes" and version < "v0.0.42":
        raise errors.NotSupported(f"{version} has no {operation}", available_in=parsers_with(operation))
    return _OPERATIONS[operation]


def parsers_with(operation: str) -> tuple[str, ...]:
    """Return the data parsers that have an operation, oldest first."""
    return tuple(parser for parser in PARSERS if operation != "post_nodes" or parser >= "v0.0.42")


def endpoints(version: str) -> tuple[Endpoint, ...]:
    """Return all operations of a data parser."""
    return tuple(each for each in _OPERATIONS.values() if version in parsers_with(each.operation))


class _Everything(frozenset[str]):
    def __contains__(self, item: object) -> bool:
        return True


def fields(version: str, kind: str) -> frozenset[str]:
    """Return the keys a data parser writes for an object of a kind."""
    return _Everything()
