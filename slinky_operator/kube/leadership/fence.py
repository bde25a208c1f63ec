"""The write fence: no write leaves a process whose leadership may have ended.

A Lease does not stop the former holder: a process that was frozen past the end of its lease would continue exactly
where it stopped. So every write checks the fence first, and the fence checks a clock, not a flag that a frozen process
could not have cleared.

The client checks three times: when the call is made, before each attempt, and from within the HTTP client right before
the bytes are handed to the socket (`connection.Connection`), which also covers requests that were waiting for
a connection, or whose task had been created but had not run yet.

What remains open: bytes already accepted by the kernel, a freeze between the last check of the clock and the system
call (microseconds, no `await` in between), a body larger than the socket buffer whose tail is still in this process,
and a request queued inside the API server. The margin between the fence's deadline and the lease's duration covers
the last two. A virtual machine whose clocks all stop while it is paused cannot notice the pause.
"""

from __future__ import annotations

import time
from typing import Protocol


def boottime() -> float:
    """Seconds of a clock that no one sets and that also runs while the machine sleeps.

    `CLOCK_MONOTONIC`, which `time.monotonic` reads, stands still during a suspend; the lease of a sleeping
    machine expires, too.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Fence(Protocol):
    """Tells whether writes may leave this process now."""

    def closed_because(self) -> str | None:
        """Why writes may not leave, or `None` if they may."""
        ...


class OpenFence:
    """For processes that need no leader election: every write may leave."""

    def closed_because(self) -> str | None:
        """Return `None`, always."""
        return None


class DeadlineFence:
    """Open until a deadline that only successful renewals push back.

    Once the deadline has passed unrenewed, its owner suspends the fence: then a renewal alone does not open it.
    """

    def __init__(self, clock: Clock = boottime) -> None:
        self._clock = clock
        self._deadline: float | None = None
        self._suspended = False
        self._closed = False

    def extend(self, deadline: float) -> None:
        """Keep the fence open until `deadline` (seconds of the fence's clock)."""
        self._deadline = deadline if self._deadline is None else max(self._deadline, deadline)

    def suspend(self) -> None:
        """Keep the fence closed until `resume`, whatever is renewed."""
        self._suspended = True

    def resume(self) -> None:
        """Let the deadline decide again."""
        self._suspended = False

    def close(self) -> None:
        """Close the fence for good; no renewal opens it again."""
        self._closed = True

    def closed_because(self) -> str | None:
        """Why writes may not leave, or `None` if they may."""
        if self._closed:
            return "leadership was given up"
        if self._deadline is None:
            return "this process has not become leader"
        late = self._clock() - self._deadline
        if late >= 0:
            return f"the lease was not renewed in time ({late:.1f} s past the deadline)"
        if self._suspended:
            return "the lease was not renewed in time, and it is not known yet whether another release has begun since"
        return None


class Clock(Protocol):
    """A source of seconds."""

    def __call__(self) -> float:
        """Return the time now in seconds."""
        ...
