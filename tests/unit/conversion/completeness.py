"""Whether a report names each key of an input, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slinky_operator.conversion.report import Fate, Report


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """The keys that have a value that is no map or list, or an empty one."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for number, below in enumerate(value):
            yield from leaves(below, f"{path}[{number}]")
    else:
        yield path


def told(leaf: str, report: Report) -> list[str]:
    """The entries that tell of a key: about itself, or about a map or list that has it."""
    return [
        entry.key
        for entry in report.entries
        if entry.fate is not Fate.OVERRIDDEN
        and (leaf == entry.key or leaf.startswith((f"{entry.key}.", f"{entry.key}[")))
    ]


def assert_each_key_is_told_once(values: Any, report: Report) -> None:
    found = {leaf: told(leaf, report) for leaf in leaves(values)}
    assert {leaf: keys for leaf, keys in found.items() if len(keys) != 1} == {}
    keys = [entry.key for entry in report.entries]
    assert len(keys) == len({*keys})
