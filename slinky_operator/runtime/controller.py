"""The controller loop: workers take keys from a queue, reconcile them and requeue them.

The exception decides what happens after a failure (`Retry`). Every failure is logged with its key, and the key is
retried with backoff.

No pass ends a worker, whatever it raises. This includes cancellations: something that a pass waits for may have been
cancelled, which looks like a cancellation of the worker but is a failure of the pass. Only a cancellation of the worker
itself shows in its task (`asyncio.Task.cancelling`), and it takes effect even if the pass has swallowed it. If a worker
exits nevertheless, this is logged with the object it worked on.

The error of a failed pass is passed to `tell`, so that the object can show it; if that fails, it is only logged.
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
"""Seconds for one pass. Each call inside has its own, shorter timeout; this is the last resort."""

TELLING: Final = 30.0
"""Seconds for showing on an object that a pass over it has failed."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a pass."""

    requeue_after: float | None = None
    """Seconds until the next pass even if nothing changes; `None` to wait for a change."""
    rest: float = 0.0
    """Seconds for which changes are batched before the next pass."""


@runtime_checkable
class Retry(Protocol):
    """How an exception controls the retry. Exceptions without these attributes count as bugs."""

    expected: bool
    """Whether it happens in healthy operation: one line in the log, no stack trace."""

    retry_after: float | None
    """Minimum seconds to wait; `None` for the backoff alone."""


class ControllerMetrics(QueueMetrics, Protocol):
    """Metrics of a controller."""

    def reconciled(self, outcome: str, seconds: float) -> None:
        """Called after each pass; the outcome is `ok`, `requeue`, `retry` or `error`."""
        ...

    def workers(self, busy: int) -> None:
        """Called when the number of busy workers changes."""
        ...


class Gate(Protocol):
    """Something that must be ready before a pass, such as a cache."""

    async def wait(self) -> object:
        """Return once it is ready."""
        ...

    def is_set(self) -> bool:
        """Whether it is ready."""
        ...


