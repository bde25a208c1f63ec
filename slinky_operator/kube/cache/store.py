"""A cache of objects by namespace and name, with indexes.

Memory only: other modules fill it (`informer`, `mirror`) and call handlers. Objects in a store are shared between all
readers and must not be changed by them.

Versions are compared: an object never returns to an older version, and an object deleted at version N does not reappear
from a list taken before N. API servers guarantee that the versions of one resource are ordered numbers.

This guarantee ends when etcd is restored from a backup: versions continue from that of the backup. A list that was
requested after something newer had been seen, and is older than that, can have no other cause, since lists are read
from etcd itself. It is then accepted as it is, whatever versions the store knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from slinky_operator.kube.objects import Object

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

Indexer = Callable[[Object], Iterable[str]]
"""The values under which an object is found in one index."""

Change = tuple[Object | None, Object | None]
"""What was and what is; `None` on either side for an object that came or went."""

OWNER = "owner"
"""Index over the uids of all owners, the controller among them."""


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


def version_of(obj: Object) -> int:
    """Version of an object as a number; 0 if it has none."""
    version = obj["metadata"].get("resourceVersion")
    return int(version) if version else 0


class Store:
    """Objects by namespace and name.

    Parameters
    ----------
    indexers
        Name of each index, and the values under which it lists an object.
    """

    def __init__(self, indexers: Mapping[str, Indexer] | None = None) -> None:
        self._indexers = dict(indexers or {})
        self._objects: dict[Key, Object] = {}
        # Dictionaries instead of sets: they keep the order of arrival, which makes runs repeatable.
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._indexers}
        self._buried: dict[Key, int] = {}

    def get(self, namespace: str | None, name: str) -> Object | None:
        """Object of this name, or `None`."""
        return self._objects.get((namespace or "", name))

    def items(self, namespace: str | None = None) -> list[Object]:
        """All objects, or those of a namespace."""
        if namespace is None:
            return list(self._objects.values())
        return [obj for (ns, _), obj in self._objects.items() if ns == namespace]

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

    def values(self, index: str) -> list[str]:
        """All values an index knows."""
        return list(self._indexes[index])

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def put(self, obj: Object) -> Change | None:
        """Store an object; returns the change, or `None` if something newer or equal is there already."""
        key = key_of(obj)
        version = version_of(obj)
        old = self._objects.get(key)
        if old is not None and version <= version_of(old) and version:
            return None
        if version and version <= self._buried.get(key, 0):
            return None
        self._buried.pop(key, None)
        self._set(key, old, obj)
        return old, obj

    def remove(self, obj: Object) -> Change | None:
        """Forget an object that was deleted, given as it was last seen.

        Returns the change with that last state, or `None` if the store holds a newer object, or none.
        """
        key = key_of(obj)
        version = version_of(obj)
        old = self._objects.get(key)
        if old is not None and version and version < version_of(old):
            return None
        self._buried[key] = max(version, self._buried.get(key, 0))
        if old is None:
            return None
        self._unset(key, old)
        # The deletion event carries the final state, which is newer than what we knew.
        return obj, None

    def newest(self, namespace: str | None = None) -> int:
        """Newest version that was seen of an object of a namespace, or of any; 0 if there was none."""
        known = (version_of(obj) for key, obj in self._objects.items() if namespace in {None, key[0]})
        buried = (at for key, at in self._buried.items() if namespace in {None, key[0]})
        return max((*known, *buried), default=0)

    def replace(
        self, objects: Iterable[Object], version: int, namespace: str | None = None, *, known: int = 0
    ) -> list[Change]:
        """Bring the store in line with a whole list.

        Parameters
        ----------
        objects
            The list.
        version
            Version of the list. Objects that the store knows from after that version stay as they are.
        namespace
            Namespace the list is about; `None` for all.
        known
            What `newest` said before the list was asked for. A list older than that shows that etcd was restored from
            a backup: everything that the store knows of the namespace is then forgotten for it.

        Returns
        -------
        list
            All differences, deletions that nobody reported among them.
        """
        if 0 < version < known:
            return self._start_again(objects, namespace)
        changes: list[Change] = []
        listed: set[Key] = set()
        for obj in objects:
            listed.add(key_of(obj))
            change = self.put(obj)
            if change is not None:
                changes.append(change)
        for key, old in list(self._objects.items()):
            if key in listed or (namespace is not None and key[0] != namespace):
                continue
            if version and version_of(old) > version:
                continue
            self._unset(key, old)
            changes.append((old, None))
        # A later list is at least this new, so deletions before it need not be remembered.
        self._buried = {key: at for key, at in self._buried.items() if at > version}
        return changes

    def _start_again(self, objects: Iterable[Object], namespace: str | None) -> list[Change]:
        """Take a list as it is."""
        changes: list[Change] = []
        listed = {key_of(obj): obj for obj in objects}
        for key, old in list(self._objects.items()):
            if key not in listed and namespace in {None, key[0]}:
                self._unset(key, old)
                changes.append((old, None))
        for key, obj in listed.items():
            before = self._objects.get(key)
            if before is None or before["metadata"] != obj["metadata"]:
                self._set(key, before, obj)
                changes.append((before, obj))
        self._buried = {key: at for key, at in self._buried.items() if namespace not in {None, key[0]}}
        return changes

    def _set(self, key: Key, old: Object | None, new: Object) -> None:
        self._objects[key] = new
        for name, indexer in self._indexers.items():
            before = set(indexer(old)) if old is not None else set()
            after = set(indexer(new))
            if before != after:
                self._reindex(name, key, before - after, after - before)

    def _unset(self, key: Key, old: Object) -> None:
        del self._objects[key]
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
