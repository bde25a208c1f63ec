"""
Changes as events, out of a server that can only be polled.

One poll serves any number of readers. Each reader first gets everything that is known as additions, then every change
with the true object before and after it, in order. Outages are survived with growing pauses, and how old the picture is
can be seen at any time. What an event means is left to the reader; how often a call is repeated, to the session.

Between two polls several changes of one object look like one: this is a watch of states, not a log.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
import weakref
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeAlias, TypeVar

from slurm_client import errors
from slurm_client.models import Job, Node, Partition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from types import TracebackType

    from slurm_client.operations.base import Listing

__all__ = ["Event", "JobEvent", "NodeEvent", "Pace", "PartitionEvent", "Reader", "Watch", "WatchStatus"]

T = TypeVar("T")

_LASTING = (errors.Unauthorized, errors.PermissionDenied, errors.NotSupported)
"""Errors that will not resolve: a token that is refused even after a renewal, a call that the server lacks."""

_TRIES = 3
"""How often an object is asked for singly when a list overtakes the answer."""

_log = logging.getLogger("slurm_client")


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """
    One change of one object.

    Parameters
    ----------
    key
        Name of the node or partition, id of the job as text.
    old
        The object before; ``None`` if it was not there.
    new
        The object now; ``None`` if it is gone.
    """

    key: str
    old: T | None
    new: T | None

    @property
    def kind(self) -> Literal["added", "changed", "removed"]:
        """Which of the three it is."""
        if self.old is None:
            return "added"
        return "removed" if self.new is None else "changed"


NodeEvent: TypeAlias = Event[Node]
JobEvent: TypeAlias = Event[Job]
PartitionEvent: TypeAlias = Event[Partition]


@dataclass(frozen=True, slots=True)
class WatchStatus:
    """
    How much the picture of a watch is worth.

    Parameters
    ----------
    synced
        Whether there was a first list.
    age
        Seconds since the server last confirmed the picture; ``None`` before the first list.
    failures
        Polls that failed in a row.
    error
        Why the last one did.
    polls, full_answers
        Requests for the list, and how many of them were answered by a list.
    interval
        Seconds to the next poll, as of the last one.
    objects
        How many there are.
    """

    synced: bool
    age: float | None
    failures: int
    error: errors.SlurmError | None
    polls: int
    full_answers: int
    interval: float
    objects: int


@dataclass(frozen=True, slots=True)
class Pace:
    """
    How often to ask.

    Parameters
    ----------
    interval
        Seconds between polls while answers are cheap.
    share
        Largest share of time that full answers may take; after one that took a second, at least
        ``1 / share - 1`` seconds pass.
    longest_interval
        Seconds; bounds what ``share`` demands.
    resync
        Seconds after which a full answer is asked for even if nothing seems to have changed (the server's clock may
        have been set back).
    first_pause, longest_pause
        Seconds to wait after a failed poll; doubles in between and is drawn at random from its upper half.
    backlog
        Events a reader may be behind before several changes of one object are made into one.
    refusals
        Polls in a row that are refused (bad token, no right, no such call) before readers get the error.
    """

    interval: float = 1.0
    share: float = 0.2
    longest_interval: float = 60.0
    resync: float = 300.0
    first_pause: float = 0.5
    longest_pause: float = 15.0
    backlog: int = 100_000
    refusals: int = 3

    def after_full(self, cost: float) -> float:
        """Return the seconds to wait after a full answer that took ``cost`` seconds."""
        return max(self.interval, min(self.longest_interval, cost * (1 / self.share - 1)))

    def after_failure(self, failures: int, jitter: Callable[[], float]) -> float:
        """Return the seconds to wait after that many failures in a row."""
        pause = min(self.longest_pause, self.first_pause * 2.0 ** min(failures - 1, 16))
        return max(self.interval, pause * (0.5 + 0.5 * jitter()))


class Watch(Generic[T]):
    """
    The picture of one kind of objects, kept fresh by polling while somebody reads it.

    Parameters
    ----------
    fetch
        Asks for the list; given the time of the last one (or ``None``), returns ``None`` if nothing has changed.
    fetch_one
        Asks for one object by its key; raises NotFound.
    key
        Names an object.
    what
        Plural word for messages.
    pace
        How often to ask.
    clock, jitter
        Monotonic seconds; number in [0, 1).
    """

    def __init__(
        self,
        fetch: Callable[[int | None], Awaitable[Listing[T] | None]],
        fetch_one: Callable[[str], Awaitable[T]],
        key: Callable[[T], str],
        *,
        what: str = "objects",
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._fetch = fetch
        self._fetch_one = fetch_one
        self._key = key
        self._what = what
        self._pace = pace or Pace()
        self._clock = clock
        self._jitter = jitter
        self._objects: dict[str, T] = {}
        self._update_time: int | None = None
        self._full_at = float("-inf")
        self._confirmed_at: float | None = None
        self._failures = self._refusals = 0
        self._error: errors.SlurmError | None = None
        self._polls = self._full_answers = 0
        self._interval = self._pace.interval
        # Requests are numbered as they start: an answer never replaces what was asked for later.
        self._numbers = itertools.count(1)
        self._list_applied = 0
        self._single_applied: dict[str, int] = {}
        self._readers: weakref.WeakSet[Reader[T]] = weakref.WeakSet()
        self._poked = asyncio.Event()
        self._synced = asyncio.Event()
        self._polled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    # what is known

    @property
    def objects(self) -> Mapping[str, T]:
        """All objects by key, as last seen; a live view."""
        return MappingProxyType(self._objects)

    @property
    def status(self) -> WatchStatus:
        """How much :attr:`objects` is worth."""
        return WatchStatus(
            synced=self._synced.is_set(),
            age=None if self._confirmed_at is None else self._clock() - self._confirmed_at,
            failures=self._failures,
            error=self._error,
            polls=self._polls,
            full_answers=self._full_answers,
            interval=self._interval,
            objects=len(self._objects),
        )

    async def wait_synced(self) -> None:
        """Wait for the first list; there must be a reader. Raises what it would raise to an impatient one."""
        while not self._synced.is_set():
            if self._refusals >= self._pace.refusals and self._error is not None:
                raise self._error
            self._polled.clear()
            await self._polled.wait()

    def reader(self, *, patient: bool = True) -> Reader[T]:
        """
        Return a new reader; polling starts with the first one and ends with the last.

        Parameters
        ----------
        patient
            Whether it waits on when polls are refused (:attr:`Pace.refusals`), and leaves it to its owner to look at
            :attr:`status`; else it raises the refusal. Outages are waited for by either.
        """
        if self._closed:
            raise RuntimeError("the watch is closed")
        reader = Reader(self, self._pace.backlog, patient=patient)
        if self._synced.is_set():
            reader._push(Event(key, None, value) for key, value in self._objects.items())  # noqa: SLF001 - a reader and its watch are one
        self._readers.add(reader)
        if self._task is None or self._task.done():
            # What was known before nobody read is no longer vouched for: the list is asked for at once.
            self._update_time = None
            self._refusals = 0
            self._task = asyncio.create_task(self._run(), name=f"watch of {self._what}")
        return reader

    def poke(self) -> None:
        """Poll now instead of at the end of the interval."""
        self._poked.set()

    async def refresh(self, *keys: str) -> dict[str, T | None]:
        """
        Ask for these objects singly, now; readers get what has changed.

        Returns the objects by key, ``None`` for one that is gone. Raises what the call raises.
        """
        results = await asyncio.gather(*(self._refresh_one(key) for key in dict.fromkeys(keys)))
        return dict(results)

    async def close(self) -> None:
        """End polling and all readers."""
        self._closed = True
        await self._stop()
        for reader in list(self._readers):
            reader._end()  # noqa: SLF001 - a reader and its watch are one

    # how

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _left(self, reader: Reader[T]) -> None:
        self._readers.discard(reader)
        if not self._readers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        try:
            while self._readers:
                self._poked.clear()
                self._interval = await self._poll()
                self._polled.set()
                if not self._readers:
                    break
                try:
                    async with asyncio.timeout(self._interval):
                        await self._poked.wait()
                except TimeoutError:
                    continue  # no request for a poll: the interval is over
        except Exception as error:
            # A bug must not look like a cluster in which nothing happens.
            _log.exception("the watch of %s broke", self._what)
            for reader in list(self._readers):
                reader._end(error)  # noqa: SLF001 - a reader and its watch are one
            raise

    async def _poll(self) -> float:
        """Ask once and return the seconds to wait."""
        number = next(self._numbers)
        started = self._clock()
        since = None if started - self._full_at > self._pace.resync else self._update_time
        self._polls += 1
        try:
            listing = await self._fetch(since)
        except errors.SlurmError as error:
            self._failures += 1
            self._error = error
            if self._failures == 1:
                _log.warning("cannot list %s: %s", self._what, error)
            self._refuse(error)
            return self._pace.after_failure(self._failures, self._jitter)
        if self._failures:
            _log.info("%s are listed again after %d failures", self._what, self._failures)
        self._failures, self._refusals, self._error = 0, 0, None
        self._confirmed_at = started
        if listing is None:
            return self._pace.interval
        self._full_answers += 1
        self._full_at = started
        self._update_time = listing.last_update
        self._apply_list(listing.items, number)
        self._synced.set()
        return self._pace.after_full(self._clock() - started)

    def _refuse(self, error: errors.SlurmError) -> None:
        """End the impatient readers with a refusal that will not resolve."""
        self._refusals = self._refusals + 1 if isinstance(error, _LASTING) else 0
        if self._refusals < self._pace.refusals:
            return
        for reader in [each for each in self._readers if not each.patient]:
            reader._end(error)  # noqa: SLF001 - a reader and its watch are one
            # Not by _left: this is the very task that it would cancel. The loop ends without readers.
            self._readers.discard(reader)

    def _apply_list(self, items: Iterable[T], number: int) -> None:
        """Publish the changes of a list, except for objects that were requested singly in the meantime."""
        newer = {key for key, asked in self._single_applied.items() if asked > number}
        if newer:
            # It is unknown which of the two answers is older: keep the single one, and poll again.
            self._update_time = None
        self._single_applied.clear()
        self._list_applied = number
        found = {self._key(item): item for item in items}
        for key in newer:
            found.pop(key, None)
            if key in self._objects:
                found[key] = self._objects[key]
        known = self._objects
        events = [
            Event(key, known.get(key), value)
            for key, value in found.items()
            # Most have not even been parsed again, and comparing takes time.
            if known.get(key) is not value and known.get(key) != value
        ]
        events += [Event(key, value, None) for key, value in self._objects.items() if key not in found]
        self._objects = found
        self._publish(events)

    async def _refresh_one(self, key: str) -> tuple[str, T | None]:
        value: T | None = None
        for _ in range(_TRIES):
            number = next(self._numbers)
            try:
                value = await self._fetch_one(key)
            except errors.NotFound:
                value = None
            if number < self._list_applied:
                # A list was asked for later and has been applied: ask again rather than guess which is newer.
                continue
            if number >= self._single_applied.get(key, 0):
                self._single_applied[key] = number
                self._apply_one(key, value)
            break
        else:
            # Lists come faster than single answers: they tell all there is.
            self.poke()
        return key, value

    def _apply_one(self, key: str, value: T | None) -> None:
        if not self._synced.is_set():
            return  # the first list tells everything
        old = self._objects.get(key)
        if value is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = value
        if old != value:
            self._publish([Event(key, old, value)])

    def _publish(self, events: list[Event[T]]) -> None:
        if events:
            for reader in list(self._readers):
                reader._push(events)  # noqa: SLF001 - a reader and its watch are one


class Reader(Generic[T]):
    """
    One reader of a watch: an asynchronous iterator of events, at its own speed.

    It ends when it or the watch is closed, and an impatient one with the error when polls are refused. Events that were
    waiting by then are still given out.
    """

    def __init__(self, watch: Watch[T], backlog: int, *, patient: bool = True) -> None:
        self.watch = watch
        self.patient = patient
        self._backlog = backlog
        self._events: deque[Event[T]] = deque()
        self._wake = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[T]:
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._events.popleft()

    def pending(self) -> int:
        """Return how many events are waiting."""
        return len(self._events)

    async def aclose(self) -> None:
        """Stop reading; the last reader to leave ends the polling."""
        self._events.clear()
        self._end()
        self.watch._left(self)  # noqa: SLF001 - a reader and its watch are one

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _push(self, events: Iterable[Event[T]]) -> None:
        self._events.extend(events)
        if len(self._events) > self._backlog:
            self._events = deque(merged(self._events))
        self._wake.set()

    def _end(self, error: Exception | None = None) -> None:
        self._ended = True
        self._error = error
        self._wake.set()


def merged(events: Iterable[Event[T]]) -> list[Event[T]]:
    """Make one event of all events of an object: from before the first to after the last; none if these are equal."""
    first_and_last: dict[str, Event[T]] = {}
    for event in events:
        earlier = first_and_last.get(event.key)
        first_and_last[event.key] = event if earlier is None else Event(event.key, earlier.old, event.new)
    return [event for event in first_and_last.values() if event.old != event.new]
