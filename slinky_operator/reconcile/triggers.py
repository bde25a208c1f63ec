"""Which keys an event puts on a controller's queue: one shape for every controller.

A trigger returns the keys of the objects that an event is about; it puts nothing on a queue itself. `connect` does
that, for caches, for the connection to each Cluster's Slurm and for the events of its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from slinky_operator.kube.cache.informer import Handler
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.runtime.queue import WorkQueue
from slinky_operator.slurm.connection.contact import Contact
from slurm_client.watch import NodeEvent

ObjectTrigger = Callable[[Object | None, Object | None], Iterable[Key]]
"""Given the old and the new object (None: created or deleted), returns keys."""

Subscribe = Callable[[Callable[[Key], None]], None]
"""Registers a function that is called with each key."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """Everything that triggers one controller."""

    objects: Mapping[Resource, ObjectTrigger]
    """By the kind of the cache."""
    contact: Callable[[str], Iterable[Key]]
    """Given the uid of a Cluster whose connection to Slurm has changed."""
    node: Callable[[str, NodeEvent], Iterable[Key]]
    """Given the uid of a Cluster and the change of one of its nodes."""
    node_delay: float = 0.0
    """Seconds for which events of nodes are batched before a pass."""
    observers: Mapping[Resource, Handler] = field(default_factory=dict)
    """Handlers that must see a change before any trigger of any controller: they track own writes."""
    others: Sequence[Subscribe] = ()
    """Other triggers."""


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
        for key in triggers.contact(cluster_uid):
            queue.add(key)

    _ = slurm.subscribe(node)
    _ = slurm.subscribe_contact(contact)
    for subscribe in triggers.others:
        subscribe(queue.add)


def _handler(trigger: ObjectTrigger, queue: WorkQueue[Key]) -> Handler:
    def handler(old: Object | None, new: Object | None) -> None:
        for key in trigger(old, new):
            queue.add(key)

    return handler
