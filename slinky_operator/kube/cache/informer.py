"""Keeps a store equal to the API server by list and watch.

For objects that exist in large numbers: pods, Services, claims, Nodes. The store is changed first, then the handlers
are called, so that a controller triggered by a handler finds the new state. Handlers are plain functions that put a key
on a queue; the controller decides what to do.

When to list and when to watch on:

- The watch ends normally (the server ends each after some minutes), breaks, or becomes silent: continue from the last
  version seen, bookmarks included. Nothing is lost and nothing is listed again.
- 410 Gone, as an answer or within the watch: the version is too old to continue from. List again; the difference
  between the store and the list shows the changes and deletions that happened meanwhile.
- Any other failure: continue after a delay. After several consecutive failures without an event, list again: a server
  restored from a backup may not know the version at all and may not answer Gone.

A list is stored page by page. Where an `Interest` says which namespaces count, objects of others are dropped on
arrival; a namespace that begins to count is listed by itself.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slinky_operator.kube import errors
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.interest import Interest, OwnershipClaim
from slinky_operator.kube.cache.listed import Listed
from slinky_operator.kube.cache.store import Change, Indexer, Store, key_of
from slinky_operator.kube.calls.reading import SLICE
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource

logger = logging.getLogger(__name__)

Handler = Callable[[Object | None, Object | None], None]
"""Told what was and what is, after the store has changed. Must not block, and must not change the objects."""

FIRST_PAUSE: Final = 0.5
"""Seconds before watching or listing again after a first failure; doubled for each further one."""

LONGEST_PAUSE: Final = 30.0
"""Seconds between attempts at most, unless the server asks for more."""

FAILURES_BEFORE_RELIST: Final = 5
"""Failed watches in a row after which the version is no longer trusted."""


def prune_managed_fields(obj: Object) -> None:
    """Drop the bookkeeping of server-side apply, often half of an object's size, which nothing here reads."""
    obj["metadata"].pop("managedFields", None)


