"""Concurrent calls, each with its own result or error, and a limit on how many run at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

UNDER_WAY: Final = 50
"""Concurrent calls. Each holds a connection: several hundred take longer to open than to use."""


async def gather_limited(calls: Iterable[Awaitable[T]]) -> list[T | BaseException]:
    """Run calls concurrently and return each result or error, in the order of the calls.

    Each is taken from `calls` only when it is awaited, so that none is left unawaited if this is cancelled. Tasks start
    each other as calls are found: one call, which is the most frequent case, costs three tasks and not fifty.
    """
    waiting = enumerate(calls)
    found: dict[int, T | BaseException] = {}
    async with asyncio.TaskGroup() as group:
        under_way = 0

        async def work() -> None:
            for place, call in waiting:
                begin(2)
                try:
                    found[place] = await call
                except Exception as error:  # noqa: BLE001 - returned to the caller
                    found[place] = error

        def begin(count: int) -> None:
            nonlocal under_way
            for _ in range(min(count, UNDER_WAY - under_way)):
                under_way += 1
                _ = group.create_task(work())

        begin(1)
    return [found[place] for place in range(len(found))]


async def few_first(calls: Iterable[Awaitable[bool]], first: int) -> None:
    """Run calls in order, few at a time until one has succeeded, and many from then on.

    Parameters
    ----------
    calls
        Each returns whether it has succeeded; after a failure no further one is started. Each is taken only when it is
        awaited, as in `gather_limited`.
    first
        How many run at first, and so how many may fail for the same reason before that is known.
    """
    waiting = iter(calls)
    under_way, room, over = 0, first, False
    async with asyncio.TaskGroup() as group:

        async def run() -> None:
            nonlocal under_way, room, over
            call = None if over else next(waiting, None)
            if call is None or not await call:
                over = True
            else:
                room = UNDER_WAY
            under_way -= 1
            begin()

        def begin() -> None:
            nonlocal under_way
            while under_way < room and not over:
                under_way += 1
                _ = group.create_task(run())

        begin()
