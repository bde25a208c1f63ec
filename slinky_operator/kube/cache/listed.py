"""A whole list on its way into a store, page by page: no more than one page is held beside the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from slinky_operator.kube.cache.store import Change, Key, Store, key_of
from slinky_operator.kube.objects import Object


class Listed:
    """A list that brings a store in line with the API server.

    Parameters
    ----------
    store
        The store.
    version
        Version of the list, which all its pages have.
    covers
        Whether the list is about a namespace; objects of others are ignored.
    known
        What `Store.newest` said before the list was asked for. A list older than that shows that etcd was restored
        from a backup: everything that the store knows of these namespaces is then forgotten for it.
    """

    def __init__(self, store: Store, version: int, covers: Callable[[str], bool], *, known: int = 0) -> None:
        self._store = store
        self._version = version
        self._covers = covers
        self._is_restored = 0 < version < known
        self._keys: set[Key] = set()

    def add(self, objects: Iterable[Object]) -> list[Change]:
        """Store a page; returns what differs."""
        changes: list[Change] = []
        for obj in objects:
            key = key_of(obj)
            if not self._covers(key[0]):
                continue
            self._keys.add(key)
            change = self._store.put(obj, restored=self._is_restored)
            if change is not None:
                changes.append(change)
        return changes

    def end(self) -> list[Change]:
        """Forget what the list does not have; returns these deletions, which nobody has reported."""
        return self._store.retain(self._keys, self._version, self._covers, restored=self._is_restored)
