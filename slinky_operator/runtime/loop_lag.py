"""The lag of the event loop, and where it hangs.

The whole operator shares one event loop: a stall delays lease renewals, probes and every Cluster. The lag is a metric.
When the loop is blocked for some seconds, a separate thread logs the stack that blocks it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

INTERVAL: Final = 0.25
"""Seconds between two measurements."""

STUCK: Final = 5.0
"""Seconds of a blocked loop after which the stack is logged."""


class LoopLag:
    """Measures the running event loop.

    Parameters
    ----------
    observe
        Called with each measured lag in seconds.
    """

    def __init__(self, observe: Callable[[float], None], *, interval: float = INTERVAL, stuck: float = STUCK) -> None:
        self._observe = observe
        self._interval = interval
        self._stuck = stuck
        self._beat = time.monotonic()
        self._stopped = threading.Event()

    async def run(self) -> None:
        """Measure until cancelled."""
        self._beat = time.monotonic()
        self._stopped.clear()
        watcher = threading.Thread(target=self._watch, args=(threading.get_ident(),), name="loop-lag", daemon=True)
        watcher.start()
        loop = asyncio.get_running_loop()
        try:
            while True:
                due = loop.time() + self._interval
                await asyncio.sleep(self._interval)
                self._observe(max(0.0, loop.time() - due))
                self._beat = time.monotonic()
        finally:
            self._stopped.set()

    def _watch(self, loop_thread: int) -> None:
        told = 0.0
        while not self._stopped.wait(self._interval):
            beat = self._beat
            if time.monotonic() - beat < self._stuck or beat == told:
                continue
            # Once per stall: the beat does not change until the loop runs again.
            told = beat
            frame = sys._current_frames().get(loop_thread)  # noqa: SLF001 - the documented way to a stack
            where = "".join(traceback.format_stack(frame)) if frame is not None else "(no stack)"
            logger.error("the event loop has been blocked for %.1f s:\n%s", time.monotonic() - beat, where)
