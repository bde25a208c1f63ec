"""
A watch: one list that is polled for any number of readers.

One poll serves all readers. Each of them first gets everything that is known as additions, then every change with the
true object before and after it, in order. Outages are survived with growing pauses, and how old the picture is can be
seen at any time. What an event means is left to the reader; how often a call is repeated, to the session; what an
answer changes, to :mod:`slurm_client.watch.picture`.

Between two polls several changes of one object look like one: this is a watch of states, not a log.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import weakref
from typing import TYPE_CHECKING, Generic, TypeVar

from slurm_client import errors
from slurm_client.watch.events import Event
from slurm_client.watch.pace import Pace
from slurm_client.watch.picture import Picture
from slurm_client.watch.reader import Reader
from slurm_client.watch.status import WatchStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from slurm_client.operations.base import Listing

__all__ = ["Watch"]

T = TypeVar("T")

_LASTING = (errors.Unauthorized, errors.PermissionDenied, errors.NotSupported)
"""Errors that will not resolve: a token that is refused even after a renewal, a call that the server lacks."""

_TRIES = 3
"""How often an object is asked for singly when a list overtakes the answer."""

_log = logging.getLogger("slurm_client")


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
        self.what = what
        self._fetch = fetch
        self._fetch_one = fetch_one
        self._pace = pace or Pace()
        self._clock = clock
        self._jitter = jitter
        self._picture = Picture(key)
        self._update_time: int | None = None
        self._full_at = float("-inf")
        self._resync = self._pace.resync
        """Seconds after which a full answer is asked for whatever the server says."""
        self._confirmed_at: float | None = None
        self._confirmed = False
        """Whether the picture was confirmed since somebody reads it."""
        self._failures = self._refusals = 0
        self._error: errors.SlurmError | None = None
        self._polls = self._full_answers = self._failed_polls = 0
        self._duration: float | None = None
        self._interval = self._pace.interval
        self._readers: weakref.WeakSet[Reader[T]] = weakref.WeakSet()
        self._poked = asyncio.Event()
        self._is_whole_wanted = False
        self._polled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    # what is known

    @property
    def objects(self) -> Mapping[str, T]:
        """All objects by key, as last seen; what is seen later is in another mapping."""
        return self._picture.objects

    @property
    def status(self) -> WatchStatus:
        """How much :attr:`objects` is worth."""
        return WatchStatus(
            synced=self._picture.is_complete,
            age=None if self._confirmed_at is None else self._clock() - self._confirmed_at,
            failures=self._failures,
            error=self._error,
            polls=self._polls,
            full_answers=self._full_answers,
            interval=self._interval,
            objects=len(self._picture),
            failed_polls=self._failed_polls,
            duration=self._duration,
        )

    async def wait_synced(self) -> None:
        """Wait for the first list; there must be a reader. Raises what it would raise to an impatient one."""
        while not self._picture.is_complete:
            if self._is_refused and self._error is not None:
                raise self._error
            self._polled.clear()
            await self._polled.wait()

    def reader(self, *, patient: bool = True, mark: bool = False) -> Reader[T]:
        """
        Return a new reader; polling starts with the first one and ends with the last.

        Parameters
        ----------
        patient
            Whether it waits on when polls are refused (:attr:`Pace.refusals`), and leaves it to its owner to look at
            :attr:`status`; else it raises the refusal. Outages are waited for by either.
        mark
            Whether it gives the event :data:`~slurm_client.watch.SYNCED` behind the initial list.
        """
        if self._closed:
            raise RuntimeError("the watch is closed")
        reader = Reader(self.what, self._left, self._pace.backlog, patient=patient, mark=mark)
        if self._picture.is_complete:
            reader._push(Event(key, None, value) for key, value in self.objects.items())  # noqa: SLF001 - a reader and its watch are one
        self._readers.add(reader)
        if self._task is None or self._task.done():
            # What was known before nobody read is no longer vouched for: the list is asked for at once.
            self._update_time, self._resync = None, self._pace.resync
            self._refusals, self._confirmed = 0, False
            self._task = asyncio.create_task(self._run(), name=f"watch of {self.what}")
        elif self._confirmed and not self._failures:
            reader._close_initial_list()  # noqa: SLF001 - as above
        return reader

    def poke(self, *, whole: bool = False) -> None:
        """
        Poll now instead of at the end of the interval.

        Parameters
        ----------
        whole
            Whether to ask for the whole list, whatever the server says has changed. slurmctld does not date every
            change: not the deletion of a node that leaves each of its partitions without nodes (``build_part_bitmap``
            of Slurm 24.05 to 26.05 returns before it notes the time).
        """
        self._is_whole_wanted = self._is_whole_wanted or whole
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

    @property
    def _is_refused(self) -> bool:
        """Whether readers get a refusal: the first one if nothing has worked yet, later one that lasts."""
        return self._refusals >= (self._pace.refusals if self._confirmed else 1)

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
            _log.exception("the watch of %s broke", self.what)
            for reader in list(self._readers):
                reader._end(error)  # noqa: SLF001 - a reader and its watch are one
            raise

    async def _poll(self) -> float:
        """Ask once and return the seconds to wait."""
        number = self._picture.ask()
        started = self._clock()
        is_due = started - self._full_at > self._resync
        since = None if is_due or self._is_whole_wanted else self._update_time
        self._is_whole_wanted = False
        self._polls += 1
        try:
            listing = await self._fetch(since)
        except errors.SlurmError as error:
            self._failures += 1
            self._failed_polls += 1
            self._duration = self._clock() - started
            self._error = error
            # Who answers next may have another clock: soon the whole list, whatever it says.
            self._resync = self._pace.resync
            if self._failures == 1:
                _log.warning("cannot list %s: %s", self.what, error)
            self._refuse(error)
            return self._pace.after_failure(self._failures, self._jitter)
        if listing is None:
            self._duration = self._clock() - started
            self._confirm(started)
            return self._pace.interval
        self._full_answers += 1
        before, self._full_at = self._full_at, started

        def tell(events: list[Event[T]]) -> None:
            self._publish(events)
            self._confirm(started)
            if is_due and not events:
                self._resync = self._pace.after_nothing_new(self._resync, len(listing.items))
            elif is_due or started - before <= self._pace.resync:
                # What was to tell of changes has not told of these; or there are many, and it would be noticed late.
                self._resync = self._pace.resync

        whole = await self._picture.take_list(listing.items, number, tell)
        self._update_time = listing.last_update if whole else None
        self._duration = self._clock() - started
        return self._pace.after_full(self._duration)

    def _confirm(self, asked: float) -> None:
        """Take note that the picture is what the server said to a question of that time."""
        if self._failures:
            _log.info("%s are listed again after %d failures", self.what, self._failures)
        self._failures, self._refusals, self._error = 0, 0, None
        self._confirmed, self._confirmed_at = True, asked
        self._close_initial_lists()

    def _close_initial_lists(self) -> None:
        for reader in list(self._readers):
            reader._close_initial_list()  # noqa: SLF001 - a reader and its watch are one

    def _refuse(self, error: errors.SlurmError) -> None:
        """End the impatient readers with a refusal that will not resolve."""
        self._refusals = self._refusals + 1 if isinstance(error, _LASTING) else 0
        if not self._is_refused:
            return
        for reader in [each for each in self._readers if not each.patient]:
            reader._end(error)  # noqa: SLF001 - a reader and its watch are one
            # Not by _left: this is the very task that it would cancel. The loop ends without readers.
            self._readers.discard(reader)

    async def _refresh_one(self, key: str) -> tuple[str, T | None]:
        value: T | None = None
        for _ in range(_TRIES):
            number = self._picture.ask()
            try:
                value = await self._fetch_one(key)
            except errors.NotFound:
                value = None
            if self._picture.is_overtaken(number):
                # A list was asked for later and has been applied: ask again rather than guess which is newer.
                continue
            self._publish(self._picture.take_one(key, value, number))
            break
        else:
            # Lists come faster than single answers: they tell all there is.
            self.poke()
        return key, value

    def _publish(self, events: list[Event[T]]) -> None:
        if events:
            for reader in list(self._readers):
                reader._push(events)  # noqa: SLF001 - a reader and its watch are one
