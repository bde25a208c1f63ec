"""
The circuit of one server: after calls have failed in a row, the next ones fail at once instead of waiting each.

Who holds many clients needs this: a worker that waits 20 s for a slurmctld that is away is a worker less for the
others. One call is let through after each pause, and its outcome decides.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from slurm_client.errors import CircuitOpen, Request, SlurmError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Circuit", "CircuitState"]


@dataclass(frozen=True, slots=True)
class CircuitState:
    """
    How it stands with a server.

    Parameters
    ----------
    name
        ``closed``: calls are made. ``open``: they fail at once. ``half-open``: the next one decides.
    failures
        Calls that found nobody, in a row.
    since
        Monotonic time of the first of them; ``None`` when the last call was answered.
    error
        The last of them.
    """

    name: Literal["closed", "open", "half-open"]
    failures: int = 0
    since: float | None = None
    error: SlurmError | None = None


class Circuit:
    """
    Counts failures in a row and says whether to try.

    Parameters
    ----------
    threshold
        Failures in a row after which it opens; 0 never opens.
    first_pause, longest_pause
        Seconds it stays open; doubles with each failed trial.
    clock
        Monotonic seconds.
    jitter
        Number in [0, 1); pauses are drawn from their upper half.
    """

    def __init__(
        self,
        *,
        threshold: int = 5,
        first_pause: float = 1.0,
        longest_pause: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._threshold = threshold
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._clock = clock
        self._jitter = jitter
        self._failures = 0
        self._since: float | None = None
        self._open_until = float("-inf")
        self._error: SlurmError | None = None
        self._trial_until = float("-inf")

    @property
    def state(self) -> CircuitState:
        """How it stands now."""
        name: Literal["closed", "open", "half-open"] = "closed"
        if self._is_over_threshold:
            name = "open" if self._clock() < self._open_until else "half-open"
        return CircuitState(name, self._failures, self._since, self._error)

    @property
    def _is_over_threshold(self) -> bool:
        return 0 < self._threshold <= self._failures

    def check(self, request: Request) -> None:
        """Raise CircuitOpen unless a call may be made now."""
        if not self._is_over_threshold:
            return
        now = self._clock()
        if now < max(self._open_until, self._trial_until):
            last = self._error.message if self._error is not None else ""
            raise CircuitOpen(f"not tried after {self._failures} failures, the last: {last}", request=request)
        # This call is the trial; others wait for its outcome, but not forever: its task may be cancelled.
        self._trial_until = now + self._longest_pause

    def succeeded(self) -> None:
        """The server answered, if only to refuse."""
        self._failures, self._since, self._error = 0, None, None
        self._open_until = self._trial_until = float("-inf")

    def failed(self, error: Unreachable) -> None:
        """Nobody answered."""
        now = self._clock()
        self._failures += 1
        self._since = now if self._since is None else self._since
        self._error = error
        self._trial_until = float("-inf")
        if self._is_over_threshold:
            doublings = min(self._failures - self._threshold, 16)
            pause = min(self._longest_pause, self._first_pause * 2**doublings)
            self._open_until = now + pause * (0.5 + 0.5 * self._jitter())
