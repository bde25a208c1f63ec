"""What tests make of objects again and again, made once for each content.

A walk looks at thousands of snapshots in which next to nothing changes. Leaves to the caller that nobody changes what
is made: models are frozen, and rules change no object that they read.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

from slinky_operator.kube.objects import Object

Made = TypeVar("Made")

KEPT: Final = 1_000
"""Contents of which each function remembers what it has made."""


def once_for_each_content(make: Callable[[Object], Made]) -> Callable[[Object], Made]:
    """Return a function that makes the same, of a copy of the object, which the caller may change later."""

    @lru_cache(maxsize=KEPT)
    def of(content: bytes) -> Made:
        copied: Any = marshal.loads(content)  # noqa: S302 written by this process
        return make(copied)

    def made(obj: Object) -> Made:
        try:
            content = marshal.dumps(obj)
        except ValueError:
            # More than JSON: a test of what is no object that an API server could have.
            return make(obj)
        return of(content)

    return made
