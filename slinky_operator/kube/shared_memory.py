"""A bounded memory that namespaces share: one that remembers much forgets its own things, not those of others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedMemory(Generic[K, V]):
    """Values by namespace and key.

    When there are too many, the namespace with most of them forgets the one that it has not used for longest. So a
    namespace that has no more than an equal share never forgets anything because of others.

    Parameters
    ----------
    most
        How many values are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._shares: OrderedDict[str, OrderedDict[K, V]] = OrderedDict()

    def __len__(self) -> int:
        return self._size

    def get(self, namespace: str, key: K) -> V | None:
        """Find a value, which counts as its use; None if there is none."""
        share = self._shares.get(namespace)
        if share is None or key not in share:
            return None
        self._shares.move_to_end(namespace)
        share.move_to_end(key)
        return share[key]

    def put(self, namespace: str, key: K, value: V) -> None:
        """Remember a value."""
        share = self._shares.setdefault(namespace, OrderedDict())
        self._size += key not in share
        share[key] = value
        share.move_to_end(key)
        self._shares.move_to_end(namespace)
        while self._size > self._most:
            self._forget()

    def _forget(self) -> None:
        # Of several that have as many, the one that was not used for longest.
        namespace, share = max(self._shares.items(), key=lambda one: len(one[1]))
        _ = share.popitem(last=False)
        self._size -= 1
        if not share:
            del self._shares[namespace]
