"""How much memory the cached objects of all namespaces may take together, and who gives way.

Each namespace has a guaranteed share: the total, divided by the namespaces that have anything. What fits into its share
is always stored. If the total is then exceeded, the largest namespace gives way, down to its share at most: its largest
objects are left out again, as if they had come too late (`store.Store.leave_out`), until all fit.

A pass that has begun must not lose sight of objects that it counts on. So a namespace in which passes run is only
marked (`must_give_way`): no further pass begins there, and it gives way when the last one has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol
from weakref import WeakSet

FOR_STUBS: Final = 1.1
"""How often the limit all namespaces may take, stubs included."""

DOWN_TO: Final = 0.95
"""Part of the limit to which a namespace gives way: not every object that comes afterwards begins it again."""


class Shelf(Protocol):
    """What is used of a `store.Store`."""

    def sizes(self, namespace: str) -> Iterable[tuple[int, tuple[str, str]]]:
        """Bytes and key of each object of a namespace that could be left out."""
        ...

    def leave_out(self, key: tuple[str, str]) -> None:
        """Leave an object out, as if there had been no room for it."""
        ...


class Total:
    """The accounts of all namespaces, over several budgets.

    Parameters
    ----------
    limit
        Bytes of all namespaces.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        """Bytes of all namespaces."""
        self._by_namespace: Counter[str] = Counter()
        self._shelves: WeakSet[Shelf] = WeakSet()
        self._passes: Counter[str] = Counter()
        self._waiting: set[str] = set()
        self._is_settling = False

    def add(self, shelf: Shelf) -> None:
        """Let objects of a store give way."""
        self._shelves.add(shelf)

    def share(self, namespace: str) -> float:
        """Bytes that a namespace may always take."""
        others = len(self._by_namespace) - (namespace in self._by_namespace)
        return self.limit / (1 + others)

    def fits(self, namespace: str, more: int, *, stub: bool = False) -> bool:
        """Whether a namespace may take so many bytes more."""
        if namespace in self._waiting and not stub:
            return False
        if self.taken + more <= self.limit * (FOR_STUBS if stub else 1.0):
            return True
        return self._by_namespace[namespace] + more <= self.share(namespace)

    def take(self, namespace: str, more: int) -> None:
        """Count bytes that a namespace takes from now on, or gives back; others may have to give way."""
        self.taken += more
        self._by_namespace[namespace] += more
        if not self._by_namespace[namespace]:
            del self._by_namespace[namespace]
        self._settle()

    @contextmanager
    def used(self, namespaces: Iterable[str]) -> Iterator[None]:
        """Let nothing of some namespaces give way while a pass reads them."""
        held = tuple(namespaces)
        self._passes.update(held)
        try:
            yield
        finally:
            self._passes.subtract(held)
            for one in held:
                if not self._passes[one]:
                    del self._passes[one]
            self._settle()

    def must_give_way(self, namespace: str) -> bool:
        """Whether no pass may begin in a namespace, since its objects are about to give way."""
        return namespace in self._waiting

    def _settle(self) -> None:
        """Let the largest namespaces give way while all take too much."""
        if self._is_settling:
            return
        self._is_settling = True
        try:
            self._waiting = set()
            passed: set[str] = set()
            while self.taken > self.limit:
                candidates = [one for one in self._by_namespace.items() if one[0] not in passed]
                namespace, size = max(candidates, key=lambda one: one[1], default=("", 0))
                if size <= self.share(namespace):
                    break
                passed.add(namespace)
                if self._passes[namespace]:
                    self._waiting.add(namespace)
                    # It will be enough, mostly: others are not asked in its place.
                    break
                self._give_way(namespace)
        finally:
            self._is_settling = False

    def _give_way(self, namespace: str) -> None:
        found = [(size, shelf, key) for shelf in self._shelves for size, key in shelf.sizes(namespace)]
        found.sort(key=lambda one: one[0], reverse=True)
        for _, shelf, key in found:
            if self.taken <= self.limit * DOWN_TO or self._by_namespace[namespace] <= self.share(namespace):
                return
            shelf.leave_out(key)