class Controller(Generic[K]):
    """Workers over one queue.

    Parameters
    ----------
    name
        For log lines and metrics.
    reconcile
        Reconciles a key. Called by one worker at a time per key.
    workers
        Number of keys reconciled concurrently.
    gates
        Conditions for each pass: `asyncio.Event`s of caches, leadership. One that closes again lets the passes end that
        have begun, and no other begin.
    describe
        Kind, namespace and name of a key, for log lines.
    timeout
        Seconds after which a pass is cancelled and counts as failed.
    tell
        Shows the error of a failed pass on the object of its key.
    lane
        The lane of a key, as `WorkQueue` has it; none by default.
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
        tell: Callable[[K, BaseException], Awaitable[None]] | None = None,
        queue: WorkQueue[K] | None = None,
        lane: Callable[[K], Hashable | None] = lambda _: None,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[K] = (
            queue if queue is not None else WorkQueue(metrics=metrics, lane=lane, workers=workers)
        )
        self._reconcile = reconcile
        self._workers = workers
        self._gates = tuple(gates)
        self._metrics = metrics
        self._describe = describe or (lambda key: (name, None, str(key)))
        self._timeout = timeout
        self._tell = tell
        self._busy: dict[K, float] = {}
        self._ended = 0
        self._started = False
        self._closing = asyncio.Event()
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
        """Take no more keys and wait until the workers have finished.

        Parameters
        ----------
        grace
            Maximum seconds to wait.
        """
        self._closing.set()
        self.queue.close()
        try:
            async with asyncio.timeout(grace):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("%s: %d passes still run after %.0f s", self.name, len(self._busy), grace)

    def unhealthy(self) -> str | None:
        """Why this controller must be restarted, or `None`; for the liveness check."""
        if not self._started or self._closing.is_set():
            return None
        if self._ended:
            return f"{self.name}: {self._ended} of {self._workers} workers have ended"
        now = time.monotonic()
        stuck = [key for key, since in self._busy.items() if now - since > 2 * self._timeout]
        if stuck:
            return f"{self.name}: a pass over {stuck[0]} does not end and ignores its timeout"
        return None

    async def _work(self) -> None:
        self._idle.clear()
        key: K | None = None
        try:
            while not _cancelled():
                key = None
                key = await self.queue.get()
                await self._until_open()
                await self._turn(key)
                # Passes that wait for nothing would hold the event loop until the queue is empty.
                await asyncio.sleep(0)
        except QueueClosed:
            return
        except BaseException as error:
            if not (isinstance(error, asyncio.CancelledError) and _cancelled()):
                where = "while it waited for work" if key is None else f"in a pass over {key}"
                logger.critical("%s: a worker has exited unexpectedly %s", self.name, where, exc_info=error)
            raise
        finally:
            self._ended += 1
            if self._ended == self._workers:
                self._idle.set()

    async def _until_open(self) -> None:
        """Wait for all gates, which usually are open; not when this controller is being stopped."""
        while not self._closing.is_set() and (gate := self._closed_gate()) is not None:
            either = [asyncio.ensure_future(one.wait()) for one in (gate, self._closing)]
            try:
                _ = await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in either:
                    _ = one.cancel()
        if self._closing.is_set():
            raise QueueClosed

    def _closed_gate(self) -> Gate | None:
        return next((gate for gate in self._gates if not gate.is_set()), None)

    async def _turn(self, key: K) -> None:
        """Reconcile one key and give it back."""
        rest = 0.0
        try:
            rest = await self._one(key)
        except Exception:
            # `_outcome` handles what a pass raises: this is an error in reporting it.
            logger.exception("%s: the outcome of a pass over %s could not be recorded; trying again", self.name, key)
            self.queue.add_failed(key)
        finally:
            self.queue.done(key, rest)

    async def _one(self, key: K) -> float:
        """Reconcile one key and requeue it; returns its rest in seconds."""
        began = time.monotonic()
        self._busy[key] = began
        outcome, rest = "error", 0.0
        try:
            self._count_busy()
            with about(*self._describe(key)):
                outcome, rest = await self._outcome(key)
        finally:
            del self._busy[key]
            self._count_busy()
            if self._metrics is not None:
                self._metrics.reconciled(outcome, time.monotonic() - began)
        return rest

    async def _outcome(self, key: K) -> tuple[str, float]:
        """Reconcile one key; returns the outcome and the rest in seconds."""
        try:
            async with asyncio.timeout(self._timeout):
                result = await self._reconcile(key)
        except (KeyboardInterrupt, GeneratorExit):
            # These belong to the process and the event loop, not to the pass.
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _cancelled():
                raise
            outcome = self._failed(key, error)
            await self._show(key, error)
            return outcome, 0.0
        self.queue.forget(key)
        if result.requeue_after is None:
            return "ok", result.rest
        self.queue.add_after(key, result.requeue_after)
        return "requeue", result.rest

    async def _show(self, key: K, error: BaseException) -> None:
        """Show the error of a pass on the object of its key."""
        if self._tell is None:
            return
        try:
            async with asyncio.timeout(TELLING):
                await self._tell(key, error)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as second:
            if isinstance(second, asyncio.CancelledError) and _cancelled():
                raise
            # Mostly the API server fails for both, which has been logged.
            known = isinstance(second, Retry | TimeoutError)
            logger.warning("cannot show it on the object: %s", _words(second), exc_info=None if known else second)

    def _failed(self, key: K, error: BaseException) -> str:
        """Log a failure and queue the key again; returns the outcome."""
        leaves = list(_leaves(error))
        wanted = max((leaf.retry_after or 0.0 for leaf in leaves if isinstance(leaf, Retry)), default=0.0)
        delay = self.queue.add_failed(key, wanted)
        told = "; ".join(_words(leaf) for leaf in leaves)
        if all(isinstance(leaf, Retry) and leaf.expected for leaf in leaves):
            logger.info("trying again in %.1f s: %s", delay, told)
            return "retry"
        if all(isinstance(leaf, Retry) for leaf in leaves):
            # The message of a boundary's error is complete; a stack trace adds nothing.
            logger.error("trying again in %.1f s: %s", delay, told)
        elif isinstance(error, asyncio.CancelledError):
            logger.error(
                "trying again in %.1f s: something that the pass waited for was cancelled", delay, exc_info=error
            )
        elif isinstance(error, TimeoutError) and not str(error):
            logger.error("a pass did not end within %.0f s; trying again in %.1f s", self._timeout, delay)
        else:
            logger.error("trying again in %.1f s after a failure", delay, exc_info=error)
        return "error"

    def _count_busy(self) -> None:
        if self._metrics is not None:
            self._metrics.workers(len(self._busy))


def _cancelled() -> bool:
    """Whether the running task itself was cancelled, and not something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _words(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - an exception that cannot say what it is about
        return type(error).__name__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The failures inside an exception group: concurrent work fails concurrently."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
