"""Many calls at once, each with its own result or error, and no more of them under way than the other side likes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

UNDER_WAY: Final = 50
"""Calls at a time. Each holds a connection: several hundred take longer to open than to use."""


async def side_by_side(calls: Iterable[Awaitable[T]]) -> list[T | BaseException]:
    """Make calls at once and give each its result or error, in their order."""
    waiting = enumerate(calls)
    found: dict[int, T | BaseException] = {}

    async def work(place: int, call: Awaitable[T]) -> None:
        while True:
            try:
                found[place] = await call
            except Exception as error:  # noqa: BLE001 - whoever asked for the call gets it
                found[place] = error
            following = next(waiting, None)
            if following is None:
                return
            place, call = following

    await asyncio.gather(*(work(place, call) for place, call in islice(waiting, UNDER_WAY)))
    return [found[place] for place in range(len(found))]


async def growing(calls: Iterable[Awaitable[bool]], first: int) -> None:
    """Make calls in their order, few at a time at first, and one more at a time for each that has gone well.

    Parameters
    ----------
    calls
        Each tells whether it has gone well; after one that has not, no further one is begun.
    first
        How many are under way at first, and so how many may fail alike before anybody knows.
    """
    waiting = iter(calls)
    under_way, room, failed = 0, first, False
    async with asyncio.TaskGroup() as group:

        async def run(call: Awaitable[bool]) -> None:
            nonlocal under_way, room, failed
            if not await call:
                failed = True
            under_way -= 1
            room = min(room + 1, UNDER_WAY)
            begin()

        def begin() -> None:
            nonlocal under_way
            while under_way < room and not failed and (call := next(waiting, None)) is not None:
                under_way += 1
                _ = group.create_task(run(call))

        begin()
