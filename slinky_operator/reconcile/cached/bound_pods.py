"""Pods that are bound to some Nodes, each Node with a watch of its own: never all pods of the cluster.

The API server has an index over `spec.nodeName`, so such a watch costs it what the pods of the Node cost. All watches
fill one store. A Node that goes is watched until its last pod has gone: what becomes of its pods must be seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping
from typing import Final

from typing_extensions import override

from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.informer import Informer, prune_managed_fields
from slinky_operator.kube.cache.store import Change, Indexer, Key, Store, key_of
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource

BOUND_TO: Final = "bound to"
"""Index of the store over the Node that a pod is bound to."""


def by_node(obj: Object) -> list[str]:
    """Indexer for `BOUND_TO`."""
    name = (obj.get("spec") or {}).get("nodeName")
    return [name] if isinstance(name, str) else []


class BoundPods(Informer):
    """List and watch of the pods of several Nodes into one store.

    Parameters
    ----------
    client
        Used for reads only.
    resource
        The pods.
    nodes
        The cache of the Nodes whose pods are watched.
    indexers
        Indexes of the store, beside `BOUND_TO`.
    prune
        Shortens an object in place before it is stored.
    budget
        What the objects of a namespace may take; None for no limit.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        nodes: Informer,
        *,
        indexers: Mapping[str, Indexer] | None = None,
        prune: Callable[[Object], None] = prune_managed_fields,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(client, resource, indexers={**(indexers or {}), BOUND_TO: by_node}, prune=prune, budget=budget)
        self._nodes = nodes
        self._watches: dict[str, Informer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        nodes.add_handler(lambda _old, _new: self._changed.set())
        self.add_handler(self._gone)

    @property
    @override
    def heard_at(self) -> float | None:
        """Monotonic seconds when the API server last said anything about the Node that has been silent for longest."""
        heard = [one.heard_at for one in self._watches.values()]
        known = [at for at in heard if at is not None]
        return min(known) if known and len(known) == len(heard) else self._nodes.heard_at if not heard else None

    @override
    async def run(self) -> None:
        """Watch the pods of all Nodes until cancelled."""
        await self._nodes.synced.wait()
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                wanted = {str(obj["metadata"]["name"]) for obj in self._nodes.store}
                for name in sorted(wanted - self._watches.keys()):
                    self._watches[name] = watch = self._watch_of(name)
                    self._tasks[name] = group.create_task(watch.run(), name=f"pods of node {name}")
                for name in sorted(self._watches.keys() - wanted):
                    if not len(self._watches[name].store):
                        _ = self._tasks.pop(name).cancel()
                        del self._watches[name]
                if not self.synced.is_set():
                    for one in list(self._watches.values()):
                        await one.synced.wait()
                    self.synced.set()
                    continue
                await self._changed.wait()

    @override
    async def show(self, namespace: str) -> None:
        """List once more what did not fit, of each Node."""
        for one in list(self._watches.values()):
            await one.show(namespace)

    def _watch_of(self, node: str) -> Informer:
        return Informer(
            self._client,
            self.resource,
            field_selector=f"spec.nodeName={node}",
            prune=self._prune,
            store=_Part(self.store),
            handlers=self._handlers,
            rng=self._rng,
        )

    def _gone(self, _old: Object | None, new: Object | None) -> None:
        if new is None:
            self._changed.set()


class _Part(Store):
    """What one watch fills of a store: a list of it says nothing about the objects of others."""

    def __init__(self, whole: Store) -> None:
        super().__init__()
        self._whole_store = whole
        self._keys: dict[Key, None] = {}

    @override
    def put(self, obj: Object, *, restored: bool = False) -> Change | None:
        self._keys[key_of(obj)] = None
        return self._whole_store.put(obj, restored=restored)

    @override
    def remove(self, obj: Object) -> Change | None:
        _ = self._keys.pop(key_of(obj), None)
        return self._whole_store.remove(obj)

    @override
    def newest(self, namespace: str | None = None) -> int:
        return self._whole_store.newest(namespace)

    @override
    def retain(
        self, listed: Container[Key], version: int, covers: Callable[[str], bool], *, restored: bool = False
    ) -> list[Change]:
        gone = {key for key in self._keys if key not in listed and covers(key[0])}
        changes = self._whole_store.retain(_AllBut(gone), version, covers, restored=restored)
        whole = self._whole_store
        self._keys = {key: None for key in self._keys if key not in gone or key in whole or whole.is_left_out(key)}
        return changes

    @override
    def __len__(self) -> int:
        return len(self._keys)


class _AllBut(Container[Key]):
    """Every key but some."""

    def __init__(self, keys: set[Key]) -> None:
        self._keys = keys

    @override
    def __contains__(self, key: object) -> bool:
        return key not in self._keys
