"""Which namespaces count: those that have an object of the kinds to which others can belong.

Labels are set by anybody. An object with a label of the operator in a namespace without Cluster, NodeSet or LoginSet
can belong to none, since owners and their objects share a namespace. Nothing of such a namespace is kept, and nobody
is woken by it. When the first owner appears, the namespace is listed; until that has been done it is not `shown`, and
no rule may take what is missing for absent. A namespace without owners counts on as long as something of it is kept:
what a deleted owner has left is tidied up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from slinky_operator.kube import errors
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.store import key_of
from slinky_operator.kube.objects import Object

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
"""Seconds until a namespace that could not be listed is listed again."""


class Owners(Protocol):
    """What is used of a `mirror.Mirror`."""

    synced: asyncio.Event

    def add_handler(self, handler: Handler) -> None:
        """Call a handler after each change."""
        ...


class Handler(Protocol):
    """A handler of changes."""

    def __call__(self, old: Object | None, new: Object | None, /) -> None:
        """Take note of what was and what is."""
        ...


class Follower(Protocol):
    """What is used of an `informer.Informer`."""

    async def show(self, namespace: str) -> None:
        """List a namespace."""
        ...

    def hide(self, namespace: str) -> None:
        """Forget a namespace."""
        ...

    def is_shown(self, namespace: str) -> bool:
        """Whether a namespace has been listed."""
        ...


class Interest:
    """Counts the owners of each namespace.

    Parameters
    ----------
    owners
        The caches of their kinds.
    budget
        Knows of which namespaces something is kept.
    """

    def __init__(self, owners: Sequence[Owners], budget: Budget) -> None:
        self.followers: list[Follower] = []
        """The caches that keep only what counts."""
        self.namespaces: frozenset[str] = frozenset()
        """Namespaces that count now."""
        self._owners = owners
        self._budget = budget
        self._counts: Counter[str] = Counter()
        self._ended: set[str] = set()
        """Namespaces that count although they have no owner any more."""
        self._new: asyncio.Queue[str] = asyncio.Queue()
        for one in owners:
            one.add_handler(self._changed)

    async def known(self) -> None:
        """Wait until all owners are known."""
        for one in self._owners:
            await one.synced.wait()

    async def run(self) -> None:
        """List the namespaces that begin to count, one after the other, until cancelled."""
        while True:
            namespace = await self._new.get()
            while namespace in self.namespaces and not self._is_shown(namespace):
                try:
                    _ = await asyncio.gather(*(one.show(namespace) for one in self.followers))
                except errors.KubeError as error:
                    logger.log(errors.level_of(error), "namespace %s: %s", namespace, error)
                    await asyncio.sleep(max(RETRY_S, error.retry_after or 0.0))
                else:
                    if not self._is_shown(namespace):
                        # The first list of all is under way, and will show it.
                        await asyncio.sleep(RETRY_S)

    def _is_shown(self, namespace: str) -> bool:
        return all(one.is_shown(namespace) for one in self.followers)

    def _changed(self, old: Object | None, new: Object | None, /) -> None:
        obj = new if new is not None else old
        if obj is None or (old is not None and new is not None):
            return
        namespace = key_of(obj)[0]
        self._counts[namespace] += 1 if new is not None else -1
        if self._counts[namespace] <= 0:
            del self._counts[namespace]
            self._ended.add(namespace)
        elif namespace in self.namespaces:
            self._ended.discard(namespace)
        else:
            self.namespaces |= {namespace}
            self._new.put_nowait(namespace)
        self._let_go()

    def _let_go(self) -> None:
        """Forget namespaces of which nothing is left."""
        gone = {one for one in self._ended if not self._budget.has(one)}
        self._ended -= gone
        self.namespaces -= gone
        for namespace in gone:
            for one in self.followers:
                one.hide(namespace)
