"""Where a follower reads from: the server beside slurmd, or a file that its own container mounts."""

from __future__ import annotations

import http.client
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import urlsplit

from slinky_operator.pod_programs.joblogs import protocol
from slinky_operator.pod_programs.joblogs.files import Held
from slinky_operator.pod_programs.joblogs.follower.job_file import Place
from slinky_operator.pod_programs.joblogs.timed_socket import TimedSocket

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 15.0
"""Beyond the time that the server may wait."""

SLOWEST: Final = 64 * 1024
"""Bytes a second that a server must send on average, beyond `ANSWER_SECONDS`."""

PIECE: Final = 1024 * 1024
"""Bytes that are held in memory."""

LOOK: Final = 0.2
"""Seconds between looks at a mounted file that does not grow."""

Sink = Callable[[memoryview], None]


class ReadResult(Enum):
    """What came of one attempt to read."""

    DATA = auto()
    """Something was copied; there may be more."""

    END = auto()
    """Nothing beyond the offset, for now."""

    MISSING = auto()
    """No file, for now."""

    TRUNCATED = auto()
    """The file is shorter than the offset, or another one: it is to be read from its beginning."""

    FAILED = auto()
    """No access, or no answer."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one attempt.

    Parameters
    ----------
    copied
        Bytes given to the sink, also before a failure.
    why
        One line, except for data and its end.
    """

    outcome: ReadResult
    copied: int = 0
    why: str = ""


class Source(Protocol):
    """One stream of a job."""

    def read(self, place: Place, offset: int, wait: float, sink: Sink) -> Reading:
        """Give what follows an offset to a sink, after at most so many seconds if there is nothing yet."""

    def close(self) -> None:
        """Let go of it."""


def source_of(place: Place) -> Source:
    """The source that reads a place."""
    return _MountedFile() if place.file else _Server(place.url)


class _Server:
    """A connection that stays open. The file is known by the tag of its first bytes.

    Parameters
    ----------
    url
        The server's, http.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: http.client.HTTPConnection | None = None
        self._timed: TimedSocket | None = None
        """The socket of the connection."""
        self._tag = ""

    def read(self, place: Place, offset: int, wait: float, sink: Sink) -> Reading:
        copied = 0

        def counting(piece: memoryview) -> None:
            nonlocal copied
            sink(piece)
            copied += len(piece)

        try:
            return self._read(place.token, offset, wait, counting)
        except _SinkFailed as failed:
            raise failed.error from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            why = f"{self._url}: {str(error) or type(error).__name__}"
            return Reading(ReadResult.DATA if copied else ReadResult.FAILED, copied, why)

    def _read(self, token: str, offset: int, wait: float, sink: Sink) -> Reading:
        connection, timed = self._connected()
        timed.end_within(wait + ANSWER_SECONDS)
        path = f"{protocol.PATH}?offset={offset}&wait={wait:g}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        if answer.status in {HTTPStatus.OK, HTTPStatus.NO_CONTENT}:
            tag = answer.getheader("ETag", "")
            if offset and tag != self._tag:
                self.close()
                self._tag = tag
                return Reading(ReadResult.TRUNCATED, why="another file has its name")
            self._tag = tag
            expected = answer.length
            if expected is None or expected > protocol.MAX_CHUNK:
                size = "unknown length" if expected is None else f"{expected} bytes"
                raise http.client.HTTPException(f"an answer of {size}")
            timed.end_within(ANSWER_SECONDS + expected / SLOWEST)
            return self._copied(answer, expected, sink)
        line = answer.read(protocol.MAX_LINE + 1).decode(errors="replace").strip()
        if answer.will_close or answer.length:
            self.close()
        match answer.status:
            case HTTPStatus.NOT_FOUND:
                return Reading(ReadResult.MISSING, why=line)
            case HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return Reading(ReadResult.TRUNCATED, why=line)
            case _:
                self.close()
                return Reading(ReadResult.FAILED, why=f"{answer.status} {line}")

    def _copied(self, answer: http.client.HTTPResponse, expected: int, sink: Sink) -> Reading:
        copied = 0
        # What has come is passed on: it is not lost if the rest takes too long.
        while piece := answer.read1(PIECE):
            try:
                sink(memoryview(piece))
            except OSError as error:
                raise _SinkFailed(error) from error
            copied += len(piece)
        if copied < expected:
            raise http.client.HTTPException(f"{expected - copied} bytes are missing")
        # The connection is free for the next request.
        answer.close()
        return Reading(ReadResult.DATA if copied else ReadResult.END, copied)

    def _connected(self) -> tuple[http.client.HTTPConnection, TimedSocket]:
        if self._connection is None or self._timed is None or self._connection.sock is not self._timed:
            self.close()
            parts = urlsplit(self._url)
            if parts.scheme != "http" or not parts.hostname:
                raise http.client.InvalidURL("it is no http URL")
            host, port = parts.hostname, parts.port or 80
            self._timed = TimedSocket.connect_to(host, port, connecting=CONNECT_SECONDS)
            self._connection = http.client.HTTPConnection(host, port)
            self._connection.sock = self._timed
        return self._connection, self._timed

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._timed is not None:
            self._timed.close()
            self._timed = None


class _SinkFailed(Exception):
    """What is printed to has gone: not a fault of the source."""

    def __init__(self, error: OSError) -> None:
        self.error = error
        super().__init__(str(error))


class _MountedFile:
    """A file of a volume that the follower mounts; it is opened for each attempt, to see that it was replaced."""

    def __init__(self) -> None:
        self._held = Held()
        self._tag = ""
        self._buffer = memoryview(bytearray(PIECE))

    def read(self, place: Place, offset: int, wait: float, sink: Sink) -> Reading:
        try:
            opened = os.open(place.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return Reading(ReadResult.MISSING, why=f"there is no file {place.file}")
        except OSError as error:
            return Reading(ReadResult.FAILED, why=f"{place.file}: {error.strerror}")
        tag, before = self._held.keep(opened), self._tag
        self._tag = tag
        return self._read(opened, place.file, offset, wait, sink, is_other=tag != before)

    def _read(self, opened: int, path: str, offset: int, wait: float, sink: Sink, *, is_other: bool) -> Reading:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return Reading(ReadResult.FAILED, why=f"{path} is not a regular file")
        if offset and is_other:
            return Reading(ReadResult.TRUNCATED, why="another file has its name")
        until = time.monotonic() + wait
        while (size := os.fstat(opened).st_size) == offset:
            left = until - time.monotonic()
            if left <= 0:
                return Reading(ReadResult.END)
            time.sleep(min(LOOK, left))
        if size < offset:
            return Reading(ReadResult.TRUNCATED, why=f"the file has {size} bytes")
        copied = 0
        while copied < protocol.MAX_CHUNK:
            try:
                read = os.preadv(opened, [self._buffer], offset + copied)
            except OSError as error:
                return Reading(ReadResult.DATA if copied else ReadResult.FAILED, copied, f"{path}: {error.strerror}")
            if not read:
                break
            sink(self._buffer[:read])
            copied += read
        return Reading(ReadResult.DATA, copied)

    def close(self) -> None:
        """Let go of the file."""
        self._held.close()
