"""Decoder of limits of associations and QOS, by what their models say about their places."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, TypeVar

from slurm_client.decode.database.read import tres
from slurm_client.decode.read import limit, mapping, minutes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import DataclassInstance

L = TypeVar("L", bound="DataclassInstance")


def limits(kind: type[L], raw: Mapping[str, Any]) -> L:
    """Return the limits of an object of slurmdbd; what is not there is not set."""
    found = {}
    for name, path, read in _places(kind):
        value: Any = raw
        for key in path[:-1]:
            value = mapping(value).get(key)
        value = mapping(value)
        if path[-1] in value:
            found[name] = read(value[path[-1]])
    return kind(**found)


_READERS: Mapping[str, Callable[[Any], Any]] = {"count": limit, "minutes": minutes, "tres": tres}


@functools.cache
def _places(kind: type[DataclassInstance]) -> tuple[tuple[str, tuple[str, ...], Callable[[Any], Any]], ...]:
    return tuple(
        (each.name, tuple(each.metadata["at"].split(".")), _READERS[each.metadata["kind"]])
        for each in dataclasses.fields(kind)
    )
