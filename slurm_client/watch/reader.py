"""
Readers of a watch: events in order, each reader at its own speed.

When events come and when a reader has to end is decided by the watch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from slurm_client.slices import Slices
from slurm_client.watch.events import SYNCED, Event, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

__all__ = ["Reader"]

T = TypeVar("T")

_FEW = 32
"""Events that are given out between two looks at the clock."""


class Reader(Generic[T]):
    """
    One reader of a watch: an asynchronous iterator of events, at its own speed.

    It ends when it or the watch is closed, and an impatient one with the error when polls are refused. Events that were
    waiting by then are still given out. Made by :meth:`Watch.reader <slurm_client.watch.watch.Watch.reader>`.
    """

    def __init__(
        self,
        what: str,
        leave: Callable[[Reader[T]], None],
        backlog: int,
        *,
        patient: bool = True,
        mark: bool = False,
    ) -> None:
        self.what = what
        self._leave = leave
        self.patient = patient
        self._mark = mark
        self._marked = False
        """Whether the mark is waiting or was given out."""
        self._mark_waits = False
        self._synced = False
        self._backlog = self._merge_beyond = backlog
        self._slices = Slices()
        self._given = 0
        self._events: deque[Event[T]] = deque()
        self._wake = asyncio.Event()
        self._ended = False
        self._error: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[T]:
        while True:
            event = await self._next()
            if event is not SYNCED or self._mark:
                return event

    @property
    def is_synced(self) -> bool:
        """
        Whether this reader has been given every object of the initial list.

        True from the last of them on, so that a loop over the events can look at it after each; in a cluster that has
        none, from the first list on. The list is one that was confirmed after the reader joined or while it is fresh.
        """
        if not self._mark:
            self._pass_mark()
        return self._synced

    async def initial(self) -> dict[str, T]:
        """
        Wait for the initial list and return its objects by key; iteration goes on with the changes after it.

        An empty cluster gives an empty mapping. What was already read of the list by iteration is not repeated.

        Raises
        ------
        SlurmError
            What iteration would raise: the refusal of a poll, to an impatient reader.
        RuntimeError
            If the reader ended before it had the whole list.
        """
        found: dict[str, T] = {}
        while not self.is_synced:
            try:
                event = await self._next()
            except StopAsyncIteration:
                raise RuntimeError(f"the reader of {self.what} ended before the end of the initial list") from None
            if event.new is not None:
                found[event.key] = event.new
            else:
                found.pop(event.key, None)
        return found

    async def _next(self) -> Event[T]:
        """Return the next event, the mark included; of many that wait, not all in one turn of the event loop."""
        self._given += 1
        if self._given % _FEW == 0:
            await self._slices.breathe()
        while not self._events:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        event = self._events.popleft()
        if event is SYNCED:
            self._pass()
        return event

    def _pass_mark(self) -> None:
        """Go past the mark if it is next."""
        if self._events and self._events[0] is SYNCED:
            self._events.popleft()
            self._pass()

    def _pass(self) -> None:
        self._mark_waits = False
        self._synced = True

    def pending(self) -> int:
        """Return how many events are waiting."""
        return len(self._events) - (self._mark_waits and not self._mark)

    async def aclose(self) -> None:
        """Stop reading; the last reader to leave ends the polling."""
        self._events.clear()
        self._mark_waits = False
        self._end()
        self._leave(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _push(self, events: Iterable[Event[T]]) -> None:
        self._events.extend(events)
        if len(self._events) > self._merge_beyond:
            self._events = deque(merged(self._events))
            # There may be more objects than that: going through all of them for each new event would take too long.
            self._merge_beyond = max(self._backlog, len(self._events) * 3 // 2)
        self._wake.set()

    def _close_initial_list(self) -> None:
        """Put the mark behind what is waiting, once."""
        if not self._marked:
            self._marked = self._mark_waits = True
            self._events.append(SYNCED)
            self._wake.set()

    def _end(self, error: Exception | None = None) -> None:
        self._ended = True
        self._error = error
        self._wake.set()
