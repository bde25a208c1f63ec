"""The work queue: a key waits at most once and is processed by at most one worker.

The rules are those of the work queues of Kubernetes controllers:

- A key added several times before a worker takes it is processed once.
- A key added while a worker has it is queued again when that worker is done: the change may have come after the worker
  read the state.
- A key that fails is retried after a delay that doubles with each consecutive failure, with jitter.
- A key can be requested for a later time; of several times the earliest wins.
- A key that has just been processed may rest: additions during the rest are batched for one pass. A requested time ends
  the rest.

Beyond those rules, keys wait in lanes that take turns (`lanes`): many keys of one namespace do not delay others.

Everything happens on one event loop; only `get` waits.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

from slinky_operator.runtime.lanes import Lanes, share_of

K = TypeVar("K", bound=Hashable)

FIRST_BACKOFF: Final = 0.05
"""Seconds until the retry after a first failure."""

LONGEST_BACKOFF: Final = 120.0
"""Maximum seconds between retries: a repair by hand is noticed within two minutes."""


class QueueClosed(Exception):
    """The queue was shut down and has no more keys."""


class QueueMetrics(Protocol):
    """Metrics of a queue."""

    def depth(self, waiting: int) -> None:
        """Called with the number of keys that wait for a worker, whenever it changes."""
        ...

    def waited(self, seconds: float) -> None:
        """Called with the seconds that a key has waited for a worker."""
        ...

    def retried(self) -> None:
        """Called when a key is queued for a retry."""
        ...


class WorkQueue(Generic[K]):
    """Keys to be processed, each once.

    Parameters
    ----------
    metrics
        Receives depth, waiting time and retries.
    rng
        Source of jitter.
    first_backoff, longest_backoff
        Seconds until the first retry, and maximum seconds between retries.
    lane
        The lane of a key; lanes take turns. None for a key that no limit applies to.
    workers
        Number of workers, of which one lane gets the most but not all; None for no limit.
    """

    def __init__(
        self,
        *,
        metrics: QueueMetrics | None = None,
        rng: random.Random | None = None,
        first_backoff: float = FIRST_BACKOFF,
        longest_backoff: float = LONGEST_BACKOFF,
        lane: Callable[[K], Hashable | None] = lambda _: None,
        workers: int | None = None,
    ) -> None:
        self._metrics = metrics
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._first_backoff = first_backoff
        self._longest_backoff = longest_backoff
        self._ready: Lanes[K] = Lanes(lane, share_of(workers) if workers is not None else None)
        self._idle: deque[asyncio.Future[None]] = deque()
        """One for each worker that waits."""
        self._dirty: dict[K, float] = {}
        self._processing: set[K] = set()
        self._later: dict[K, tuple[float, asyncio.TimerHandle]] = {}
        self._resting: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._closed = False

    def __len__(self) -> int:
        """Number of keys that wait for a worker; keys requested for later do not count."""
        return len(self._dirty)

    @property
    def processing(self) -> frozenset[K]:
        """Keys that workers have."""
        return frozenset(self._processing)

    def add(self, key: K) -> None:
        """Queue a key now, or at the end of its rest."""
        if self._closed or key in self._dirty:
            return
        self._dirty[key] = asyncio.get_running_loop().time()
        if key not in self._processing and key not in self._resting:
            self._put(key)
        self._depth()

    def add_after(self, key: K, delay: float) -> None:
        """Queue a key in `delay` seconds, or earlier if an earlier time was requested before."""
        if self._closed:
            return
        if delay <= 0:
            self._cancel_later(key)
            self._due(key)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + delay
        known = self._later.get(key)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()
        self._later[key] = due, loop.call_at(due, self._due, key)

    def add_failed(self, key: K, at_least: float = 0.0) -> float:
        """Queue a key for a retry after a failure.

        Parameters
        ----------
        at_least
            Minimum seconds to wait, as the failure itself requests.

        Returns
        -------
        float
            Seconds until the retry.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # Cap the exponent, too: 2.0 ** 1100 does not fit into a float.
        backoff = min(self._first_backoff * 2.0 ** min(failures, 40), self._longest_backoff)
        delay = max(backoff * self._rng.uniform(0.75, 1.25), at_least)
        if self._metrics is not None:
            self._metrics.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the failure count of a key."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Number of consecutive failures of a key."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Take the key that has waited longest in the lane whose turn it is; return it with `done`.

        A later time requested before stays: the reason may not be visible to this pass yet.

        Returns
        -------
        K
            The key.

        Raises
        ------
        QueueClosed
            After `close`.
        """
        while not self._closed and not self._ready.may_take():
            await self._wait()
        if self._closed:
            raise QueueClosed
        # From here to the return there is no await: a cancelled worker has either taken the key or left it.
        key = self._ready.take()
        since = self._dirty.pop(key)
        self._processing.add(key)
        if self._metrics is not None:
            self._metrics.waited(asyncio.get_running_loop().time() - since)
        self._depth()
        return key

    def done(self, key: K, rest: float = 0.0) -> None:
        """Return a key; if it was added meanwhile, it is queued again.

        Parameters
        ----------
        rest
            Seconds for which additions, including those made meanwhile, are batched.
        """
        if key in self._processing:
            self._processing.discard(key)
            self._ready.give_back(key)
        if self._closed:
            return
        # Another key of its lane may have waited for room.
        self._wake()
        if rest > 0:
            self._resting[key] = asyncio.get_running_loop().call_later(rest, self._rested, key)
        elif key in self._dirty:
            self._put(key)

    def close(self) -> None:
        """Accept no more keys; workers finish their keys, then `get` raises `QueueClosed`."""
        if self._closed:
            return
        self._closed = True
        for _, handle in self._later.values():
            handle.cancel()
        self._later.clear()
        for handle in self._resting.values():
            handle.cancel()
        self._resting.clear()
        self._dirty.clear()
        self._ready.clear()
        while self._idle:
            self._wake_one()
        self._depth()

    async def _wait(self) -> None:
        """Wait until a key may be taken, by this worker or another, or the queue is closed."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(woken)
        try:
            await woken
        except BaseException:
            if woken in self._idle:
                self._idle.remove(woken)
            # It may have been woken as it was cancelled: the key is for another.
            self._wake()
            raise

    def _wake(self) -> None:
        if self._ready.may_take():
            self._wake_one()

    def _wake_one(self) -> None:
        while self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                return

    def _put(self, key: K) -> None:
        self._ready.put(key)
        self._wake()

    def _due(self, key: K) -> None:
        self._later.pop(key, None)
        self.add(key)
        resting = self._resting.get(key)
        if resting is not None:
            resting.cancel()
            self._rested(key)

    def _rested(self, key: K) -> None:
        del self._resting[key]
        if key in self._dirty:
            self._put(key)

    def _cancel_later(self, key: K) -> None:
        later = self._later.pop(key, None)
        if later is not None:
            later[1].cancel()

    def _depth(self) -> None:
        if self._metrics is not None:
            self._metrics.depth(len(self._dirty))
