"""
What a watch knows: objects by key, and what changes when an answer arrives.

Answers arrive in another order than they were asked for. Requests are numbered as they start, and an answer never
replaces what was asked for later. Asking is left to the watch, telling to its readers.
"""

from __future__ import annotations

import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from slurm_client.watch.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
        self._numbers = itertools.count(1)
        self._list_applied = 0
        self._single_applied: dict[str, int] = {}
        self.is_complete = False

    @property
    def objects(self) -> Mapping[str, T]:
        """All objects by key; a live view."""
        return MappingProxyType(self._objects)

    def ask(self) -> int:
        """Return the number of a request that starts now."""
        return next(self._numbers)

    def take_list(self, items: Iterable[T], number: int) -> tuple[list[Event[T]], bool]:
        """
        Take a list over, except for objects that were requested singly after it.

        Returns
        -------
        tuple
            What has changed; and whether all of the list could be taken. If not, it is unknown which of two answers
            is older: the single one is kept, and the list has to be asked for again.
        """
        newer = {key for key, asked in self._single_applied.items() if asked > number}
        self._single_applied.clear()
        self._list_applied = number
        found = {self._key(item): item for item in items}
        known = self._objects
        for key in newer:
            found.pop(key, None)
            if key in known:
                found[key] = known[key]
        events = [
            Event(key, known.get(key), value)
            for key, value in found.items()
            # Most have not even been parsed again, and comparing takes time.
            if known.get(key) is not value and known.get(key) != value
        ]
        events += [Event(key, value, None) for key, value in known.items() if key not in found]
        self._objects = found
        self.is_complete = True
        return events, not newer

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
        if value is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = value
        return [Event(key, old, value)] if old != value else []
