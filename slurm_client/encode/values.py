"""Values as data parsers take them, and whether a parser has all keys of a body."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from slurm_client import errors, wire
from slurm_client.models.values import INFINITE, Infinite
from slurm_client.notation import hostlist

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

Body = TypeVar("Body", bound="Mapping[str, Any]")


def fitted(version: str, model: str, body: Body) -> Body:
    """
    Return the body if a data parser has all of its keys.

    Raises
    ------
    NotSupported
        Names the first key it has not, and the parsers that have it: slurmrestd would drop it with a mere warning.
    """
    unknown = wire.unknown_fields(version, model, body)
    if unknown:
        key, having = next(iter(unknown.items()))
        raise errors.NotSupported(
            f"data parser {version} has no {key!r} in {model}; {', '.join(having) or 'none'} has", available_in=having
        )
    return body


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    """Return what is wished; what is not stays as it is."""
    return {key: value for key, value in values.items() if value is not None}


def set_number(number: int | None) -> dict[str, Any] | None:
    """Write a number with its marks for unset and infinite."""
    return None if number is None else {"set": True, "infinite": False, "number": number}


def listed(values: Any) -> list[str] | None:
    """Write any collection as a list."""
    return None if values is None else list(values)


def hosts(field: str, value: str | Iterable[str] | None) -> list[str] | None:
    """
    Write a hostlist, or a list of names and hostlists, as the names of all nodes.

    Raises
    ------
    InvalidArgument
        For what is neither a name nor a hostlist.
    """
    if value is None:
        return None
    names: list[str] = []
    for text in [value] if isinstance(value, str) else value:
        found = hostlist.expand(text)
        if not found or any(not name.strip() or set(name) & set("[], ") for name in found):
            raise errors.InvalidArgument(f"{field}: {text!r:.80} is no list of nodes; nothing was sent", field=field)
        names += found
    return names


def minutes(value: timedelta | Infinite | None) -> dict[str, Any] | None:
    """Write a limit of time in minutes, rounded up."""
    if value is INFINITE:
        return {"set": True, "infinite": True, "number": 0}
    if isinstance(value, timedelta):
        return set_number(-int(-value.total_seconds() // 60))
    return None


def seconds(value: timedelta | None) -> int | None:
    """Write a length in whole seconds, rounded up."""
    return None if value is None else math.ceil(value.total_seconds())


def moment(value: datetime | None) -> dict[str, Any] | None:
    """Write a time in seconds since 1970."""
    return None if value is None else set_number(int(value.timestamp()))
