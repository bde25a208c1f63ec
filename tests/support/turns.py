"""The CPU time for which one turn of the event loop blocks everything else.

On a shared machine a loop is also late if it gets no CPU: that is the lag, by the clock. The process itself is
responsible only for the CPU time of one turn of its loop.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any


class Turns:
    """The turns of the running loop since `begin`."""

    def __init__(self) -> None:
        self._cpu: list[float] = []
        self._ended = time.thread_time()
        loop: Any = asyncio.get_running_loop()
        run_once = loop._run_once

        def turn() -> None:
            run_once()
            # One look at a turn, since looking takes time as well; waiting for something to happen takes none.
            ended = time.thread_time()
            self._cpu.append(ended - self._ended)
            self._ended = ended

        loop._run_once = turn

    def begin(self) -> None:
        """Forget all turns so far, and what this one has taken until now: a collection on request, for example."""
        self._cpu.clear()
        self._ended = time.thread_time()

    def longest(self) -> float:
        """Seconds of CPU that the longest turn took."""
        return max(self._cpu, default=0.0)

    def most_of(self, hundredths: int) -> float:
        """Seconds of CPU that so many in a hundred turns took at most."""
        return sorted(self._cpu)[len(self._cpu) * hundredths // 100] if self._cpu else 0.0
