"""By what an object of a list is known; one without it is left out by anyone who reads the list."""

from __future__ import annotations

from typing import Any

from slurm_client.decode.read import text


class Nameless(ValueError):
    """An object of a list has no name or number by which it could be known."""


def named(value: Any) -> str:
    """Return the name of an object; Nameless if it has none."""
    name = text(value)
    if not name:
        raise Nameless
    return name
