"""Which keys an event puts on a controller's queue: one shape for every controller.

A trigger returns the keys of the objects that an event is about; it puts nothing on a queue itself. `connect` does
that, for caches, for the connection to each Cluster's Slurm and for the events of its nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from slinky_operator.kube.cache.informer import Handler
from slinky_operator.kube.cache.store import Key, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.runtime.queue import WorkQueue
from slinky_operator.slurm.connection.contact import Contact
from slurm_client.watch import NodeEvent

AT_ONCE: Final = 250
"""Keys that one event queues before others have the event loop, a millisecond: a Cluster may have 10,000 SlurmJobs."""

ObjectTrigger = Callable[[Object | None, Object | None], Iterable[Key]]
"""Given the old and the new object (None: created or deleted), returns keys."""

Subscribe = Callable[[Callable[[Key], None]], None]
"""Registers a function that is called with each key."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """Everything that triggers one controller."""

    objects: Mapping[Resource, ObjectTrigger]
    """By the kind of the cache."""
    contact: Callable[[str], Iterable[Key]] = lambda _uid: ()
    """Given the uid of a Cluster whose connection to Slurm has changed."""
    node: Callable[[str, NodeEvent], Iterable[Key]] = lambda _uid, _event: ()
    """Given the uid of a Cluster and the change of one of its nodes."""
    node_delay: float = 0.0
    """Seconds for which events of nodes are batched before a pass."""
    observers: Mapping[Resource, Handler] = field(default_factory=dict)
    """Handlers that must see a change before any trigger of any controller: they track own writes."""
    others: Sequence[Subscribe] = ()
    """Other triggers."""


USERS_WRITE: Final = ("uid", "generation", "deletionTimestamp")
"""Fields of the metadata that differ after each change of a spec, and after a deletion: a status changes none."""


def own_key(old: Object | None, new: Object | None) -> Iterable[Key]:
    """Trigger of a controller's own kind: each event brings a pass over its object."""
    obj = new or old
    if obj is not None:
        yield key_of(obj)


def is_same(old: Object | None, new: Object | None, of_interest: Callable[[Object], object]) -> bool:
    """Whether an object was changed in nothing of interest; never of one that was created or deleted."""
    return old is not None and new is not None and of_interest(old) == of_interest(new)


def written_by_users(obj: Object, *more: str) -> tuple[Any, ...]:
    """What tells one spec from another: `USERS_WRITE`, and more fields of the metadata."""
    return tuple(obj["metadata"].get(field) for field in (*USERS_WRITE, *more))


class Named(Protocol):
    """What triggers use of the Slurm of a Cluster."""

    @property
    def namespace(self) -> str:
        """Namespace of the Cluster."""
        ...

    @property
    def name(self) -> str:
        """Name of the Cluster."""
        ...


class SlurmByUid(Protocol):
    """What triggers use of `slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> Named | None:
        """The Slurm of a Cluster."""
        ...


def cluster_of(slurm: SlurmByUid, cluster_uid: str) -> Iterable[Key]:
    """Trigger of a Cluster by its Slurm: its connection has changed, or one of its nodes."""
    client = slurm.get(cluster_uid)
    if client is not None:
        yield client.namespace, client.name


class EventSource(Protocol):
    """What is used of a cache."""

    def add_handler(self, handler: Handler) -> None:
        """Call a handler after each change."""
        ...


class SlurmEvents(Protocol):
    """What is used of the client map."""

    def subscribe(self, handler: Callable[[str, NodeEvent], None]) -> object:
        """Call a handler with the uid of the Cluster and each event of its nodes."""
        ...

    def subscribe_contact(self, handler: Callable[[str, Contact], None]) -> object:
        """Call a handler with the uid of the Cluster after each change of the connection."""
        ...


def observe(triggers: Triggers, caches: Mapping[Resource, EventSource]) -> None:
    """Register the handlers that must see changes first; for all controllers before `connect` for any."""
    for resource, handler in triggers.observers.items():
        caches[resource].add_handler(handler)


def connect(
    triggers: Triggers, queue: WorkQueue[Key], caches: Mapping[Resource, EventSource], slurm: SlurmEvents
) -> None:
    """Let events put keys on a controller's queue.

    Parameters
    ----------
    triggers
        The controller's. A kind without a cache (Nodes, if the operator may not watch them) is skipped.
    queue
        The controller's.
    caches
        By kind.
    slurm
        The Slurm of every Cluster.
    """
    for resource, trigger in triggers.objects.items():
        if resource in caches:
            caches[resource].add_handler(_handler(trigger, queue))

    def node(cluster_uid: str, event: NodeEvent) -> None:
        for key in triggers.node(cluster_uid, event):
            if triggers.node_delay:
                queue.add_after(key, triggers.node_delay)
            else:
                queue.add(key)

    def contact(cluster_uid: str, _: Contact) -> None:
        _add_all(queue, triggers.contact(cluster_uid))

    _ = slurm.subscribe(node)
    _ = slurm.subscribe_contact(contact)
    for subscribe in triggers.others:
        subscribe(queue.add)


def _handler(trigger: ObjectTrigger, queue: WorkQueue[Key]) -> Handler:
    def handler(old: Object | None, new: Object | None) -> None:
        _add_all(queue, trigger(old, new))

    return handler


def _add_all(queue: WorkQueue[Key], keys: Iterable[Key]) -> None:
    """Queue keys; of many, others have the event loop in between."""
    # What they are found in may have changed by the next turn.
    found = list(keys)
    _add_from(queue, found, 0)


def _add_from(queue: WorkQueue[Key], found: Sequence[Key], begin: int) -> None:
    end = begin + AT_ONCE
    for key in found[begin:end]:
        queue.add(key)
    if end < len(found):
        _ = asyncio.get_running_loop().call_soon(_add_from, queue, found, end)
