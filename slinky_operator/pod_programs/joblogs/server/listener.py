"""The process that talks to callers: connections with limits, long polls, bytes straight from file to socket.

It is nobody, without any capability, and has no key; files are opened by another process (`opening`).
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from slinky_operator.pod_programs.agent.volumes import Volumes
from slinky_operator.pod_programs.joblogs import protocol
from slinky_operator.pod_programs.joblogs.files import Held
from slinky_operator.pod_programs.joblogs.log import Log
from slinky_operator.pod_programs.joblogs.server.connections import Connections, Place, holder_of
from slinky_operator.pod_programs.joblogs.server.opening import NotOpened, Opener

MAX_CONNECTIONS: Final = 256
MAX_PER_PEER: Final = 32
"""Connections of one address, and of all addresses of the pod itself; two for each job that is followed from there."""

MAX_PER_USER: Final = 128
"""Connections with tokens of one user; two for each job whose output is followed."""

HEAD_SECONDS: Final = 5.0
"""Within which a request must be complete."""

IDLE_SECONDS: Final = 30.0
"""Until the next request on a connection begins."""

STALLED_SECONDS: Final = 20.0
"""After which a caller that takes nothing is given up."""

SLOWEST: Final = 16 * 1024
"""Bytes a second that a caller must take on average, beyond `STALLED_SECONDS`."""

FIRST_LOOK, LAST_LOOK = 0.05, 0.5
"""Seconds between looks at a file that does not grow, first and at most."""

LOOK_SECONDS: Final = 1.0
"""For which an answer about volumes waits for a look at them."""

STACK_BYTES: Final = 512 * 1024
"""Of a thread; there is one for each connection."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What callers may use."""

    connections: int = MAX_CONNECTIONS
    per_peer: int = MAX_PER_PEER
    per_user: int = MAX_PER_USER
    head_seconds: float = HEAD_SECONDS
    stalled_seconds: float = STALLED_SECONDS


