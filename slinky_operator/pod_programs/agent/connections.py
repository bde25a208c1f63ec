"""Connections of callers, served side by side in one thread: with a bound, a share for each address, and a deadline.

Any pod may be able to call. One that is slow holds up nobody: a connection is over when its time is, whatever was sent
by then; where there are too many, or answers wait for callers that do not read them, the oldest of the address that has
most gives way. A caller who asks and reads at once is served in a few milliseconds, so it is never the oldest for long.

What is asked and answered is left to `server`.
"""

import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

LONGEST: Final = 4096
"""Bytes of a request that are read."""

END: Final = b"\r\n\r\n"
"""The end of a request."""

PIECE: Final = 256 * 1024
"""Bytes of an answer that are sent in one turn."""


class Limits(NamedTuple):
    """What callers may use."""

    connections: int = 32
    """At a time."""
    per_peer: int = 4
    """The same, of one address."""
    seconds: float = 5.0
    """From the connection to the last byte of its answer."""
    unread: int = 16 * 2**20
    """Bytes of answers that callers have not read yet, together."""


LIMITS: Final = Limits()


class _Caller:
    """One connection: its request as far as it has come, and its answer as far as it has not gone."""

    def __init__(self, connection: socket.socket, peer: str, until: float) -> None:
        self.connection = connection
        self.peer = peer
        self.until = until
        self.request = b""
        self.unsent = memoryview(b"")


class Connections:
    """Serves callers until cancelled.

    Parameters
    ----------
    answer
        Makes the whole answer to a request; must not block.
    limits
        What callers may use.
    clock
        Seconds that are never set back.
    """

    def __init__(
        self,
        answer: Callable[[bytes], bytes],
        limits: Limits = LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answer = answer
        self._limits = limits
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._callers: dict[_Caller, None] = {}
        """In the order in which they came."""

    def serve(self, listener: socket.socket) -> None:
        """Accept and answer for ever."""
        listener.settimeout(0)
        self._selector.register(listener, selectors.EVENT_READ)
        while True:
            oldest = next(iter(self._callers), None)
            wait = None if oldest is None else max(0.0, oldest.until - self._clock())
            for key, _ in self._selector.select(wait):
                caller = key.data
                if caller is None:
                    self._accept(listener)
                elif caller in self._callers:
                    self._go_on(caller)
            now = self._clock()
            for caller in [one for one in self._callers if one.until <= now]:
                self._end(caller)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, address = listener.accept()
        except OSError:
            # The caller has gone again.
            return
        connection.settimeout(0)
        caller = _Caller(connection, str(address[0]), self._clock() + self._limits.seconds)
        of_peer = [one for one in self._callers if one.peer == caller.peer]
        if len(of_peer) >= self._limits.per_peer:
            self._end(of_peer[0])
        elif len(self._callers) >= self._limits.connections:
            self._end(self._largest(Counter(one.peer for one in self._callers), self._callers))
        self._callers[caller] = None
        self._selector.register(connection, selectors.EVENT_READ, caller)

    def _go_on(self, caller: _Caller) -> None:
        """Read or send as much as goes without waiting."""
        try:
            if caller.unsent:
                caller.unsent = caller.unsent[caller.connection.send(caller.unsent[:PIECE]) :]
            elif not self._has_request(caller):
                return
            else:
                self._begin_answer(caller)
        except (BlockingIOError, InterruptedError):
            # Nothing was there after all.
            return
        except OSError:
            # The caller has gone.
            self._end(caller)
            return
        if not caller.unsent:
            self._end(caller)

    def _has_request(self, caller: _Caller) -> bool:
        chunk = caller.connection.recv(LONGEST - len(caller.request))
        caller.request += chunk
        return not chunk or END in caller.request or len(caller.request) >= LONGEST

    def _begin_answer(self, caller: _Caller) -> None:
        caller.unsent = memoryview(self._answer(caller.request))
        while sum(len(one.unsent) for one in self._callers) > self._limits.unread:
            unread = Counter[str]()
            for one in self._callers:
                unread[one.peer] += len(one.unsent)
            given_up = self._largest(unread, [one for one in self._callers if one.unsent])
            self._end(given_up)
            if given_up is caller:
                return
        self._selector.modify(caller.connection, selectors.EVENT_WRITE, caller)

    @staticmethod
    def _largest(taken: Counter[str], callers: Iterable[_Caller]) -> _Caller:
        """The oldest caller of the address that has taken most; of equal ones, that of the oldest caller."""
        return max(callers, key=lambda one: taken[one.peer])

    def _end(self, caller: _Caller) -> None:
        if caller in self._callers:
            del self._callers[caller]
            self._selector.unregister(caller.connection)
            caller.connection.close()
            caller.unsent = memoryview(b"")
