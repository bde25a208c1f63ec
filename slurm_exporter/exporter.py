"""The exporter as one object: asks Slurm, counts, and keeps the pages ready.

Every few seconds one snapshot is counted and written; scrapers get that text, with the age of the data as it is at the
moment of the scrape.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from slurm_client import Pace, SlurmClient
from slurm_exporter.counting import Budgets, Counted, Counting
from slurm_exporter.families import itself
from slurm_exporter.page import server
from slurm_exporter.page.server import Page, Server
from slurm_exporter.samples.family import Samples
from slurm_exporter.sources.collector import Cadence, Collector

_log = logging.getLogger("slurm_exporter")


def pace(cadence: Cadence) -> Pace:
    """How often the watches of the exporter's client poll."""
    return Pace(interval=cadence.interval, longest_interval=max(60.0, cadence.interval))


class Exporter:
    """Polls one slurmrestd and serves what it says.

    Parameters
    ----------
    client
        Connection, built with `pace(cadence)`; stays the caller's.
    cadence
        How often Slurm is asked.
    budgets
        What has samples of its own.
    labels
        Labels that each sample gets.
    accounting
        Whether to ask for fair share and slurmdbd.
    host, port
        Where to listen.
    clock
        Monotonic seconds.
    """

    def __init__(
        self,
        client: SlurmClient,
        cadence: Cadence,
        budgets: Budgets,
        *,
        labels: Mapping[str, str] | None = None,
        accounting: bool = True,
        host: str | None = None,
        port: int = 8080,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._cadence = cadence
        self._labels = dict(labels or {})
        self._clock = clock
        self._collector = Collector(client, cadence, accounting=accounting, clock=clock)
        self._counting = Counting(budgets)
        self._page = b""
        self._counted = Counted(())
        self._series = 0
        self._duration: float | None = None
        self._scrapes = 0
        self._task: asyncio.Task[None] | None = None
        # Not the default executor, which looks up host names. A call ends because `Budgets` bound the samples.
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="page")
        pages: dict[str, Page] = {"/metrics": self._metrics}
        self._server = Server(pages, self._problem, self._not_ready, host=host, port=port)

    @property
    def port(self) -> int:
        """Port it listens on."""
        return self._server.port

    async def __aenter__(self) -> Self:
        # First what may fail: a port in use.
        await self._server.start()
        await self._collector.__aenter__()
        self._task = asyncio.create_task(self._count_for_ever(), name="counting")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._collector.__aexit__()

    async def run(self) -> None:
        """Wait until something breaks that is not Slurm.

        Raises
        ------
        RuntimeError
            With what broke.
        """
        if self._task is None:
            raise RuntimeError("the exporter was not started")
        await asyncio.wait({self._task, *self._collector.tasks}, return_when=asyncio.FIRST_COMPLETED)
        raise RuntimeError(self._problem())

    async def refresh(self) -> None:
        """Count and write what is known now."""
        started = self._clock()
        counted = await self._counting.count(self._collector.snapshot())
        # In a thread, a family at a time: those of single nodes have thousands of lines.
        loop = asyncio.get_running_loop()
        pieces = [
            await loop.run_in_executor(self._writing, server.written, samples, self._labels)
            for samples in counted.samples
        ]
        self._page = b"".join(pieces)
        self._counted = counted
        self._series = server.series(counted.samples)
        self._duration = self._clock() - started

    async def _count_for_ever(self) -> None:
        while True:
            await self.refresh()
            # Before the first answers there is nothing to show: look often, so that the page is there when they are.
            await asyncio.sleep(0.2 if self._not_ready() else self._cadence.interval)

    def _metrics(self) -> bytes:
        self._scrapes += 1
        own = [*self._own()]
        return b"".join([self._page, *(server.written(samples, self._labels) for samples in own)])

    def _own(self) -> list[Samples]:
        return [
            *itself.sources(self._collector.health(), self._clock()),
            *itself.page(self._series, self._counted.left_out, self._duration),
            Samples(itself.REQUESTS, {(): self._client.calls}),
            Samples(itself.BYTES, {(): self._client.bytes_received}),
            Samples(itself.SCRAPES, {(): self._scrapes}),
        ]

    def _problem(self) -> str:
        if self._task is not None and self._task.done() and not self._task.cancelled():
            return f"counting: {self._task.exception() or 'ended'}"
        return self._collector.crashed

    def _not_ready(self) -> str:
        missing = sorted(
            each.name for each in self._collector.health() if each.name in itself.NEEDED and each.confirmed_at is None
        )
        return f"Slurm has not yet answered for: {', '.join(missing)}" if missing else ""
