"""How slow a copy may be: what must have moved by now, and when it ends in any case.

A caller that sends a byte from time to time would keep a place for ever. What each side does on its own disk counts
too, so each event of a copy is worth some bytes: very small files take their time.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import Final

from slinky_operator.pod_programs.joblogs.copies.events import Data, Events, Stopped

COPY_SECONDS: Final = 3600.0
"""Within which a copy is complete."""

SLOWEST: Final = 16 * 1024
"""Bytes a second that must move on average, beyond `GRACE_SECONDS`."""

GRACE_SECONDS: Final = 60.0
"""In which nothing need move."""

EVENT_WORTH: Final = 4096
"""Bytes that count for each event besides its own."""


class Pace:
    """What has moved of one copy.

    Parameters
    ----------
    seconds
        Within which it is complete.
    note
        Takes the bytes that have moved, and says whether the copy may go on.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        seconds: float = COPY_SECONDS,
        note: Callable[[int], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._begun = clock()
        self._seconds = seconds
        self._note = note
        self._moved = 0

    def moved(self, size: int) -> None:
        """Count bytes."""
        self._moved += size

    def left(self) -> float:
        """Seconds for which more may be waited for.

        Raises
        ------
        Stopped
            None: it was too slow, has taken too long, or may not go on.
        """
        if self._note is not None and not self._note(self._moved):
            raise Stopped("its place was given to a copy of another user")
        gone = self._clock() - self._begun
        if gone >= self._seconds:
            raise Stopped(f"the copy was not complete within {self._seconds:.0f} s")
        allowed = GRACE_SECONDS + self._moved / SLOWEST
        if gone >= allowed:
            raise Stopped(f"the copy is too slow: less than {SLOWEST} bytes a second on average")
        return min(allowed, self._seconds) - gone

    def events(self, events: Events, *, is_local: bool = False) -> Events:
        """Pass events on, and count them; with their content where no connection counts that."""
        for event in events:
            self.moved(EVENT_WORTH + (len(event.content) if is_local and isinstance(event, Data) else 0))
            _ = self.left()
            yield event


class Line:
    """A connection that carries a copy at a pace.

    Parameters
    ----------
    connection
        Its socket.
    read
        Gives at most so many bytes of it.
    pace
        See there.
    stalled
        Seconds after which the other side is given up if nothing can be sent or read.
    """

    def __init__(self, connection: socket.socket, read: Callable[[int], bytes], pace: Pace, stalled: float) -> None:
        self._connection = connection
        self._read = read
        self._pace = pace
        self._stalled = stalled

    def receive(self, count: int) -> bytes:
        """Read at most so many bytes; none at the end of the connection.

        Raises
        ------
        Stopped
            The copy is too slow.
        OSError
            The connection has failed, or stalls.
        """
        self._connection.settimeout(min(self._stalled, self._pace.left()))
        piece = self._read(count)
        self._pace.moved(len(piece))
        return piece

    def send(self, content: bytes) -> None:
        """Send so many bytes.

        Raises
        ------
        Stopped
            The copy is too slow.
        OSError
            The connection has failed, or stalls.
        """
        self._connection.settimeout(min(self._stalled, self._pace.left()))
        self._connection.sendall(content)
        self._pace.moved(len(content))

    def may_be_read(self) -> bool:
        """Whether the other side has said something, or ended the connection."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        return bool(poll.poll(0))
