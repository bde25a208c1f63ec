"""Own writes that the caches have not shown yet.

A cache lags behind the writes of this process. A controller that counts too early creates or deletes again. So it
records what it is about to do, and does not count again for that owner until the cache has seen all of it, or until a
timeout, in case something was missed (an object created and deleted while the watch was broken).

Everything is kept by the uid of the owner: a recreated owner starts clean. One instance serves one kind of children, or
the owners themselves. Its `observe` is an informer handler, added before the one that triggers the controller; a
controller that waits for versions only does without it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.kube.cache.store import Key, Store, key_of, version_of
from slinky_operator.kube.objects import Object

logger = logging.getLogger(__name__)

TIMEOUT: Final = 60.0
"""Seconds after which a write is no longer waited for."""


@dataclass(slots=True)
class _Creation:
    owner: str
    deadline: float
    uid: str | None = None
    seen: set[str] = field(default_factory=set)
    """Uids seen under the name before the reply told ours; a predecessor's last events may be among them."""


@dataclass(frozen=True, slots=True)
class _Update:
    key: Key
    version: int
    deadline: float


@dataclass(slots=True)
class _Pending:
    """What one owner waits for."""

    creations: dict[Key, _Creation] = field(default_factory=dict)
    deletions: dict[str, float] = field(default_factory=dict)
    updates: dict[str, _Update] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.creations or self.deletions or self.updates)


