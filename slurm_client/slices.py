"""
Long work in slices, between which the event loop has its turn.

What runs on an event loop holds up everything else on it. So whatever grows with the number of jobs is done in slices
of a few milliseconds; also giving back thousands of objects, each of which has dozens of texts of its own.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

__all__ = ["SLICE_SECONDS", "Slices", "drop", "sliced"]

T = TypeVar("T")

SLICE_SECONDS = 0.003
"""Longest time spent before the event loop has its turn."""

_FEW = 32
"""Objects that are given back, or gone through, between two looks at the clock."""


class Slices:
    """When the event loop had its last turn, as far as this work knows."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    async def breathe(self) -> None:
        """Let others have their turn if this has taken long enough."""
        if time.perf_counter() - self._since > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._since = time.perf_counter()


async def sliced(items: Iterable[T]) -> AsyncIterator[T]:
    """Give the items one by one, and let others have their turn in between."""
    slices = Slices()
    for count, item in enumerate(items):
        if count % _FEW == 0:
            await slices.breathe()
        yield item


async def drop(*lists: list[Any]) -> None:
    """Empty lists of the same length, which may be the last to hold what is in them."""
    slices = Slices()
    while any(lists):
        for each in lists:
            del each[-_FEW:]
        await slices.breathe()
