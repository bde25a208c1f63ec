"""The only threads of the operator in which Python code runs for a controller: a pool for each purpose.

The default executor of asyncio has a few threads for everything. One purpose whose calls take long would take them all,
and a pass that is cancelled leaves its call running there. So each purpose has threads of its own, and a call here

- runs at most once at a time for each key: a pass that comes after one that gave up waits until the call of that one
  has ended, and nothing is begun twice;
- has its turn by namespace: calls of one namespace never hold all threads of a pool that has several, and delay those
  of another namespace by one call;
- is refused with `Busy` if too many wait.

A thread cannot be stopped from outside. What runs here must end by itself: the purpose of each pool says why it does.
The default executor is left to the look-up of host names (`serve_names`).
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from slinky_operator.runtime.lanes import Lanes, share_of

P = ParamSpec("P")
T = TypeVar("T")

Key = tuple[str, ...]
"""What a call is about: its namespace, empty if it has none, then what identifies it."""

MOST_WAITING: Final = 256
"""Calls that wait in one pool."""

MOST_OF_A_NAMESPACE: Final = 64
"""Calls of one namespace that wait in one pool."""

NAMES: Final = 32
"""Threads that look up host names: each may wait for a DNS server for half a minute."""


class Busy(Exception):
    """Too many calls wait for the threads of one purpose; the pass is to be repeated."""

    expected = True
    retry_after = 5.0

    def __init__(self, purpose: str, whose: str) -> None:
        super().__init__(f"too many calls wait for the threads for {purpose}{whose}")


@dataclass(slots=True, eq=False)
class _Call:
    key: Key
    run: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


class Pool:
    """Threads for one purpose.

    Parameters
    ----------
    purpose
        What they are for; threads are named after it.
    threads
        How many there are at most.
    most, most_of_a_namespace
        Calls that may wait for one, of all namespaces and of one.
    """

    def __init__(
        self,
        purpose: str,
        threads: int,
        *,
        most: int = MOST_WAITING,
        most_of_a_namespace: int = MOST_OF_A_NAMESPACE,
    ) -> None:
        self.purpose = purpose
        self._threads = threads
        self._most, self._most_of_a_namespace = most, most_of_a_namespace
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=purpose)
        self._lock = threading.Lock()
        self._lanes: Lanes[_Call] = Lanes(lambda call: call.key[0] or None, share_of(threads))
        self._behind: dict[Key, deque[_Call]] = {}
        """Keys that run or wait for a thread, each with the calls that come after it."""
        self._waiting: Counter[str] = Counter()
        """Calls that have not begun, by namespace."""
        self._workers = 0

    def has(self, key: Key) -> bool:
        """Whether a call for this key runs or waits, even if nobody waits for its answer any more."""
        with self._lock:
            return key in self._behind

    async def run(self, key: Key, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in a thread: all that it reads must be frozen, or nobody else's meanwhile.

        Parameters
        ----------
        key
            What the call is about. Calls of one key run one after the other.
        function
            Must end by itself. If the caller is cancelled, it runs on if it has begun.

        Raises
        ------
        Busy
            Too many calls wait.
        """
        call = _Call(key, partial(contextvars.copy_context().run, partial(function, *args, **kwargs)))
        self._put(call)
        answer: T = await asyncio.wrap_future(call.future)
        return answer

    def _put(self, call: _Call) -> None:
        namespace = call.key[0]
        with self._lock:
            if self._waiting.total() >= self._most:
                raise Busy(self.purpose, "")
            if namespace and self._waiting[namespace] >= self._most_of_a_namespace:
                raise Busy(self.purpose, f" in namespace {namespace}")
            self._waiting[namespace] += 1
            if call.key in self._behind:
                self._behind[call.key].append(call)
                return
            self._behind[call.key] = deque()
            self._lanes.put(call)
            if self._workers >= self._threads:
                return
            self._workers += 1
        _ = self._executor.submit(self._work)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            answer, error = None, None
            begun = call.future.set_running_or_notify_cancel()
            try:
                answer = call.run() if begun else None
            except BaseException as raised:  # noqa: BLE001 - the caller's to handle
                error = raised
            # First: a caller that has its answer may come again at once.
            self._end(call)
            if begun and error is not None:
                call.future.set_exception(error)
            elif begun:
                call.future.set_result(answer)
            del call, answer, error

    def _next(self) -> _Call | None:
        with self._lock:
            if not self._lanes.may_take():
                self._workers -= 1
                return None
            call = self._lanes.take()
            self._waiting[call.key[0]] -= 1
            if not self._waiting[call.key[0]]:
                del self._waiting[call.key[0]]
            return call

    def _end(self, call: _Call) -> None:
        with self._lock:
            self._lanes.give_back(call)
            behind = self._behind[call.key]
            if behind:
                self._lanes.put(behind.popleft())
            else:
                del self._behind[call.key]


RULES: Final = Pool("rules", 2)
"""Rules of controllers about one object or its answers from Slurm. They end because objects have bounds
(`kube.cache.weight`), and so have the answers of Slurm."""

COUNTS: Final = Pool("counts", 2)
"""Counts of the jobs of a Cluster by autoscaling. They end because each has a number of steps and a deadline
(`autoscaling.rules.effort`)."""

JOBS: Final = Pool("jobs", 2)
"""Translations of jobs, and counts of the records of one job. They end because specs and lists of jobs have bounds."""

PAGES: Final = Pool("metrics", 1)
"""The page of metrics. It ends because the operator keeps a bounded number of series."""

KEYS: Final = Pool("keys", 1)
"""SSH host keys. They end because there is a fixed number of keys for each LoginSet."""

CERTIFICATES: Final = Pool("certificates", 1)
"""The certificate of the kubelet API. Its work ends because files have a size, and there is one pair."""


def serve_names(loop: asyncio.AbstractEventLoop) -> None:
    """Give an event loop an executor of its own for the look-up of host names, for which there is no other way."""
    loop.set_default_executor(ThreadPoolExecutor(NAMES, thread_name_prefix="names"))