class Informer:
    """List and watch of one resource into a store.

    Parameters
    ----------
    client
        Used for reads only.
    resource
        What to watch.
    namespaces
        Namespaces to watch; none means all. Cluster-scoped resources take none.
    label_selector, field_selector
        Evaluated by the API server: what does not match costs nothing here.
    indexers
        Indexes of the store.
    prune
        Shortens an object in place before it is stored.
    budget
        What the objects of a namespace may take; None for no limit.
    interest
        Which objects count; None if all do.
    claim
        What an object says of its owners, before it is pruned; None to keep all of a namespace that counts.
    store, handlers
        Those of another informer, where several fill one store; None for its own.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        *,
        namespaces: Sequence[str] = (),
        label_selector: str | None = None,
        field_selector: str | None = None,
        indexers: Mapping[str, Indexer] | None = None,
        prune: Callable[[Object], None] = prune_managed_fields,
        rng: random.Random | None = None,
        budget: Budget | None = None,
        interest: Interest | None = None,
        claim: Callable[[Object], OwnershipClaim] | None = None,
        store: Store | None = None,
        handlers: list[Handler] | None = None,
    ) -> None:
        self.resource = resource
        self.store = Store(indexers, budget=budget) if store is None else store
        self.synced = asyncio.Event()
        """Set once the store has shown a whole list for every namespace."""
        self.relists = 0
        """How often a list was taken, the first ones included."""
        self._heard: dict[str | None, float] = {}
        self._client = client
        self._namespaces: tuple[str | None, ...] = tuple(dict.fromkeys(namespaces)) or (None,)
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._prune = prune
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._handlers: list[Handler] = [] if handlers is None else handlers
        self._unsynced = set(self._namespaces)
        self._interest = interest
        self._claim = claim
        self._asked: dict[str, object] = {}
        """Namespaces that count and were listed, or are being listed, with a mark of that list."""
        self._shown: set[str] = set()
        if interest is not None:
            interest.followers.append(self)

    @property
    def heard_at(self) -> float | None:
        """Monotonic seconds when the API server last said anything, bookmarks included; None before the first list.

        Of several namespaces, that of the one that has been silent for longest.
        """
        return min(self._heard.values()) if len(self._heard) == len(self._namespaces) else None

    def add_handler(self, handler: Handler) -> None:
        """Call `handler(old, new)` after each change from now on."""
        self._handlers.append(handler)

    async def run(self) -> None:
        """List and watch until cancelled."""
        if self._interest is not None:
            await self._interest.known()
        async with asyncio.TaskGroup() as group:
            for namespace in self._namespaces:
                _ = group.create_task(self._follow(namespace), name=f"informer {self.resource} {namespace or '*'}")

    async def _follow(self, namespace: str | None) -> None:
        """List, then watch on and on, for one namespace or all."""
        cursor = _Cursor()
        while True:
            try:
                if not cursor.version:
                    await self._list(namespace, cursor)
                await self._watch(namespace, cursor)
            except errors.Gone:
                logger.info("%s: version %s is gone, listing again", self._label(namespace), cursor.version)
                cursor.version = ""
                cursor.failures += 1
                if cursor.failures > 1:
                    # A server that says Gone to every fresh list must not be asked at full speed.
                    await self._pause(cursor)
            except errors.KubeError as error:
                cursor.failures += 1
                logger.log(errors.level_of(error), "%s: %s", self._label(namespace), errors.in_a_list(error))
                if cursor.failures >= FAILURES_BEFORE_RELIST:
                    cursor.version = ""
                await self._pause(cursor, error.retry_after)
            else:
                if not cursor.moved:
                    # A watch that ends at once and says nothing would otherwise be opened in a tight loop.
                    cursor.failures += 1
                    await self._pause(cursor)

    async def _list(self, namespace: str | None, cursor: _Cursor) -> None:
        cursor.version = await self._take(namespace)
        self._heard[namespace] = time.monotonic()
        self.relists += 1
        self._unsynced.discard(namespace)
        if not self._unsynced:
            self.synced.set()

    async def _take(self, namespace: str | None) -> str:
        """List a namespace, or all, into the store; returns the version of the list."""
        wanted = self._counting(namespace)
        mark = object()
        self._asked |= dict.fromkeys(wanted or (), mark)

        def covers(one: str) -> bool:
            # What has been listed by itself meanwhile is that list's to show: it has what this one has left out.
            return namespace in {None, one} and (wanted is None or (one in wanted and self._asked.get(one) is mark))

        known = self.store.newest(namespace)
        listed: Listed | None = None
        version = ""
        async for page in self._client.pages(
            self.resource, namespace, label_selector=self._label_selector, field_selector=self._field_selector
        ):
            version = page.resource_version
            if listed is None:
                listed = Listed(self.store, int(version or 0), covers, known=known)
            for start in range(0, len(page.items), SLICE):
                if start:
                    await asyncio.sleep(0)
                some = page.items[start : start + SLICE]
                items = [obj for obj in some if covers(key_of(obj)[0]) and self._counts(obj)]
                for obj in items:
                    self._prune(obj)
                self._tell(listed.add(items))
        if listed is not None:
            self._tell(listed.end())
        # One that has ceased to count meanwhile was forgotten, and what others have listed since is theirs to show.
        self._shown |= {one for one in wanted or () if self._asked.get(one) is mark}
        return version

    def _counting(self, namespace: str | None) -> frozenset[str] | None:
        """The namespaces of a list that count; None if all do."""
        if self._interest is None:
            return None
        found = self._interest.namespaces
        return found if namespace is None else found & {namespace}

    async def show(self, namespace: str) -> None:
        """List a namespace that has begun to count, or some of whose objects did not fit; raises what a list raises."""
        if self.synced.is_set() and (self._namespaces == (None,) or namespace in self._namespaces):
            _ = await self._take(namespace)

    def hide(self, namespace: str) -> None:
        """Forget a namespace that does not count any more."""
        self._asked.pop(namespace, None)
        self._shown.discard(namespace)
        self.store.drop(namespace)

    def doubt(self, namespace: str) -> None:
        """Show a namespace only when it has been listed again; what is stored stays."""
        self._asked.pop(namespace, None)
        self._shown.discard(namespace)

    def is_shown(self, namespace: str) -> bool:
        """Whether the store has what there is of a namespace; one that does not count has nothing to show."""
        return self._interest is None or namespace in self._shown or namespace not in self._interest.namespaces

    async def _watch(self, namespace: str | None, cursor: _Cursor) -> None:
        cursor.moved = False
        async for events in self._client.watch(
            self.resource,
            namespace,
            resource_version=cursor.version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            # Spread, so that the watches of all informers and replicas do not end together.
            duration=self._rng.uniform(300.0, 600.0),
        ):
            for event in events:
                version = event.object["metadata"]["resourceVersion"]
                if event.type != "BOOKMARK" and self._counts(event.object):
                    self._prune(event.object)
                    change = (
                        self.store.remove(event.object) if event.type == "DELETED" else self.store.put(event.object)
                    )
                    if change is not None:
                        self._tell((change,))
                cursor.version = version
            cursor.moved = True
            cursor.failures = 0
            self._heard[namespace] = time.monotonic()

    def _counts(self, obj: Object) -> bool:
        if self._interest is None:
            return True
        key = key_of(obj)
        # What is kept stays, also when its owner has gone: rules have yet to see its end.
        known = self._claim is None or key in self.store or self.store.is_left_out(key)
        return self._interest.counts(key[0], None if known or self._claim is None else self._claim(obj))

    def _tell(self, changes: Iterable[Change]) -> None:
        for old, new in changes:
            for handler in self._handlers:
                try:
                    handler(old, new)
                except Exception:
                    # The store is right; one broken handler must not end the watch for all the others.
                    logger.exception("%s: a handler failed", self.resource)

    async def _pause(self, cursor: _Cursor, at_least: float | None = None) -> None:
        backoff = min(FIRST_PAUSE * 2.0 ** (cursor.failures - 1), LONGEST_PAUSE)
        await asyncio.sleep(max(backoff * self._rng.uniform(0.5, 1.0), at_least or 0.0))

    def _label(self, namespace: str | None) -> str:
        return f"{self.resource} in {namespace}" if namespace else str(self.resource)


@dataclass(slots=True)
class _Cursor:
    """How far a watch has come."""

    version: str = ""
    """Version to continue the watch from; empty if a list is needed."""

    failures: int = 0
    """Failures in a row without an event in between."""

    moved: bool = False
    """Whether the last watch brought anything, bookmarks included."""
