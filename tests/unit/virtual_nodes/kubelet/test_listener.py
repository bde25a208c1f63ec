"""Connections are accepted one in each turn of the event loop, however many wait."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from aiohttp import web
from typing_extensions import override

from slinky_operator.virtual_nodes.kubelet.listener import EACH, TOTAL, Listener
from slinky_operator.virtual_nodes.kubelet.shares import Place, Shares


async def no_answer(_request: web.BaseRequest, _known: object) -> web.StreamResponse:
    raise ConnectionError("nobody is answered")


class Counted(Shares):
    """Notes in which turn each place was asked for."""

    turns = 0

    def __init__(self) -> None:
        super().__init__(EACH, TOTAL)
        self.seen: list[int] = []

    @override
    def take(self, holder: str, end: Callable[[], None]) -> Place:
        self.seen.append(self.turns)
        return super().take(holder, end)


async def test_others_have_their_turn_after_each_connection() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shares = Counted()
    listener = Listener(no_answer, lambda: context, host="127.0.0.1", shares=shares)
    listener.listen()
    waiting = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(2 * EACH)]
    running = asyncio.create_task(listener.run())
    try:
        while len(shares.seen) < len(waiting):
            assert not running.done()
            await asyncio.sleep(0)
            shares.turns += 1
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for one in waiting:
            one.close()
    assert len(set(shares.seen)) == len(waiting)
