"""Many calls at once, each with its own result or error; the clients bound how many are on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def side_by_side(calls: Iterable[Awaitable[T]]) -> list[T | BaseException]:
    """Make calls at once and give each its result or error, in their order."""
    return await asyncio.gather(*calls, return_exceptions=True)
