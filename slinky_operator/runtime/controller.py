"""The controller loop: workers take keys from a queue, reconcile them and say when to come again.

What happens after a failure is in the exception, not in the code that raised it (`Retry`). Every failure is logged
with its key, and the key comes back with backoff; no exception ends a worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar, runtime_checkable

from slinky_operator.runtime.logging import about
from slinky_operator.runtime.queue import QueueClosed, QueueMetrics, WorkQueue

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

TIMEOUT: Final = 300.0
"""Seconds for one pass. Each call inside has a shorter one of its own; this is the net below them."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a pass has to say."""

    requeue_after: float | None = None
    """Seconds until the next pass even if nothing changes; `None` to wait for a change."""
    rest: float = 0.0
    """Seconds for which changes are gathered before they are worth another pass."""


@runtime_checkable
class Retry(Protocol):
    """What an exception may say about the next try. Exceptions without these attributes are taken for bugs."""

    expected: bool
    """Whether it happens in healthy operation: one line in the log, no stack trace."""

    retry_after: float | None
    """Seconds to wait at least; `None` leaves it to the backoff."""


class ControllerMetrics(QueueMetrics, Protocol):
    """What a controller tells about itself."""

    def reconciled(self, outcome: str, seconds: float) -> None:
        """Called after each pass; the outcome is `ok`, `requeue`, `retry` or `error`."""
        ...

    def workers(self, busy: int) -> None:
        """Called when the number of busy workers changes."""
        ...


class Gate(Protocol):
    """Something that must be ready before the first pass, such as a cache."""

    async def wait(self) -> object:
        """Return once it is ready."""
        ...


class Controller(Generic[K]):
    """Workers over one queue.

    Parameters
    ----------
    name
        For log lines and metrics.
    reconcile
        Brings the world in line with what is wanted for a key. Called by one worker at a time per key.
    workers
        Number of keys worked on at once.
    gates
        Waited for before the first pass: `asyncio.Event`s of caches, leadership.
    describe
        Kind, namespace and name of a key, for log lines.
    timeout
        Seconds after which a pass is cancelled and counts as failed.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Result]],
        *,
        workers: int = 4,
        gates: Sequence[Gate] = (),
        metrics: ControllerMetrics | None = None,
        describe: Callable[[K], tuple[str, str | None, str]] | None = None,
        timeout: float = TIMEOUT,
        queue: WorkQueue[K] | None = None,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[K] = queue if queue is not None else WorkQueue(metrics=metrics)
        self._reconcile = reconcile
        self._workers = workers
        self._gates = tuple(gates)
        self._metrics = metrics
        self._describe = describe or (lambda key: (name, None, str(key)))
        self._timeout = timeout
        self._busy: dict[K, float] = {}
        self._running = 0
        self._started = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Wait for the gates, then work until the queue is closed or the task is cancelled."""
        for gate in self._gates:
            await gate.wait()
        logger.info("%s: all caches are filled, starting %d workers", self.name, self._workers)
        self._started = True
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                _ = group.create_task(self._work(), name=f"{self.name} worker {number}")

    async def stop(self, grace: float) -> None:
        """Take no more keys and wait until the workers have finished, `grace` seconds at most."""
        self.queue.close()
        try:
            async with asyncio.timeout(grace):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("%s: %d passes still run after %.0f s", self.name, len(self._busy), grace)

    def unhealthy(self) -> str | None:
        """Why this controller must be restarted, or `None`; for the liveness check."""
        if not self._started:
            return None
        if self._running < self._workers:
            return f"{self.name}: {self._workers - self._running} of {self._workers} workers have ended"
        now = time.monotonic()
        stuck = [key for key, since in self._busy.items() if now - since > 2 * self._timeout]
        if stuck:
            return f"{self.name}: a pass over {stuck[0]} does not end and ignores its timeout"
        return None

    async def _work(self) -> None:
        self._running += 1
        self._idle.clear()
        try:
            while True:
                key = await self.queue.get()
                rest = 0.0
                try:
                    rest = await self._one(key)
                finally:
                    self.queue.done(key, rest)
        except QueueClosed:
            return
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def _one(self, key: K) -> float:
        """Reconcile one key and decide when it comes again; gives how long it rests."""
        began = time.monotonic()
        self._busy[key] = began
        self._count_busy()
        outcome, rest = "error", 0.0
        with about(*self._describe(key)):
            try:
                async with asyncio.timeout(self._timeout):
                    result = await self._reconcile(key)
            except Exception as error:  # noqa: BLE001 - the one place where every failure of a pass ends
                outcome = self._failed(key, error)
            else:
                self.queue.forget(key)
                outcome, rest = "ok", result.rest
                if result.requeue_after is not None:
                    outcome = "requeue"
                    self.queue.add_after(key, result.requeue_after)
            finally:
                del self._busy[key]
                self._count_busy()
                if self._metrics is not None:
                    self._metrics.reconciled(outcome, time.monotonic() - began)
        return rest

    def _failed(self, key: K, error: Exception) -> str:
        """Log a failure and queue the key again; returns the outcome."""
        leaves = list(_leaves(error))
        wanted = max((leaf.retry_after or 0.0 for leaf in leaves if isinstance(leaf, Retry)), default=0.0)
        delay = self.queue.add_failed(key, wanted)
        told = "; ".join(str(leaf) or type(leaf).__name__ for leaf in leaves)
        if all(isinstance(leaf, Retry) and leaf.expected for leaf in leaves):
            logger.info("trying again in %.1f s: %s", delay, told)
            return "retry"
        if all(isinstance(leaf, Retry) for leaf in leaves):
            # An error of a boundary says all there is to say; where it was raised adds nothing.
            logger.error("trying again in %.1f s: %s", delay, told)
        elif isinstance(error, TimeoutError) and not str(error):
            logger.error("a pass did not end within %.0f s; trying again in %.1f s", self._timeout, delay)
        else:
            logger.error("trying again in %.1f s after a failure", delay, exc_info=error)
        return "error"

    def _count_busy(self) -> None:
        if self._metrics is not None:
            self._metrics.workers(len(self._busy))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The failures inside an exception group: work done side by side fails side by side."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
