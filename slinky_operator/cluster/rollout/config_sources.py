"""The user's ConfigMaps that Clusters name: read by name, and watched individually while a Cluster names them.

They have no label of the operator, and a cache of all ConfigMaps would hold everybody's. So each gets its own watch for
just that name, as the kubelet does for the pods it runs: only what is needed is cached, a change is seen at once, and a
Cluster without ConfigMaps costs nothing. A ConfigMap that does not exist is watched too, since it may be created.
"""

from __future__ import annotations

import base64
import binascii
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from slinky_operator.kube import errors
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.informer import Informer, prune_managed_fields
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.slurm.conf import TextSource
from slinky_operator.slurm.conf.sources.gather import refusal

Listener = Callable[[Key], None]
"""Called with the key of a Cluster if one of its ConfigMaps has changed. Must not block."""


@dataclass(slots=True)
class _Watched:
    informer: Informer
    task: str
    users: set[Key] = field(default_factory=set)
    """Clusters that name it."""


class ConfigMapWatcher:
    """ConfigMaps by namespace and name.

    Parameters
    ----------
    client
        Reads only.
    supervisor
        Runs the watches and notices if one crashes.
    budget
        What the objects of a namespace may take, with those of caches; None for no limit.
    """

    def __init__(self, client: KubeClient, supervisor: Supervisor, budget: Budget | None = None) -> None:
        self._client = client
        self._budget = budget
        self._supervisor = supervisor
        self._watched: dict[Key, _Watched] = {}
        self._listeners: list[Listener] = []
        self._numbers = itertools.count()

    def subscribe(self, listener: Listener) -> None:
        """Call `listener` with the key of each Cluster affected by a change from now on."""
        self._listeners.append(listener)

    @property
    def watched(self) -> frozenset[Key]:
        """Namespace and name of every ConfigMap that is watched."""
        return frozenset(self._watched)

    async def read(self, cluster: Key, names: Iterable[str]) -> dict[str, TextSource]:
        """Return the ConfigMaps that a Cluster names; from now on these are watched for it, and no others.

        Parameters
        ----------
        cluster
            Namespace and name of the Cluster; its ConfigMaps are in the same namespace.
        names
            What it names now.

        Raises
        ------
        KubeError
            One that is not yet in a cache cannot be read. One that does not exist is no error.
        """
        wanted = dict.fromkeys(names)
        for name in wanted:
            self._watch((cluster[0], name)).users.add(cluster)
        await self._release(cluster, [key for key in self._watched if key[1] not in wanted or key[0] != cluster[0]])
        return {name: await self._one((cluster[0], name)) for name in wanted}

    async def forget(self, cluster: Key) -> None:
        """Stop all watches for this Cluster."""
        await self._release(cluster, list(self._watched))

    def _watch(self, key: Key) -> _Watched:
        known = self._watched.get(key)
        if known is not None:
            return known
        namespace, name = key
        selector = f"metadata.name={name}"
        informer = Informer(
            self._client,
            CONFIGMAPS,
            namespaces=[namespace],
            field_selector=selector,
            prune=prune,
            budget=self._budget,
        )
        # Numbered: the previous watch may still be ending.
        made = _Watched(informer, f"ConfigMap {namespace}/{name} #{next(self._numbers)}")
        self._watched[key] = made

        def tell(_: Object | None, __: Object | None) -> None:
            for user in sorted(made.users):
                for listener in self._listeners:
                    listener(user)

        informer.add_handler(tell)
        self._supervisor.start(made.task, informer.run())
        return made

    async def _release(self, cluster: Key, keys: Iterable[Key]) -> None:
        ending: list[tuple[Key, _Watched]] = []
        for key in keys:
            watched = self._watched[key]
            watched.users.discard(cluster)
            if not watched.users:
                del self._watched[key]
                ending.append((key, watched))
        for key, watched in ending:
            await self._supervisor.stop(watched.task)
            watched.informer.store.drop(key[0])

    async def _one(self, key: Key) -> TextSource:
        namespace, name = key
        watched = self._watched.get(key)
        if watched is not None and watched.informer.synced.is_set():
            store = watched.informer.store
            if namespace in store.has_room_for_more():
                await watched.informer.show(namespace)
            if store.missing(namespace):
                return TextSource(name, exists=True, refused=OVER_BUDGET)
            found = store.get(namespace, name)
        else:
            try:
                found = await self._client.get(CONFIGMAPS, name, namespace)
            except errors.NotFound:
                found = None
            else:
                prune(found)
        return TextSource(name, exists=False) if found is None else text_source(found)


OVER_BUDGET: Final = "is not read: its namespace is over the operator's memory budget (namespaceBudget of the chart)"
"""What is said of a ConfigMap for which there is no room."""

REFUSED: Final = "refused"
"""Key of an object, beside `metadata`, with the reason why its data was not kept."""


def prune(obj: Object) -> None:
    """Drop managed fields, and all data of a ConfigMap that is too big to be used: it would only fill the memory."""
    prune_managed_fields(obj)
    obj[REFUSED] = refusal(obj.get("data") or {}, obj.get("binaryData") or {})
    if obj[REFUSED]:
        obj.pop("data", None)
        obj.pop("binaryData", None)


def text_source(obj: Object) -> TextSource:
    """Texts of a ConfigMap; entries of `binaryData` count if they are text."""
    if obj.get(REFUSED):
        return TextSource(obj["metadata"]["name"], exists=True, refused=obj[REFUSED])
    texts = dict(obj.get("data") or {})
    not_text = []
    for key, value in (obj.get("binaryData") or {}).items():
        try:
            texts[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            not_text.append(key)
    return TextSource(obj["metadata"]["name"], exists=True, texts=texts, not_text=tuple(sorted(not_text)))
