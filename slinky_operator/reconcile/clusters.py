"""Clusters as all controllers but their own read them: one cache, in which each version is parsed once.

What follows from a Cluster that does not exist, or cannot be read, is left to the controllers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object

SLACK: Final = 8
"""Clusters beyond those that exist that may be remembered: deleted ones, until others take their room."""


class ClusterReader:
    """Clusters by namespace and name, parsed.

    Parameters
    ----------
    store
        The cache of Clusters.
    namespaces
        Those that it shows; all if empty.
    """

    def __init__(self, store: Store, namespaces: Collection[str] = ()) -> None:
        self.store = store
        self._namespaces = namespaces
        self._parsed: ParseCache[Cluster] = ParseCache(Cluster)

    def __len__(self) -> int:
        return len(self._parsed)

    def exists(self, key: Key) -> bool:
        """Whether there is such a Cluster, readable or not."""
        return self.store.get(*key) is not None

    def is_shown(self, key: Key) -> bool:
        """Whether the cache would show such a Cluster: of another namespace nothing is known."""
        return not self._namespaces or key[0] in self._namespaces

    async def prepare(self, *objects: Object | None) -> None:
        """Parse Clusters, large ones in a thread, so that `read` does not block the event loop."""
        await self._parsed.prepare(*objects)
        if len(self._parsed) > len(self.store) + SLACK:
            self._parsed.keep(str(obj["metadata"].get("uid", "")) for obj in self.store)

    def read(self, obj: Object) -> Cluster:
        """Parse a Cluster.

        Raises
        ------
        InvalidObjectError
            It cannot be parsed.
        """
        return self._parsed.read(obj)

    def known(self, key: Key) -> Cluster | None:
        """The Cluster of a name, parsed here unless `prepare` did; None if it does not exist or cannot be parsed."""
        obj = self.store.get(*key)
        try:
            return None if obj is None else self._parsed.read(obj)
        except InvalidObjectError:
            return None

    async def named(self, key: Key) -> Cluster | InvalidObjectError | None:
        """The Cluster of a name; why it cannot be parsed, or None if it does not exist."""
        obj = self.store.get(*key)
        if obj is None:
            return None
        await self.prepare(obj)
        try:
            return self._parsed.read(obj)
        except InvalidObjectError as error:
            return error

    async def find(self, key: Key) -> Cluster | None:
        """The Cluster of a name; None if it does not exist or cannot be parsed."""
        found = await self.named(key)
        return None if isinstance(found, InvalidObjectError) else found
