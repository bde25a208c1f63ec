"""Limits that are set or taken away, by what their models say about their places."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from slurm_client.encode.values import set_number
from slurm_client.models.values import INFINITE, Infinite
from slurm_client.notation.tres import Tres

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

L = TypeVar("L", bound="DataclassInstance")

NONE = {"set": False, "infinite": True, "number": 0}
"""What takes a limit away (24.11 and 26.05)."""


def number(value: int | Infinite | None) -> dict[str, Any] | None:
    """Write a number; INFINITE for none."""
    return dict(NONE) if value is INFINITE else set_number(value) if isinstance(value, int) else None


def written(value: timedelta | int | Infinite | Tres | None) -> Any:
    """Write a limit: a length of time in minutes, rounded up, resources as a list of all of them."""
    if isinstance(value, Tres):
        return [
            {
                "type": each.type,
                "name": f"{each.name}:{each.subtype}" if each.subtype else each.name,
                "count": each.count,
            }
            for each in value
        ]
    return number(-int(-value.total_seconds() // 60) if isinstance(value, timedelta) else value)


def add_limits(body: dict[str, Any], limits: DataclassInstance | None) -> None:
    """Write limits at their places in an object."""
    for each in dataclasses.fields(limits) if limits is not None else ():
        value = written(getattr(limits, each.name))
        if value is not None:
            *path, last = each.metadata["at"].split(".")
            inner = body
            for key in path:
                inner = inner.setdefault(key, {})
            inner[last] = value


def with_resources(wanted: L | None, found: L) -> L:
    """
    Return limits with those of resources that are there and not to change.

    slurmrestd takes them away where they are not sent (24.11 and 26.05); it leaves numbers and lengths of time alone.
    """
    base = wanted if wanted is not None else type(found)()
    kept = {
        each.name: getattr(found, each.name)
        for each in dataclasses.fields(found)
        if each.metadata["kind"] == "tres" and getattr(base, each.name) is None and getattr(found, each.name)
    }
    return dataclasses.replace(base, **kept)


def new_limits(limits: DataclassInstance | None) -> dict[str, Any]:
    """Write the limits of a new association, which has none as yet."""
    wanted = {each: getattr(limits, each.name) for each in (dataclasses.fields(limits) if limits is not None else ())}
    return {
        each.metadata["new"]: written(value) for each, value in wanted.items() if value not in (None, INFINITE, Tres())
    }


def unlike(wanted: DataclassInstance | None, found: DataclassInstance) -> list[str]:
    """Return the names of limits that are not as they were wanted."""
    return [
        each.name
        for each in (dataclasses.fields(wanted) if wanted is not None else ())
        if getattr(wanted, each.name) is not None
        and _plain(getattr(wanted, each.name)) != _plain(getattr(found, each.name))
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Tres):
        return frozenset((each.key, each.count) for each in value)
    return None if value is None or value is INFINITE else written(value)["number"]
