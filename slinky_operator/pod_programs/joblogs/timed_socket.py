"""Connections to a server that need not be the job log server: each exchange ends at a time, however little comes."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_OVER: Final = "the other side has taken too long"


class TimedSocket(socket.socket):
    """A connection with a limit for each read and one for all of them. Made by `connect`."""

    idle: float
    """Seconds that one read or write may wait."""

    until: float
    """When the last one must be over, in monotonic seconds."""

    clock: Callable[[], float]

    @classmethod
    def connect_to(
        cls,
        host: str,
        port: int,
        *,
        connecting: float,
        idle: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Connect within a time; `end_within` sets the limit of an exchange."""
        connection = cls(fileno=socket.create_connection((host, port), connecting).detach())
        connection.idle, connection.until, connection.clock = idle, clock() + connecting, clock
        return connection

    def end_within(self, seconds: float) -> None:
        """Let all that is read and written from now on be over after a time."""
        self.until = self.clock() + seconds

    # The decorator for overrides is in the standard library from Python 3.12 on.

    def recv_into(  # type: ignore[explicit-override]
        self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0
    ) -> int:
        """Receive within the limits; raises `TimeoutError` beyond them."""
        self._limit()
        try:
            return super().recv_into(buffer, nbytes, flags)
        except TimeoutError:
            raise TimeoutError(_OVER) from None

    def sendall(self, data: ReadableBuffer, flags: int = 0, /) -> None:  # type: ignore[explicit-override]
        """Send everything within the limits; raises `TimeoutError` beyond them."""
        self._limit()
        try:
            return super().sendall(data, flags)
        except TimeoutError:
            raise TimeoutError(_OVER) from None

    def _limit(self) -> None:
        left = self.until - self.clock()
        if left <= 0:
            raise TimeoutError(_OVER)
        self.settimeout(min(left, self.idle))
