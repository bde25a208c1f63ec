"""Servers of tests, of which nothing is left: a connection that nobody closed is reported in whichever test is next.

What a server answers is its test's own. `async with` a server of asyncio waits for nobody (before Python 3.12).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Listen; at the end callers that are still served are cut off.

    Parameters
    ----------
    serve
        Serves one caller, whose connection is closed behind it. That the caller has gone is no error.
    host, port
        Where; port 0 for one that is free.

    Yields
    ------
    int
        The port.
    """
    tasks: set[asyncio.Task[None]] = set()
    writers: set[asyncio.StreamWriter] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await serve(reader, writer)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            writers.discard(writer)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(handle, host, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        _ = await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()