class Server:
    """Serves one file at a time on each connection.

    Parameters
    ----------
    opener
        Opens the files of tokens.
    limits
        What callers may use.
    volumes
        Looks at the file systems of own folders; none without such a folder.
    """

    def __init__(self, opener: Opener, limits: Limits = Limits(), volumes: Volumes | None = None) -> None:
        self._opener = opener
        self._volumes = volumes
        self._limits = limits
        self._log = Log()
        self._connections = Connections(limits.connections, limits.per_peer, limits.per_user, self._log)

    def serve(self, listener: socket.socket) -> None:
        """Answer for ever."""
        threading.stack_size(STACK_BYTES)
        while True:
            try:
                connection, address = listener.accept()
            except OSError as error:
                # Somebody has gone before he was accepted, or descriptors are used up for a moment.
                self._log(f"accept: {error}")
                time.sleep(FIRST_LOOK)
                continue
            peer = str(address[0])
            place = self._connections.admit(connection, holder_of(address))
            if place is None:
                self._turn_away(connection)
                continue
            try:
                threading.Thread(target=self._attend, args=(place, peer), daemon=True).start()
            except RuntimeError as error:
                self._log(f"{peer}: {error}")
                self._connections.leave(place)
                self._turn_away(connection)

    def _turn_away(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(0)
            try:
                connection.send(protocol.error(HTTPStatus.TOO_MANY_REQUESTS, "too many connections"))
            except OSError as error:
                self._log(f"a connection without a place: {error}")

    def _attend(self, place: Place, peer: str) -> None:
        held = Held()
        try:
            with place.connection as connection:
                connection.settimeout(0)
                while self._answer(place, peer, held):
                    pass
        except OSError as error:
            # Callers come and go; one that is too slow asks again from where it was.
            if not isinstance(error, ConnectionError):
                self._log(f"{peer}: {error}")
        finally:
            held.close()
            self._connections.leave(place)

    def _answer(self, place: Place, peer: str, held: Held) -> bool:
        """Answer one request; whether another may follow."""
        connection = place.connection
        head = _request(connection, self._limits.head_seconds)
        if head is None:
            return False
        try:
            asked = protocol.parse(head)
        except protocol.BadRequest as error:
            self._send(connection, protocol.error(HTTPStatus.BAD_REQUEST, str(error)))
            return False
        if asked.is_about_volumes:
            found = self._volumes.told(LOOK_SECONDS) if self._volumes is not None else {}
            self._send(connection, protocol.volumes(found))
            return True
        return self._serve(place, peer, held, asked)

    def _serve(self, place: Place, peer: str, held: Held, asked: protocol.Request) -> bool:
        """Answer a request with a token; whether another may follow."""
        connection = place.connection
        try:
            if asked.is_copy:
                self._connections.keep(place)
                self._opener.copy(asked.token, asked.nonce, connection)
                return False
            opened = self._opener.open(asked.token, place.caller)
        except NotOpened as error:
            if error.status is not HTTPStatus.NOT_FOUND:
                self._log(f"{peer}: {error.status.value} {error.why}")
            self._send(connection, protocol.error(error.status, error.why))
            return error.status is HTTPStatus.NOT_FOUND and not asked.is_copy
        tag = held.keep(opened)
        # Only files of the token's user are opened.
        uid = os.fstat(opened).st_uid
        if not self._connections.is_of(place, uid):
            words = f"too many connections of uid {uid}"
            self._send(connection, protocol.error(HTTPStatus.TOO_MANY_REQUESTS, words))
            return False
        return self._send_file(connection, opened, tag, asked)

    def _send_file(self, connection: socket.socket, opened: int, tag: str, asked: protocol.Request) -> bool:
        size = _size_after(connection, opened, asked.offset, asked.wait)
        if size is None:
            return False
        if size == asked.offset:
            self._send(connection, protocol.head(HTTPStatus.NO_CONTENT, 0, tag=tag))
            return True
        if size < asked.offset:
            text = protocol.too_far(size)
            self._send(connection, protocol.error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, text))
            return True
        count = min(size - asked.offset, protocol.MAX_CHUNK)
        self._send(connection, protocol.head(HTTPStatus.OK, count, tag=tag))
        place = asked.offset

        def step(left: int) -> int:
            return os.sendfile(connection.fileno(), opened, place + count - left, left)

        return self._push(connection, count, step)

    def _send(self, connection: socket.socket, content: bytes) -> None:
        self._push(connection, len(content), lambda left: connection.send(content[len(content) - left :]))

    def _push(self, connection: socket.socket, count: int, step: Callable[[int], int]) -> bool:
        """Send so many bytes; false if a file has become shorter meanwhile, after which nothing can be said."""
        stalled = self._limits.stalled_seconds
        until, left = time.monotonic() + stalled + count / SLOWEST, count
        while left:
            if not _ready(connection, min(stalled, until - time.monotonic()), write=True):
                raise TimeoutError("the caller takes nothing, or too little")
            try:
                sent = step(left)
            except BlockingIOError:
                # Its buffer has filled up since: waited for above, with the same limits.
                continue
            if not sent:
                return False
            left -= sent
        return True


def _request(connection: socket.socket, seconds: float) -> bytes | None:
    """The head of the next request; `None` if there is none."""
    head = b""
    until = time.monotonic() + IDLE_SECONDS
    while protocol.END_OF_HEAD not in head:
        if len(head) > protocol.MAX_HEAD or not _ready(connection, until - time.monotonic()):
            return None
        chunk = connection.recv(protocol.MAX_HEAD)
        if not chunk:
            return None
        if not head:
            until = time.monotonic() + seconds
        head += chunk
    return head[: head.index(protocol.END_OF_HEAD)]


def _size_after(connection: socket.socket, opened: int, offset: int, wait: float) -> int | None:
    """Size of a file once it differs from an offset, or after a time; `None` if the caller has gone."""
    until, pause = time.monotonic() + wait, FIRST_LOOK
    while (found := os.fstat(opened)).st_size == offset and (left := until - time.monotonic()) > 0:
        if not found.st_nlink:
            # Deleted: there may be another file of its name.
            break
        # Anyone who waits has nothing to say: what can be read is the end of the connection.
        if _ready(connection, min(pause, left)):
            return None
        pause = min(pause * 1.5, LAST_LOOK)
    return found.st_size


def _ready(connection: socket.socket, seconds: float, *, write: bool = False) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLOUT if write else select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))
