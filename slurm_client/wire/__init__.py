"""
What each data parser has: operations, and keys of its objects. The only door to the generated modules.

The modules ``v0_0_NN`` are generated from slurmrestd's own specifications and imported when a parser is first spoken.
The same parser may have more operations on a newer server than on an older one; what is said here is what the newest
server known here serves.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

from slurm_client import errors
from slurm_client.wire.endpoint import CHANGES_NOTHING, Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CHANGES_NOTHING",
    "PARSERS",
    "PING",
    "Endpoint",
    "endpoint",
    "endpoints",
    "fields",
    "parsers_with",
    "unknown_fields",
    "words",
]

PARSERS: tuple[str, ...] = ("v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45")
"""Data parsers this library speaks, oldest first; `SOURCES` of the generator has the specification of each."""

OF_SLURMDBD = "db_"
"""How the names of slurmdbd's operations begin; some have a namesake of slurmctld."""

PING = Endpoint("get_ping", "GET", "/ping/")
"""Asked for while it is not known yet which parsers a server has."""


def endpoint(version: str, operation: str) -> Endpoint:
    """
    Return an operation of a data parser.

    Raises
    ------
    NotSupported
        If the parser has no such operation; names the parsers that have it.
    """
    found = _operations(version, _whose(operation)).get(operation)
    if found is None:
        having = parsers_with(operation)
        raise errors.NotSupported(
            f"data parser {version} has no {operation}; {', '.join(having) or 'none'} has", available_in=having
        )
    return found


def endpoints(version: str) -> tuple[Endpoint, ...]:
    """Return all operations of a data parser."""
    return (*_operations(version, "").values(), *_operations(version, OF_SLURMDBD).values())


def parsers_with(operation: str) -> tuple[str, ...]:
    """Return the data parsers that have an operation, oldest first."""
    return tuple(version for version in PARSERS if operation in _operations(version, _whose(operation)))


@functools.cache
def fields(version: str, model: str) -> frozenset[str]:
    """Return the keys of an object, e.g. ``Node`` or ``UpdateNodeMsg``; none if the parser has no such object."""
    # What both services have, such as the part about errors, is the same.
    found = getattr(_module(version, "models"), model, None) or getattr(_module(version, "slurmdb_models"), model, None)
    return frozenset(getattr(found, "__annotations__", ()))


@functools.cache
def words(version: str, place: str) -> frozenset[str]:
    """Return the words that a parser knows at a place, e.g. ``ReservationDescMsgFlagsItem``; none if it says none."""
    known: Mapping[str, frozenset[str]] = _module(version, "models").WORDS
    return known.get(place, frozenset())


def unknown_fields(version: str, model: str, body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the keys of a request that a parser does not have, each with the parsers that have it."""
    known = fields(version, model)
    return {
        key: tuple(parser for parser in PARSERS if key in fields(parser, model)) for key in body if key not in known
    }


@functools.cache
def _operations(version: str, whose: str) -> Mapping[str, Endpoint]:
    operations: Mapping[str, Endpoint] = _module(version, "slurmdb_operations" if whose else "operations").OPERATIONS
    return operations


def _whose(operation: str) -> str:
    return OF_SLURMDBD if operation.startswith(OF_SLURMDBD) else ""


def _module(version: str, name: str) -> Any:
    return import_module(f"slurm_client.wire.{version.replace('.', '_')}.{name}")
