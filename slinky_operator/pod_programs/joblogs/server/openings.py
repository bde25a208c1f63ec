"""Who may open how many files at a time: shares of callers, and of users.

A file system that does not answer holds each process that opens a file there until it is given up. So a caller, the
address of a pod or all of the node's own pod, has a share of the openings, whatever its token says; a free one goes to
the caller that has fewest. A user has a share, too, which counts once the token has been checked: by processes, since
one that hangs in the kernel cannot even be ended.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

AT_A_TIME: Final = 16
"""Files that are opened concurrently."""

PER_CALLER: Final = 6
"""The same, for one address, or for all addresses of the pod itself."""

PER_USER: Final = 4
"""The same, of one user."""


class TooMany(Exception):
    """No turn has come in time."""


class Turns:
    """Openings that are under way for callers.

    Parameters
    ----------
    most, per_caller
        At a time.
    """

    def __init__(self, most: int = AT_A_TIME, per_caller: int = PER_CALLER) -> None:
        self._most, self._per_caller = most, per_caller
        self._changed = threading.Condition()
        self._open: Counter[str] = Counter()
        self._waiting: list[str] = []
        """Callers in the order in which they came."""

    @contextmanager
    def turn(self, caller: str, until: float) -> Iterator[None]:
        """Wait for a turn, and have it.

        Parameters
        ----------
        until
            Monotonic seconds.

        Raises
        ------
        TooMany
            There was none until then.
        """
        with self._changed:
            self._waiting.append(caller)
            try:
                if not self._changed.wait_for(lambda: self._next() == caller, max(0.0, until - time.monotonic())):
                    raise TooMany
                self._open[caller] += 1
            finally:
                self._waiting.remove(caller)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._open[caller] -= 1
                if not self._open[caller]:
                    del self._open[caller]
                self._changed.notify_all()

    def _next(self) -> str | None:
        """Whose turn it is: of callers that wait and may have one more, the one that has fewest."""
        if self._open.total() >= self._most:
            return None
        able = [one for one in self._waiting if self._open[one] < self._per_caller]
        return min(able, key=lambda one: self._open[one], default=None)


class Users:
    """Processes that open files, by the user whom they have become.

    Parameters
    ----------
    per_user
        At a time.
    opened
        Opens a descriptor of a process.
    """

    def __init__(self, per_user: int = PER_USER, opened: Callable[[int], int] = os.pidfd_open) -> None:
        self._per_user = per_user
        self._opened = opened
        self._running: dict[int, int] = {}
        """Uid by descriptor."""

    def may_open(self, uid: int) -> bool:
        """Whether a user may have another process."""
        self._forget_ended()
        return sum(one == uid for one in self._running.values()) < self._per_user

    def begun(self, process: int, uid: int) -> None:
        """Count a process."""
        try:
            self._running[self._opened(process)] = uid
        except ProcessLookupError:
            # It has ended already.
            return

    def close(self) -> None:
        """Close what belongs to the processes of others, in a new one."""
        for one in self._running:
            os.close(one)
        self._running = {}

    def _forget_ended(self) -> None:
        poll = select.poll()
        for one in self._running:
            poll.register(one, select.POLLIN)
        for one, _ in poll.poll(0):
            os.close(one)
            del self._running[one]
