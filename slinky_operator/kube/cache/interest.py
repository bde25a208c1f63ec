"""Which objects count: those that an owner in their namespace can have.

Labels are set by anybody. An object with a label of the operator in a namespace without Cluster, NodeSet or LoginSet
can belong to none, since owners and their objects share a namespace. Nothing of such a namespace is kept, and nobody
is woken by it. When the first owner appears, the namespace is listed; until that has been done it is not `shown`, and
no rule may take what is missing for absent. A namespace without owners counts on as long as something of it is kept:
what a deleted owner has left is tidied up.

In a namespace that counts, an object is kept if its `OwnershipClaim` names an owner that exists, by uid or by name.
All owners are known before anything is listed. One that appears later may be named by objects that were dropped: what
these named is remembered, and the namespace is not shown until it has been listed again. So an object that is seen
before its owner is never lost. What was once kept stays until it is deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from slinky_operator.kube import errors
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.store import key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0
"""Seconds until a namespace that could not be listed is listed again."""


MOST_REFUSED: Final = 1024
"""Owners named by dropped objects of a namespace that are remembered. With more, the namespace is listed again for
each new owner."""

Name = tuple[Resource, str]
"""Kind and name of an owner."""

Mark = str | Name
"""What an owner is known by: its uid, and its kind with its name."""


@dataclass(frozen=True, slots=True)
class OwnershipClaim:
    """What an object says of its owners; one of them is enough."""

    uids: frozenset[str] = frozenset()
    """By uid."""

    names: frozenset[Name] = frozenset()
    """By name: an owner takes over what its predecessor of that name has left."""

    is_left: bool = False
    """Whether it counts without any owner: rules tidy it up after the last one."""


class Owners(Protocol):
    """What is used of a `mirror.Mirror`."""

    resource: Resource
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

    def doubt(self, namespace: str) -> None:
        """Show a namespace only when it has been listed again."""
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
        self._known: dict[tuple[str, Name], str] = {}
        """Uid of each owner."""
        self._marks: Counter[tuple[str, Mark]] = Counter()
        """Owners that exist, by namespace."""
        self._refused: dict[str, set[Mark]] = {}
        """Owners that dropped objects of a namespace have named."""
        for owner in owners:
            owner.add_handler(partial(self._changed, owner.resource))

    def counts(self, namespace: str, claim: OwnershipClaim | None) -> bool:
        """Whether an object of a namespace can belong to an owner; None for one that is not asked whose it is."""
        if namespace not in self.namespaces:
            return False
        if claim is None or claim.is_left:
            return True
        if any((namespace, mark) in self._marks for mark in (*claim.uids, *claim.names)):
            return True
        refused = self._refused.setdefault(namespace, set())
        if len(refused) <= MOST_REFUSED:
            refused |= claim.uids | claim.names
        return False

    async def known(self) -> None:
        """Wait until all owners are known."""
        for owner in self._owners:
            await owner.synced.wait()

    async def run(self) -> None:
        """List the namespaces that begin to count, one after the other, until cancelled."""
        while True:
            namespace = await self._new.get()
            while namespace in self.namespaces and not self._is_shown(namespace):
                try:
                    _ = await asyncio.gather(*(follower.show(namespace) for follower in self.followers))
                except errors.KubeError as error:
                    logger.log(errors.level_of(error), "namespace %s: %s", namespace, error)
                    await asyncio.sleep(max(RETRY_S, error.retry_after or 0.0))
                else:
                    if not self._is_shown(namespace):
                        # The first list of all is under way, and will show it.
                        await asyncio.sleep(RETRY_S)

    def _is_shown(self, namespace: str) -> bool:
        return all(follower.is_shown(namespace) for follower in self.followers)

    def _changed(self, resource: Resource, old: Object | None, new: Object | None, /) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        namespace, name = key_of(obj)
        owner = namespace, (resource, name)
        # Not what was, but what is known: one for which there is no room comes as if it were new each time.
        before, now = self._known.get(owner), None if new is None else str(new["metadata"].get("uid", ""))
        if before == now:
            return
        appeared = self._count(owner, now, 1)
        self._count(owner, before, -1)
        if namespace in self.namespaces and self._may_be_refused(namespace, appeared):
            logger.info("namespace %s is listed again: objects of %s came before it", namespace, name)
            self._refused.pop(namespace, None)
            for follower in self.followers:
                follower.doubt(namespace)
            self._new.put_nowait(namespace)
        if now is None:
            del self._known[owner]
        else:
            self._known[owner] = now
        if before is not None and now is not None:
            return
        self._counts[namespace] += 1 if now is not None else -1
        if self._counts[namespace] <= 0:
            del self._counts[namespace]
            self._ended.add(namespace)
        elif namespace in self.namespaces:
            self._ended.discard(namespace)
        else:
            self.namespaces |= {namespace}
            self._new.put_nowait(namespace)
        self._forget_empty()

    def _count(self, owner: tuple[str, Name], uid: str | None, more: int) -> set[Mark]:
        """Count what an owner is known by, or count it no more; returns what nobody was known by before."""
        if uid is None:
            return set()
        namespace, name = owner
        marks: set[Mark] = {uid, name}
        appeared = {mark for mark in marks if more > 0 and (namespace, mark) not in self._marks}
        for one in marks:
            self._marks[namespace, one] += more
            if self._marks[namespace, one] <= 0:
                del self._marks[namespace, one]
        return appeared

    def _may_be_refused(self, namespace: str, marks: set[Mark]) -> bool:
        """Whether an object that names one of these may have been dropped."""
        refused = self._refused.get(namespace, set())
        return bool(marks) and (len(refused) > MOST_REFUSED or not refused.isdisjoint(marks))

    def _forget_empty(self) -> None:
        """Forget namespaces of which nothing is left."""
        gone = {one for one in self._ended if not self._budget.has(one)}
        self._ended -= gone
        self.namespaces -= gone
        for namespace in gone:
            self._refused.pop(namespace, None)
            for one in self.followers:
                one.hide(namespace)
