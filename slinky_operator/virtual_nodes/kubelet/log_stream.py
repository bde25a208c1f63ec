"""The output of one container, from the job log server to one caller: a piece at a time, to the end of the job or file.

What is read next depends on what the caller has taken: a slow caller costs one piece of memory. The status of the
SlurmJob says when the job has ended; what is read after that is all there will be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from slinky_operator.slurm.connection.job_output import PIECE, Piece, PieceResult
from slinky_operator.virtual_nodes.kubelet.log_request import LogRequest
from slinky_operator.virtual_nodes.kubelet.output import Source
from slinky_operator.virtual_nodes.kubelet.refusal import NotServed

PAUSES_S: Final = (0.5, 5.0)
"""Seconds between looks at a file that does not grow, the first and the last."""

PATIENCE_S: Final = 60.0
"""Seconds for which a file is looked for that cannot be read any more, or not yet after the end of the job."""

LATE_S: Final = 5.0
"""The same for a file that does not exist after the end."""

MAX_TAIL: Final = 64 * 2**20
"""Bytes that are looked through for the last lines."""

_FAR: Final = 2**62
"""Where no file has a byte: the answer names its size."""

NOTE: Final = "job-logs: "
"""Begins lines of the operator's own."""

Sink = Callable[[bytes], Awaitable[None]]
Reader = Callable[[str, str, int, int], Awaitable[Piece]]
"""URL, token, offset and most bytes to a piece."""


class Cut(Exception):
    """The output ends before its end; the text says why."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is known before a look at the file.

    Parameters
    ----------
    source
        The file.
    has_ended
        Whether the job had ended.
    """

    source: Source
    has_ended: bool


class LogStream:
    """Sends the output of one container.

    Parameters
    ----------
    request
        What is wanted.
    look
        Says where the file is now; it raises `NotServed` if it cannot be reached.
    read
        Reads a piece.
    clock, sleep
        Monotonic seconds, and how to let them pass.
    """

    def __init__(
        self,
        request: LogRequest,
        look: Callable[[], Awaitable[Look]],
        read: Reader,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._request = request
        self._look = look
        self._read = read
        self._clock, self._sleep = clock, sleep
        self._offset = 0
        self._left = request.limit_bytes
        self._tag = ""
        self._failing_since: float | None = None

    async def first(self) -> Piece:
        """Read the first piece, so that what is wrong can still be said in the status of the answer.

        Raises
        ------
        NotServed
            There is no output to begin with.
        """
        look = await self._look()
        if self._request.tail_lines is not None:
            self._offset = await self._tail_offset(look.source, self._request.tail_lines)
        piece = await self._piece(look.source)
        if piece.result is PieceResult.FAILED:
            raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, f"the output cannot be read: {piece.why}")
        if piece.result is PieceResult.TRUNCATED:
            self._offset = 0
            piece = await self._piece(look.source)
        self._identity = look.source.identity
        return piece

    async def send(self, piece: Piece, sink: Sink) -> None:
        """Send what was read first, and all that follows.

        Raises
        ------
        Cut
            It ends before its end.
        """
        pause, has_ended = PAUSES_S[0], False
        while True:
            if piece.result is PieceResult.DATA:
                self._failing_since, pause = None, PAUSES_S[0]
                if await self._sent(piece, sink):
                    return
            elif await self._is_over(piece, sink, has_ended=has_ended):
                return
            else:
                await self._sleep(pause)
                pause = min(pause * 1.5, PAUSES_S[1])
            try:
                look = await self._look()
            except NotServed as error:
                piece = Piece(PieceResult.FAILED, why=error.why)
                continue
            if look.source.identity != self._identity:
                # As kubelets do: what follows belongs to another run of the container.
                await sink(f"{NOTE}Slurm has started the job again; ask again for its output\n".encode())
                return
            has_ended = look.has_ended
            piece = await self._piece(look.source)

    async def _is_over(self, piece: Piece, sink: Sink, *, has_ended: bool) -> bool:
        """Whether nothing follows a look that has brought nothing."""
        is_last = has_ended or not self._request.follow
        now = self._clock()
        match piece.result:
            case PieceResult.TRUNCATED:
                await sink(f"{NOTE}the file was truncated or replaced; it is shown from its beginning\n".encode())
                self._offset, self._tag = 0, ""
                return False
            case PieceResult.MISSING | PieceResult.FAILED:
                self._failing_since = now if self._failing_since is None else self._failing_since
                patience = PATIENCE_S if piece.result is PieceResult.FAILED else LATE_S
                if piece.result is PieceResult.MISSING and not has_ended:
                    return is_last
                if now - self._failing_since < patience and self._request.follow:
                    return False
                if piece.result is PieceResult.MISSING and not self._offset:
                    return True
                raise Cut(f"the output after byte {self._offset} cannot be read: {piece.why}")
            case _:
                self._failing_since = None
                return is_last

    async def _sent(self, piece: Piece, sink: Sink) -> bool:
        """Send a piece; whether that was all that is wanted."""
        content = piece.content if self._left is None else piece.content[: self._left]
        self._offset += len(piece.content)
        await sink(content)
        if self._left is not None:
            self._left -= len(content)
        return self._left == 0

    async def _piece(self, source: Source) -> Piece:
        piece = await self._read(source.url, source.token, self._offset, PIECE)
        if piece.tag and self._tag and piece.tag != self._tag and self._offset:
            return Piece(PieceResult.TRUNCATED, why="another file has its name")
        self._tag = piece.tag or self._tag
        return piece

    async def _tail_offset(self, source: Source, lines: int) -> int:
        """Where the last lines begin."""
        found = await self._read(source.url, source.token, _FAR, 1)
        if found.size is None:
            if found.result is PieceResult.MISSING:
                return 0
            raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, f"the size of the output is not known: {found.why}")
        if not lines:
            return found.size
        # The newline at the end of the last line does not begin another one.
        end, left, is_last = found.size, lines, True
        while end:
            if found.size - end > MAX_TAIL:
                why = f"the last {lines} lines have more than {MAX_TAIL // 2**20} MiB: ask for fewer with --tail"
                raise NotServed(HTTPStatus.BAD_REQUEST, why)
            begin = max(0, end - PIECE)
            content = await self._between(source, begin, end)
            at = len(content) - 1 if is_last and content.endswith(b"\n") else len(content)
            is_last = False
            while (at := content.rfind(b"\n", 0, at)) >= 0:
                left -= 1
                if not left:
                    return begin + at + 1
            end = begin
        return 0

    async def _between(self, source: Source, begin: int, end: int) -> bytes:
        content = b""
        while len(content) < end - begin:
            piece = await self._read(source.url, source.token, begin + len(content), end - begin - len(content))
            if piece.result is not PieceResult.DATA:
                why = f"the last lines cannot be read: {piece.why or 'the file has become shorter'}"
                raise NotServed(HTTPStatus.SERVICE_UNAVAILABLE, why)
            content += piece.content
        return content
