"""
What a watch knows: objects by key, and what changes when an answer arrives.

Answers arrive in another order than they were asked for. Requests are numbered as they start, and an answer never
replaces what was asked for later. Asking is left to the watch, telling to its readers.
"""

from __future__ import annotations

import itertools
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from slurm_client.slices import drop, sliced
from slurm_client.watch.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["Picture"]

T = TypeVar("T")


class Picture(Generic[T]):
    """
    Objects by key, as of the latest answers.

    Parameters
    ----------
    key
        Names an object.

    Attributes
    ----------
    is_complete
        Whether there was a list.
    """

    def __init__(self, key: Callable[[T], str]) -> None:
        self._key = key
        self._objects: dict[str, T] = {}
        self._shown: Mapping[str, T] = MappingProxyType(self._objects)
        self._is_held = False
        """Whether somebody may hold what is shown."""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._list_applied = 0
        self._single_applied: dict[str, int] = {}
        self.is_complete = False

    @property
    def objects(self) -> Mapping[str, T]:
        """
        All objects by key, as they are now: what changes later is in another mapping.

        So another thread may take it, and go through it. It is the same mapping until something has changed.
        """
        with self._lock:
            self._is_held = True
            return self._shown

    def __len__(self) -> int:
        return len(self._objects)

    def ask(self) -> int:
        """Return the number of a request that starts now."""
        return next(self._numbers)

    async def take_list(self, items: Collection[T], number: int, publish: Callable[[list[Event[T]]], None]) -> bool:
        """
        Take a list over, except for objects that were requested singly after it.

        Old and new objects are compared in slices, during which single answers may be taken over. Then all of the list
        is, and all changes are reported, in one step.

        Parameters
        ----------
        publish
            Told what has changed.

        Returns
        -------
        bool
            Whether all of the list could be taken. If not, it is unknown which of two answers is older: the single one
            is kept, and the list has to be asked for again.
        """
        # From here on a single answer to an earlier request comes too late.
        self._list_applied = number
        found: dict[str, T] = {}
        events: list[Event[T]] = []
        replaced: list[T] = []
        async for item in sliced(items):
            found[self._key(item)] = item
        async for key, value in sliced(found.items()):
            old = self._objects.get(key)
            # Most have not even been parsed again, and comparing takes time.
            if old is not value:
                if old is not None:
                    replaced.append(old)
                if old != value:
                    events.append(Event(key, old, value))
        events += [
            Event(key, gone, None)
            async for key in sliced(list(self._objects))
            if key not in found and (gone := self._objects.get(key)) is not None
        ]
        newer = {key for key, asked in self._single_applied.items() if asked > number}
        self._single_applied.clear()
        for key in newer:
            found.pop(key, None)
            if key in self._objects:
                found[key] = self._objects[key]
        with self._lock:
            self._show(found)
        self.is_complete = True
        publish([event for event in events if event.key not in newer] if newer else events)
        await drop(replaced)
        return not newer

    def is_overtaken(self, number: int) -> bool:
        """Whether a list that was asked for later has been taken over."""
        return number < self._list_applied

    def take_one(self, key: str, value: T | None, number: int) -> list[Event[T]]:
        """Take a single answer over, ``None`` for an object that is gone; return what has changed."""
        if number < self._single_applied.get(key, 0):
            return []
        self._single_applied[key] = number
        if not self.is_complete:
            return []  # the first list tells everything
        old = self._objects.get(key)
        with self._lock:
            if self._is_held and old is not value:
                self._show(dict(self._objects))
            if value is None:
                self._objects.pop(key, None)
            else:
                self._objects[key] = value
        return [Event(key, old, value)] if old != value else []

    def _show(self, objects: dict[str, T]) -> None:
        self._objects, self._shown, self._is_held = objects, MappingProxyType(objects), False