class Expectations:
    """Creations, deletions and updates of children that a cache has yet to show, by owner uid.

    Parameters
    ----------
    store
        The cache in question.
    clock
        Seconds, never set back.
    timeout
        Seconds after which a write is no longer waited for.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.monotonic, timeout: float = TIMEOUT) -> None:
        self._store = store
        self._clock = clock
        self._timeout = timeout
        self._pending: dict[str, _Pending] = {}
        # Where an observed child leads to; children do not always name their owner any more when they go.
        self._creations: dict[Key, _Creation] = {}
        self._owner_of: dict[str, str] = {}

    # Before and after the writes

    def expect_creations(self, owner_uid: str, namespace: str, names: Iterable[str]) -> None:
        """Note children about to be created; call before the first request is sent."""
        deadline = self._clock() + self._timeout
        for name in names:
            creation = _Creation(owner_uid, deadline)
            self._of(owner_uid).creations[namespace, name] = creation
            self._creations[namespace, name] = creation

    def created(self, obj: Object) -> None:
        """Note the reply to a create call: only an event about this uid counts."""
        key = key_of(obj)
        creation = self._creations.get(key)
        if creation is None:
            return
        creation.uid = obj["metadata"]["uid"]
        if creation.uid in creation.seen:
            self._creation_done(key, creation)

    def creation_failed(self, namespace: str, name: str) -> None:
        """Note that a create call failed for certain, or found the object there already."""
        creation = self._creations.get((namespace, name))
        if creation is not None:
            self._creation_done((namespace, name), creation)

    def expect_deletions(self, owner_uid: str, uids: Iterable[str]) -> None:
        """Note children about to be deleted; call before the first request is sent."""
        deadline = self._clock() + self._timeout
        for uid in uids:
            self._of(owner_uid).deletions[uid] = deadline
            self._owner_of[uid] = owner_uid

    def deletion_failed(self, uid: str) -> None:
        """Note that a delete call failed, or that the object was gone already."""
        self._settle(uid, deletion=True)

    def expect_version(self, owner_uid: str, obj: Object) -> None:
        """Wait until the cache shows an object as new as `obj`, the reply to a write: a child, or the owner itself.

        Objects are written to that the cache has shown. One that it shows no more has gone while the reply was on its
        way, and no event about it will follow.
        """
        uid = obj["metadata"]["uid"]
        update = _Update(key_of(obj), version_of(obj), self._clock() + self._timeout)
        if self._is_shown(uid, update):
            return
        self._of(owner_uid).updates[uid] = update
        self._owner_of[uid] = owner_uid

    def forget(self, owner_uid: str) -> None:
        """Drop everything about an owner that is gone."""
        pending = self._pending.pop(owner_uid, None)
        if pending is None:
            return
        for key, creation in pending.creations.items():
            if self._creations.get(key) is creation:
                del self._creations[key]
        for uid in (*pending.deletions, *pending.updates):
            self._owner_of.pop(uid, None)

    # From the cache

    def observe(self, old: Object | None, new: Object | None) -> None:
        """Informer handler: what the cache shows now."""
        obj = new if new is not None else old
        if obj is None:
            return
        key, uid = key_of(obj), obj["metadata"]["uid"]
        creation = self._creations.get(key)
        if creation is not None:
            if creation.uid is None:
                creation.seen.add(uid)
            elif creation.uid == uid:
                self._creation_done(key, creation)
        if uid in self._owner_of:
            # A pod with a deletionTimestamp is terminating, which may take long.
            going = new is None or "deletionTimestamp" in obj["metadata"]
            self._settle(uid, deletion=going, version=None if new is None else version_of(obj))
        if old is not None and new is not None and old["metadata"]["uid"] != uid:
            # The list after a broken watch shows the successor only: the old one is gone.
            self._settle(old["metadata"]["uid"], deletion=True)

    # Before counting

    def satisfied(self, owner_uid: str) -> bool:
        """Whether the cache has shown all writes of this owner; writes past their timeout are given up here."""
        pending = self._pending.get(owner_uid)
        if pending is None:
            return True
        now = self._clock()
        late: list[str] = []
        for key, creation in list(pending.creations.items()):
            if creation.deadline <= now:
                late.append("/".join(key))
                self._creation_done(key, creation)
        late += [uid for uid, at in pending.deletions.items() if at <= now]
        for uid, update in list(pending.updates.items()):
            if self._is_shown(uid, update):
                self._settle(uid, version=update.version)
            elif update.deadline <= now:
                late.append(uid)
        for uid in late:
            self._settle(uid, deletion=True)
        if late:
            logger.warning("the cache never showed our write of %s; counting what it shows", ", ".join(late))
        return owner_uid not in self._pending

    def expires_in(self, owner_uid: str) -> float | None:
        """Seconds until the last write of this owner is given up; `None` if there is none to wait for."""
        pending = self._pending.get(owner_uid)
        if pending is None:
            return None
        deadlines = [c.deadline for c in pending.creations.values()]
        deadlines += [*pending.deletions.values(), *(update.deadline for update in pending.updates.values())]
        return max(0.0, max(deadlines) - self._clock())

    def _of(self, owner_uid: str) -> _Pending:
        return self._pending.setdefault(owner_uid, _Pending())

    def _creation_done(self, key: Key, creation: _Creation) -> None:
        if self._creations.get(key) is creation:
            del self._creations[key]
        pending = self._pending.get(creation.owner)
        if pending is not None:
            pending.creations.pop(key, None)
            self._tidy(creation.owner, pending)

    def _is_shown(self, uid: str, update: _Update) -> bool:
        """Whether the cache shows an object as new as a write, or shows it no more."""
        shown = self._store.get(*update.key)
        return shown is None or shown["metadata"]["uid"] != uid or version_of(shown) >= update.version

    def _settle(self, uid: str, *, deletion: bool = False, version: int | None = None) -> None:
        """Strike what is fulfilled about a child: all of it if it goes, its update if it is new enough."""
        owner = self._owner_of.get(uid)
        pending = self._pending.get(owner) if owner is not None else None
        if owner is None or pending is None:
            return
        if deletion:
            pending.deletions.pop(uid, None)
        if deletion or (version is not None and uid in pending.updates and version >= pending.updates[uid].version):
            pending.updates.pop(uid, None)
        if uid not in pending.deletions and uid not in pending.updates:
            del self._owner_of[uid]
        self._tidy(owner, pending)

    def _tidy(self, owner: str, pending: _Pending) -> None:
        if not pending:
            self._pending.pop(owner, None)
