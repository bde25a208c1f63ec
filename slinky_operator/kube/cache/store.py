"""A cache of objects by namespace and name, with indexes.

Memory only: other modules fill it (`informer`, `mirror`) and call handlers. Objects in a store are shared between all
readers and must not be changed by them.

Versions are compared: an object never returns to an older version, and an object deleted at version N does not reappear
from a list taken before N. API servers guarantee that the versions of one resource are ordered numbers.

This guarantee ends when etcd is restored from a backup: versions continue from that of the backup. A list that was
requested after something newer had been seen, and is older than that, can have no other cause, since lists are read
from etcd itself. It is then accepted as it is, whatever versions the store knows.

A store with a `Budget` keeps what fits into it. What does not is remembered by version and size only (`missing`), or
kept as a stub; the next list tries it again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from slinky_operator.kube.cache.budget import Budget, footprint
from slinky_operator.kube.objects import Object

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

Indexer = Callable[[Object], Iterable[str]]
"""The values under which an object is found in one index."""

Change = tuple[Object | None, Object | None]
"""What was and what is; `None` on either side for an object that came or went."""

OWNER = "owner"
"""Index over the uids of all owners, the controller among them."""


MOST_BURIED: Final = 10_000
"""Deletions that are remembered, the latest of them: a list that began before is over by then."""


def by_owner(obj: Object) -> list[str]:
    """Uids of all owners of an object."""
    return [ref["uid"] for ref in obj["metadata"].get("ownerReferences") or () if "uid" in ref]


def by_label(label: str) -> Indexer:
    """Make an indexer over the values of a label."""

    def values(obj: Object) -> list[str]:
        value = (obj["metadata"].get("labels") or {}).get(label)
        return [] if value is None else [value]

    return values


def key_of(obj: Object) -> Key:
    """Namespace and name of an object."""
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _labels(obj: Object | None) -> Mapping[str, str] | None:
    """Labels of an object; None if there is no object."""
    return (obj["metadata"].get("labels") or {}) if obj is not None else None


def version_of(obj: Object) -> int:
    """Version of an object as a number; 0 if it has none."""
    version = obj["metadata"].get("resourceVersion")
    return int(version) if version else 0


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """An object that did not fit into the budget."""

    version: int
    size: int
    is_missing: bool
    """Whether not even a stub of it is kept."""


class Store:
    """Objects by namespace and name.

    Parameters
    ----------
    indexers
        Name of each index, and the values under which it lists an object.
    budget
        What the objects of a namespace may take; None for no limit.
    stub
        Makes a small object of one that does not fit into the budget; None to keep nothing of it.
    """

    def __init__(
        self,
        indexers: Mapping[str, Indexer] | None = None,
        *,
        budget: Budget | None = None,
        stub: Callable[[Object], Object] | None = None,
    ) -> None:
        self._indexers = dict(indexers or {})
        self._budget = budget
        self._stub = stub
        self._sizes: dict[Key, int] = {}
        self._whole: dict[str, dict[Key, None]] = {}
        """Keys in a namespace of what is kept as it is, and counts in the budget."""
        self._left_out: dict[Key, _LeftOut] = {}
        self._missing: dict[str, int] = {}
        self._objects: dict[Key, Object] = {}
        self.layout = 0
        """Grows whenever an object comes or goes, or has other labels or other places in an index: until then, what was
        looked up by these need not be looked up again."""
        # Dictionaries instead of sets: they keep the order of arrival, which makes runs repeatable.
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._indexers}
        self._buried: dict[Key, int] = {}
        if budget is not None and budget.total is not None:
            budget.total.add(self)

    @property
    def budget(self) -> Budget | None:
        """What the objects of a namespace may take; None for no limit."""
        return self._budget

    def get(self, namespace: str | None, name: str) -> Object | None:
        """Object of this name, or `None`."""
        return self._objects.get((namespace or "", name))

    def items(self, namespace: str | None = None) -> list[Object]:
        """All objects, or those of a namespace."""
        if namespace is None:
            return list(self._objects.values())
        return [obj for (ns, _), obj in self._objects.items() if ns == namespace]

    def others(self, namespace: str, names: Container[str]) -> list[Object]:
        """Objects of a namespace, but for those with these names."""
        return [obj for (ns, name), obj in self._objects.items() if ns == namespace and name not in names]

    def keys(self) -> list[Key]:
        """Keys of all objects."""
        return list(self._objects)

    def find(self, index: str, value: str) -> list[Object]:
        """Objects that an index lists under a value.

        Raises
        ------
        KeyError
            If there is no such index.
        """
        return [self._objects[key] for key in self._indexes[index].get(value, ())]

    def find_keys(self, index: str, value: str) -> list[Key]:
        """Keys of the objects that an index lists under a value; of thousands much cheaper than the objects.

        Raises
        ------
        KeyError
            If there is no such index.
        """
        return list(self._indexes[index].get(value, ()))

    def lists_others(self, index: str, value: str, key: Key | None) -> bool:
        """Whether an index lists anything but the object with a key under a value.

        Raises
        ------
        KeyError
            If there is no such index.
        """
        found = self._indexes[index].get(value, {})
        return len(found) > (key in found)

    def values(self, index: str) -> list[str]:
        """All values an index knows."""
        return list(self._indexes[index])

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def put(self, obj: Object, *, restored: bool = False) -> Change | None:
        """Store an object; returns the change, or `None` if something newer or equal is there already.

        The change has the new object even if there is no room for it: handlers must hear of it all the same.

        Parameters
        ----------
        restored
            Whether it comes from a list of an etcd that was restored from a backup: then its version means nothing.
        """
        key = key_of(obj)
        version = version_of(obj)
        if restored:
            before = self._objects.get(key)
            if before is not None and before["metadata"] == obj["metadata"]:
                return None
            return before, self._set(key, before, obj)
        old, left_out = self._objects.get(key), self._left_out.get(key)
        if left_out is not None:
            if version < left_out.version or (version == left_out.version and not self._fits(key, obj)):
                return None
        elif old is not None and version <= version_of(old) and version:
            return None
        if version and version <= self._buried.get(key, 0):
            return None
        self._buried.pop(key, None)
        return old, self._set(key, old, obj)

    def remove(self, obj: Object) -> Change | None:
        """Forget an object that was deleted, given as it was last seen.

        Returns the change with that last state, or `None` if the store holds a newer object, or none.
        """
        key = key_of(obj)
        version = version_of(obj)
        old, left_out = self._objects.get(key), self._left_out.get(key)
        known = max(version_of(old) if old is not None else 0, left_out.version if left_out is not None else 0)
        if version and version < known:
            return None
        self._buried[key] = max(version, self._buried.pop(key, 0))
        if len(self._buried) > MOST_BURIED:
            del self._buried[next(iter(self._buried))]
        if old is None and left_out is None:
            return None
        self._unset(key, old)
        # The deletion event carries the final state, which is newer than what we knew.
        return obj, None

    def newest(self, namespace: str | None = None) -> int:
        """Newest version that was seen of an object of a namespace, or of any; 0 if there was none."""
        known = (version_of(obj) for key, obj in self._objects.items() if namespace in {None, key[0]})
        left_out = (one.version for key, one in self._left_out.items() if namespace in {None, key[0]})
        buried = (at for key, at in self._buried.items() if namespace in {None, key[0]})
        return max((*known, *left_out, *buried), default=0)

    def retain(
        self, listed: Container[Key], version: int, covers: Callable[[str], bool], *, restored: bool = False
    ) -> list[Change]:
        """Forget what a whole list does not have; returns these deletions, which nobody has reported.

        Parameters
        ----------
        listed
            Keys of the list.
        version
            Version of the list. Objects that the store knows from after that version stay as they are.
        covers
            Whether the list is about a namespace.
        restored
            Whether etcd was restored from a backup: then versions mean nothing.
        """
        changes: list[Change] = []
        for key in list(dict.fromkeys((*self._objects, *self._left_out))):
            if key in listed or not covers(key[0]):
                continue
            old, left_out = self._objects.get(key), self._left_out.get(key)
            at = max(version_of(old) if old is not None else 0, left_out.version if left_out is not None else 0)
            if version and at > version and not restored:
                continue
            self._unset(key, old)
            if old is not None:
                changes.append((old, None))
        if restored:
            self._buried = {key: at for key, at in self._buried.items() if not covers(key[0])}
        else:
            # A later list is at least this new, so deletions before it need not be remembered.
            self._buried = {key: at for key, at in self._buried.items() if at > version or not covers(key[0])}
        return changes

    def replace(
        self, objects: Iterable[Object], version: int, namespace: str | None = None, *, known: int = 0
    ) -> list[Change]:
        """Bring the store in line with a list of a namespace, or of all; returns all differences.

        What the parameters mean, `listed.Listed` says, which does the same page by page.
        """
        restored = 0 < version < known
        listed = {key_of(obj): obj for obj in objects}
        changes = [self.put(obj, restored=restored) for obj in listed.values()]
        gone = self.retain(listed, version, lambda one: namespace in {None, one}, restored=restored)
        return [*(change for change in changes if change is not None), *gone]

    def missing(self, namespace: str) -> int:
        """How many objects of a namespace exist of which the store has nothing, not even a stub."""
        return self._missing.get(namespace, 0)

    @property
    def is_whole(self) -> bool:
        """Whether every object is here: nothing was left out for want of room."""
        return not self._missing

    def is_left_out(self, key: Key) -> bool:
        """Whether an object exists for which there was no room."""
        return key in self._left_out

    def sizes(self, namespace: str) -> Iterable[tuple[int, Key]]:
        """Bytes and key of each object of a namespace that is kept whole."""
        return [(self._sizes[key], key) for key in self._whole.get(namespace, ())]

    def leave_out(self, key: Key) -> None:
        """Leave an object out, as if there had been no room for it; the next list tries it again.

        No handler is called: what is missing is never taken for absent.
        """
        old, budget = self._objects.get(key), self._budget
        if old is None or budget is None:
            return
        self._keep(key, old, self._in_place_of(budget, key, old))

    def has_room_for_more(self) -> set[str]:
        """Namespaces with objects that did not fit, and of which one would fit now."""
        budget = self._budget
        if budget is None:
            return set()
        return {
            key[0] for key, one in self._left_out.items() if budget.fits(key[0], one.size - self._sizes.get(key, 0))
        }

    def drop(self, namespace: str) -> None:
        """Forget a namespace, as if nothing had been seen of it, without a change to report."""
        for key in [key for key in (*self._objects, *self._left_out) if key[0] == namespace]:
            self._unset(key, self._objects.get(key))
        self._buried = {key: at for key, at in self._buried.items() if key[0] != namespace}

    def _fits(self, key: Key, obj: Object) -> bool:
        return self._budget is None or self._budget.fits(key[0], footprint(obj) - self._sizes.get(key, 0))

    def _set(self, key: Key, old: Object | None, new: Object) -> Object:
        """Keep an object as far as there is room; returns it, or the stub that is kept in its place."""
        kept: Object | None = new
        if self._budget is not None:
            kept = self._ration(self._budget, key, new)
        self._keep(key, old, kept)
        return new if kept is None else kept

    def _keep(self, key: Key, old: Object | None, kept: Object | None) -> None:
        """Have an object in the place of another, None for nothing, in the indexes too."""
        if kept is not None:
            self._objects[key] = kept
        elif old is not None:
            del self._objects[key]
        if _labels(old) != _labels(kept):
            self.layout += 1
        for name, indexer in self._indexers.items():
            before = set(indexer(old)) if old is not None else set()
            after = set(indexer(kept)) if kept is not None else set()
            if before != after:
                self.layout += 1
                self._reindex(name, key, before - after, after - before)

    def _ration(self, budget: Budget, key: Key, new: Object) -> Object | None:
        """What can be kept of an object; None if there is no room for anything."""
        size = footprint(new)
        if not budget.fits(key[0], size - self._sizes.get(key, 0)):
            return self._in_place_of(budget, key, new)
        self._forget(key)
        self._whole.setdefault(key[0], {})[key] = None
        self._take(budget, key, size)
        return new

    def _in_place_of(self, budget: Budget, key: Key, new: Object) -> Object | None:
        """What is kept in place of an object that does not fit; None for nothing."""
        namespace, size = key[0], footprint(new)
        self._forget(key)
        stub = self._stub(new) if self._stub is not None else None
        taken = footprint(stub) if stub is not None else 0
        is_missing = stub is None or not budget.fits(namespace, taken, stub=True)
        self._left_out[key] = _LeftOut(version_of(new), size, is_missing)
        budget.leave_out(namespace, 1, size)
        if is_missing:
            self._missing[namespace] = self._missing.get(namespace, 0) + 1
            return None
        self._take(budget, key, taken)
        return stub

    def _take(self, budget: Budget, key: Key, size: int) -> None:
        self._sizes[key] = size
        budget.take(key[0], size)

    def _forget(self, key: Key) -> None:
        """Take an object out of the budget."""
        size, left_out = self._sizes.pop(key, 0), self._left_out.pop(key, None)
        whole = self._whole.get(key[0], {})
        whole.pop(key, None)
        if not whole:
            self._whole.pop(key[0], None)
        if self._budget is None:
            return
        self._budget.take(key[0], -size)
        if left_out is not None:
            self._budget.leave_out(key[0], -1, -left_out.size)
            if left_out.is_missing:
                self._missing[key[0]] -= 1
                if not self._missing[key[0]]:
                    del self._missing[key[0]]

    def _unset(self, key: Key, old: Object | None) -> None:
        self._forget(key)
        if old is None:
            return
        del self._objects[key]
        self.layout += 1
        for name, indexer in self._indexers.items():
            self._reindex(name, key, set(indexer(old)), set())

    def _reindex(self, name: str, key: Key, gone: Iterable[str], come: Iterable[str]) -> None:
        index = self._indexes[name]
        for value in gone:
            keys = index.get(value, {})
            keys.pop(key, None)
            if not keys:
                index.pop(value, None)
        for value in come:
            index.setdefault(value, {})[key] = None
