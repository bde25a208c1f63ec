"""Many calls at once, each with its own result or error, and no more of them under way than the other side likes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

UNDER_WAY: Final = 50
"""Calls at a time. Each holds a connection: several hundred take longer to open than to use."""


async def side_by_side(calls: Iterable[Awaitable[T]]) -> list[T | BaseException]:
    """Make calls at once and give each its result or error, in their order."""
    room = asyncio.Semaphore(UNDER_WAY)

    async def one(call: Awaitable[T]) -> T:
        async with room:
            return await call

    return await asyncio.gather(*map(one, calls), return_exceptions=True)
