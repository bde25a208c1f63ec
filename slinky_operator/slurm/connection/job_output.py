"""Reads files of jobs from the job log server beside a slurmd, a piece at a time.

A user who may edit a Cluster may run any program in such a pod: of each answer at most the piece that was asked for is
taken, within a time, and a line of an error is shortened. A connection lasts as long as one piece, so a caller that
takes its output slowly holds none; each node has few at a time, whose turns come in order.

What is read, and by whom, is left to those who ask.
"""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import httpx

from slinky_operator.pod_programs.joblogs import protocol
from slurm_client.connection.http import refuse_cookies

PIECE: Final = 128 * 1024
"""Most bytes of one piece."""

SECONDS: Final = 10.0
"""For one piece, from the connection to its last byte."""

CONNECTIONS: Final = 8
"""Of one node at a time; the server has 32 for all that this operator asks."""


class PieceResult(Enum):
    """What came of one attempt to read."""

    DATA = auto()
    """Something was read; there may be more."""

    END = auto()
    """Nothing beyond the offset, for now."""

    MISSING = auto()
    """No file, for now."""

    TRUNCATED = auto()
    """The file is shorter than the offset."""

    FAILED = auto()
    """No access, or no answer."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file.

    Parameters
    ----------
    tag
        Tells files of the same name apart; empty if there is none.
    size
        Of a file that is shorter than the offset; None if the server does not say.
    why
        One line, except for data and its end.
    """

    result: PieceResult
    content: bytes = b""
    tag: str = ""
    size: int | None = None
    why: str = ""


class JobOutput:
    """Reads pieces of files.

    Parameters
    ----------
    transport
        What sends the requests; the network if absent.
    seconds
        For one piece.
    """

    def __init__(self, *, transport: httpx.AsyncBaseTransport | None = None, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._turns: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()
        self._http = httpx.AsyncClient(
            transport=transport,
            headers={"Accept-Encoding": "identity", "Connection": "close"},
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            timeout=httpx.Timeout(seconds),
            trust_env=False,
        )
        refuse_cookies(self._http)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def read(self, url: str, token: str, offset: int, most: int = PIECE) -> Piece:
        """Read what follows an offset, at most so many bytes; it raises nothing.

        Parameters
        ----------
        url
            The server's, without a path.
        token
            For the file.
        offset
            The first byte.
        most
            Bytes that are read at most.
        """
        turns = self._turns.setdefault(url, asyncio.Semaphore(CONNECTIONS))
        async with turns:
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._read(f"{url}{protocol.PATH}?offset={offset}&wait=0", token, most)
            except TimeoutError:
                return Piece(PieceResult.FAILED, why=f"{url} did not answer within {self._seconds:g} s")
            except (httpx.RemoteProtocolError, httpx.DecodingError):
                # Its words would repeat what was received.
                return Piece(PieceResult.FAILED, why=f"{url}: what was received is no HTTP, or ends too early")
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                return Piece(PieceResult.FAILED, why=f"{url}: {str(error) or type(error).__name__}")

    async def _read(self, url: str, token: str, most: int) -> Piece:
        async with self._http.stream("GET", url, headers={"Authorization": f"Bearer {token}"}) as response:
            tag = response.headers.get("ETag", "")[: protocol.MAX_LINE]
            if response.status_code == HTTPStatus.NO_CONTENT:
                return Piece(PieceResult.END, tag=tag)
            wanted = most if response.status_code == HTTPStatus.OK else protocol.MAX_LINE
            content = bytearray()
            async for some in response.aiter_raw(min(wanted, PIECE)):
                content += some
                if len(content) >= wanted:
                    break
            found = bytes(content[:wanted])
        if response.status_code == HTTPStatus.OK:
            return Piece(PieceResult.DATA if found else PieceResult.END, found, tag)
        line = "".join(letter if letter.isprintable() else " " for letter in found.decode(errors="replace")).strip()
        match response.status_code:
            case HTTPStatus.NOT_FOUND:
                return Piece(PieceResult.MISSING, why=line)
            case HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return Piece(PieceResult.TRUNCATED, size=protocol.size_in(line), why=line)
            case status:
                return Piece(PieceResult.FAILED, why=f"the job log server answered {status}: {line}")
