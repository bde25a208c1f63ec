"""The controller loop: workers take keys from a queue, reconcile them and say when to come again.

What happens after a failure is in the exception, not in the code that raised it (`Retry`). Every failure is logged
with its key, and the key comes back with backoff.

No pass ends a worker, whatever it raises. That holds for cancellations too: something that a pass waits for may have
been cancelled, which looks like a cancellation of the worker and is a failure of the pass. The worker's own, and only
that, shows in its task (`asyncio.Task.cancelling`), and it is obeyed even if the pass has swallowed it. What ends a
worker all the same is logged with the object it worked on.

What a pass has ended with is handed on, so that the object can show it; failing to do so is logged and changes nothing.
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

TELLING: Final = 30.0
"""Seconds for showing on an object that a pass over it has failed."""


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
    tell
        Shows on the object of a key what a pass over it has ended with.
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
    ) -> None:
        self.name = name
        self.queue: WorkQueue[K] = queue if queue is not None else WorkQueue(metrics=metrics)
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
        self._stopping = False
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
        self._stopping = True
        self.queue.close()
        try:
            async with asyncio.timeout(grace):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("%s: %d passes still run after %.0f s", self.name, len(self._busy), grace)

    def unhealthy(self) -> str | None:
        """Why this controller must be restarted, or `None`; for the liveness check."""
        if not self._started or self._stopping:
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
                await self._turn(key)
        except QueueClosed:
            return
        except BaseException as error:
            if not (isinstance(error, asyncio.CancelledError) and _cancelled()):
                where = "while it waited for work" if key is None else f"in a pass over {key}"
                logger.critical("%s: a worker has ended by itself %s", self.name, where, exc_info=error)
            raise
        finally:
            self._ended += 1
            if self._ended == self._workers:
                self._idle.set()

    async def _turn(self, key: K) -> None:
        """Reconcile one key and give it back."""
        rest = 0.0
        try:
            rest = await self._one(key)
        except Exception:
            # What a pass raises ends in `_outcome`: this is a mistake in telling of it.
            logger.exception("%s: a pass over %s could not be closed; it comes again", self.name, key)
            self.queue.add_failed(key)
        finally:
            self.queue.done(key, rest)

    async def _one(self, key: K) -> float:
        """Reconcile one key and decide when it comes again; gives how long it rests."""
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
        """Reconcile one key; gives the outcome, and how long the key rests."""
        try:
            async with asyncio.timeout(self._timeout):
                result = await self._reconcile(key)
        except (KeyboardInterrupt, GeneratorExit):
            # Of the process and of the event loop, not of the pass.
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
        """Let the object of a key show what a pass has ended with."""
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
            # The API server mostly fails for both, which is no news.
            known = isinstance(second, Retry | TimeoutError)
            logger.warning("the object cannot show that: %s", _words(second), exc_info=None if known else second)

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
            # An error of a boundary says all there is to say; where it was raised adds nothing.
            logger.error("trying again in %.1f s: %s", delay, told)
        elif isinstance(error, asyncio.CancelledError):
            logger.error(
                "trying again in %.1f s: what the pass waited for was cancelled by somebody else", delay, exc_info=error
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
    """Whether the running task itself is to end; a cancellation that comes out of what it waits for is none."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _words(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - an exception that cannot say what it is about
        return type(error).__name__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The failures inside an exception group: work done side by side fails side by side."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
