"""A single answer of Slurm, asked for at an interval; a failure keeps the last answer, and its age is shown.

How long an answer may be used is left to the families: what is too old is not exported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from slurm_client.errors import NotSupported, SlurmError
from slurm_exporter.sources.health import Health

T = TypeVar("T")

_log = logging.getLogger("slurm_exporter")


class Polled(Generic[T]):
    """One answer and its health.

    Parameters
    ----------
    name
        Name of the source.
    ask
        Asks Slurm.
    interval
        Seconds between polls; after failures up to four times as many.
    clock
        Monotonic seconds.
    """

    def __init__(self, name: str, ask: Callable[[], Awaitable[T]], interval: float, clock: Callable[[], float]) -> None:
        self._name = name
        self._ask = ask
        self._interval = interval
        self._clock = clock
        self._confirmed_at: float | None = None
        self._polls = self._failures = self._in_a_row = 0
        self._error = ""
        self._duration: float | None = None
        self.answer: T | None = None

    async def poll(self) -> float:
        """Ask once; returns the seconds to wait."""
        asked = self._clock()
        self._polls += 1
        try:
            self.answer = await self._ask()
            self._duration = self._clock() - asked
        except SlurmError as error:
            self._duration = self._clock() - asked
            self._failures += 1
            self._in_a_row += 1
            if not self._error:
                _log.warning("no answer for %s: %s", self._name, error)
            self._error = str(error)[:500]
            if isinstance(error, NotSupported):
                self.answer = None
            return self._interval * min(4, self._in_a_row)
        if self._error:
            _log.info("%s is answered again after %d failures", self._name, self._in_a_row)
        self._error, self._in_a_row, self._confirmed_at = "", 0, asked
        return self._interval

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            pause = await self.poll()
            await asyncio.sleep(pause)

    @property
    def health(self) -> Health:
        """How it is doing."""
        is_up = self._confirmed_at is not None and not self._error
        return Health(self._name, is_up, self._confirmed_at, self._polls, self._failures, self._duration, self._error)
