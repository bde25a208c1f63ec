"""A hostile HTTP server that attacks the reader of its answers, and counts what it could send."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import cycle
from typing import Self

from tests.support.listener import listening

SECRET = "hunter2"
"""Stands in what must not be shown to anybody."""

PIECE = b'{"name": "a"},' * 4096


async def _endless_list() -> AsyncIterator[bytes]:
    yield b'{"pings": ['
    while True:
        yield PIECE


async def _endless_blanks() -> AsyncIterator[bytes]:
    while True:
        yield b" " * 65536


async def _tiny_chunks() -> AsyncIterator[bytes]:
    while True:
        yield b"2\r\n  \r\n" * 4096


async def _drip() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(0.01)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


_EMPTY_LISTS = b'{"pings": [], "x": [' + b"[]," * 300_000 + b"[]]}"
_DEEP = b'{"pings": ' + b"[" * 500_000 + b"]" * 500_000 + b"}"
_BOMB = gzip.compress(b" " * 30_000_000)
_PAGE = f"<html>{SECRET}</html>".encode() * 20
_FOREIGN_JSON = f'{{"errors": [{{"message": "{SECRET}", "description": "{SECRET}"}}]}}'.encode()

Way = tuple[str, str, Callable[[], AsyncIterator[bytes]]]

WAYS: dict[str, Way] = {
    "endless-list": ("200 OK", "Content-Type: application/json", _endless_list),
    "endless-blanks": ("200 OK", "Content-Type: application/json", _endless_blanks),
    "two-gigabytes": ("200 OK", f"Content-Type: application/json\r\nContent-Length: {2**31}", _endless_list),
    "tiny-chunks": ("200 OK", "Content-Type: application/json\r\nTransfer-Encoding: chunked", _tiny_chunks),
    "login": ("200 OK", "Content-Type: text/html; charset=utf-8", lambda: _once(_PAGE)),
    "bomb": (
        "200 OK",
        "Content-Type: application/json\r\nContent-Encoding: gzip",
        lambda: _once(_BOMB),
    ),
    "empty-lists": ("200 OK", "Content-Type: application/json", lambda: _once(_EMPTY_LISTS)),
    "deep": ("200 OK", "Content-Type: application/json", lambda: _once(_DEEP)),
    "drip": ("200 OK", "Content-Type: application/json", _drip),
    "page": ("403 Forbidden", f"Content-Type: text/html; {SECRET}={SECRET}", lambda: _once(_PAGE)),
    "cookies": (
        "403 Forbidden",
        f"Content-Type: text/html\r\nSet-Cookie: {SECRET}={SECRET * 256}; Max-Age=99999999",
        lambda: _once(_PAGE),
    ),
    "foreign-json": ("500 Oops", "Content-Type: application/json", lambda: _once(_FOREIGN_JSON)),
    "redirect": ("302 Found", f"Location: http://127.0.0.1:1/{SECRET}", lambda: _once(b"")),
}
"""Status, headers and body, by name: the first part of the path that is asked for."""


class HostileServer:
    """Answers `/<way>/…`; use it as a context.

    Parameters
    ----------
    host, port
        Where it listens.
    turns
        Ways that take turns, whatever is asked for; none to do as the path says.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, turns: Sequence[str] = ()) -> None:
        self._address = host, port
        self._turns = cycle(turns) if turns else None
        self.asked: Counter[str] = Counter()
        """Requests, by way."""
        self.tokens: set[str] = set()
        """Tokens that came with them."""
        self._port = 0
        self._listening = contextlib.AsyncExitStack()

    def url(self, way: str) -> str:
        """Where a Slurm of that kind is to be found."""
        return f"http://127.0.0.1:{self._port}/{way}"

    async def __aenter__(self) -> Self:
        self._port = await self._listening.enter_async_context(listening(self._answer, *self._address))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listening.aclose()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        way = next(self._turns) if self._turns is not None else head.split()[1].split("/")[1]
        self.asked[way] += 1
        self.tokens |= {
            line.split(": ", 1)[1] for line in head.split("\r\n") if line.lower().startswith("x-slurm-user-token")
        }
        if way == "ssh":
            writer.write(f"SSH-2.0-{SECRET}\r\n\r\n".encode())
            await writer.drain()
            return
        status, headers, body = WAYS[way]
        writer.write(f"HTTP/1.1 {status}\r\n{headers}\r\nConnection: close\r\n\r\n".encode())
        async for piece in body():
            writer.write(piece)
            await writer.drain()
