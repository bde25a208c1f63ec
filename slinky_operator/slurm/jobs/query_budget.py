"""How much of the time expensive queries of Slurm may take: a burst is answered at once, and others wait.

Lists of jobs are the most expensive (`job_list`). Others that ask for them now and then wait by the same rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SHARE: Final = 0.02
"""Part of the time that questions for jobs may take in the long run."""

BURST: Final = 2.0
"""Seconds of requests that are saved up while there are none."""

LONGEST_WAIT: Final = 60.0
"""Seconds after which jobs are asked for again, whatever the last answer cost: nodes that have become free wait for it,
and one slow answer of a busy slurmctld must not hold them for half an hour."""


def wait_after(cost: float) -> float:
    """How long an answer that took `cost` seconds is to be used, in seconds."""
    return min(LONGEST_WAIT, cost / SHARE)


class Budget:
    """Seconds that may be spent on questions: they come back at a rate of `SHARE`, up to `BURST`.

    What was spent beyond them is remembered as far as it is paid for within `LONGEST_WAIT`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = BURST
        self._at = clock()

    @property
    def left(self) -> float:
        """Seconds left; negative where more was spent than there was."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._at) * SHARE)
        self._at = now
        return self._left

    def spend(self, seconds: float) -> None:
        """Count a question that has taken so long."""
        self._left = max(self.left - seconds, -LONGEST_WAIT * SHARE)
