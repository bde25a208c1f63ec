"""A store for objects that kopf watches, compared with a list at intervals.

kopf watches the custom resources and calls `feed` for each event. It misses deletions while its watch is broken, so a
slow relist removes such objects (and corrects anything else that was missed). Readers and handlers see the same
interface as an `informer.Informer`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from slinky_operator.kube import errors
from slinky_operator.kube.cache import stubs
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.informer import FIRST_PAUSE, LONGEST_PAUSE, Handler, prune_managed_fields
from slinky_operator.kube.cache.listed import Listed
from slinky_operator.kube.cache.store import Change, Indexer, Store
from slinky_operator.kube.calls.reading import SLICE
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource

logger = logging.getLogger(__name__)

RELIST_EVERY: Final = 300.0
"""Seconds between two comparisons with the API server."""


class Mirror:
    """A store fed from outside, with the first list and a slow relist of its own.

    Parameters
    ----------
    client
        Used for lists only.
    namespaces
        Namespaces to list; none means all.
    relist_every
        Seconds between comparisons, give or take a fifth.
    budget
        What the objects of a namespace may take; None for no limit. Of those that do not fit stubs are kept.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        *,
        namespaces: Sequence[str] = (),
        indexers: Mapping[str, Indexer] | None = None,
        prune: Callable[[Object], None] = prune_managed_fields,
        relist_every: float = RELIST_EVERY,
        rng: random.Random | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.resource = resource
        self.store = Store(indexers, budget=budget, stub=stubs.stub)
        self.synced = asyncio.Event()
        """Set after the first whole list."""
        self.relists = 0
        """How often a list was taken, the first one included."""
        self._client = client
        self._namespaces: tuple[str | None, ...] = tuple(dict.fromkeys(namespaces)) or (None,)
        self._prune = prune
        self._relist_every = relist_every
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._handlers: list[Handler] = []

    def add_handler(self, handler: Handler) -> None:
        """Call `handler(old, new)` after each change from now on."""
        self._handlers.append(handler)

    def feed(self, event_type: str | None, obj: Mapping[str, Any]) -> None:
        """Take over one watch event.

        Parameters
        ----------
        event_type
            `ADDED`, `MODIFIED`, `DELETED`, or `None` for an object from a list (kopf's first events).
        obj
            The object; it is copied as far as `prune` may change it, since kopf goes on using its own. Nobody changes
            what is deeper, and copying that would take tenths of a second for a big object.
        """
        taken: Object = {**obj, "metadata": dict(obj["metadata"])}
        self._prune(taken)
        change = self.store.remove(taken) if event_type == "DELETED" else self.store.put(taken)
        if change is not None:
            self._tell((change,))

    async def run(self) -> None:
        """List now and then again and again, until cancelled."""
        failures = 0
        while True:
            try:
                await self.relist()
            except errors.KubeError as error:
                failures += 1
                logger.log(errors.level_of(error), "%s: %s", self.resource, errors.in_a_list(error))
                pause = min(FIRST_PAUSE * 2.0 ** (failures - 1), LONGEST_PAUSE) * self._rng.uniform(0.5, 1.0)
                await asyncio.sleep(max(pause, error.retry_after or 0.0))
            else:
                failures = 0
                await asyncio.sleep(self._relist_every * self._rng.uniform(0.8, 1.2))

    async def relist(self) -> None:
        """Compare with the API server now; raises what the list raises."""
        for namespace in self._namespaces:
            await self._take(namespace)
        self.relists += 1
        self.synced.set()

    async def show(self, namespace: str) -> None:
        """List a namespace some of whose objects did not fit; raises what the list raises."""
        await self._take(namespace)

    async def _take(self, namespace: str | None) -> None:
        known = self.store.newest(namespace)
        listed: Listed | None = None
        async for page in self._client.pages(self.resource, namespace):
            if listed is None:
                version = int(page.resource_version or 0)
                listed = Listed(self.store, version, lambda one: namespace in {None, one}, known=known)
            for start in range(0, len(page.items), SLICE):
                if start:
                    await asyncio.sleep(0)
                some = page.items[start : start + SLICE]
                for obj in some:
                    self._prune(obj)
                self._tell(listed.add(some))
        ghosts = listed.end() if listed is not None else []
        if ghosts:
            logger.info("%s: %d objects had vanished without notice", self.resource, len(ghosts))
        self._tell(ghosts)

    def _tell(self, changes: Iterable[Change]) -> None:
        for old, new in changes:
            for handler in self._handlers:
                try:
                    handler(old, new)
                except Exception:
                    # The store is right; one broken handler must not keep the others from hearing of it.
                    logger.exception("%s: a handler failed", self.resource)
