"""Which keys an event puts on a controller's queue: one shape for every controller.

A trigger says which objects an event is about, and gives their keys; it puts nothing on a queue itself. `connect` does
that, for caches, for the contact with each Cluster's Slurm and for the events of its nodes.
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
from slinky_operator.slurm.clients import Contact
from slurm_client.watch import NodeEvent

ObjectTrigger = Callable[[Object | None, Object | None], Iterable[Key]]
"""Given an object as it was and as it is (None: it was not, or is no more), gives keys."""

Subscribe = Callable[[Callable[[Key], None]], None]
"""Registers a function that is to be called with each key."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """All that wakes one controller."""

    objects: Mapping[Resource, ObjectTrigger]
    """By the kind of the cache."""
    contact: Callable[[str], Iterable[Key]]
    """Given the uid of a Cluster with whose Slurm the state of contact has changed."""
    node: Callable[[str, NodeEvent], Iterable[Key]]
    """Given the uid of a Cluster and what has changed of one of its nodes."""
    node_delay: float = 0.0
    """Seconds in which events of nodes are gathered before a pass."""
    observers: Mapping[Resource, Handler] = field(default_factory=dict)
    """Handlers that must see a change before any trigger of any controller: own writes that are waited for."""
    others: Sequence[Subscribe] = ()
    """What else wakes it."""


class EventSource(Protocol):
    """A cache, as far as it is listened to."""

    def add_handler(self, handler: Handler) -> None:
        """Call a handler after each change."""
        ...


class SlurmEvents(Protocol):
    """The client map, as far as it is listened to."""

    def subscribe(self, handler: Callable[[str, NodeEvent], None]) -> object:
        """Call a handler with the uid of the Cluster and each event of its nodes."""
        ...

    def subscribe_contact(self, handler: Callable[[str, Contact], None]) -> object:
        """Call a handler with the uid of the Cluster after each change of contact."""
        ...


def observe(triggers: Triggers, caches: Mapping[Resource, EventSource]) -> None:
    """Register what must see changes first; for all controllers before `connect` for any."""
    for resource, handler in triggers.observers.items():
        caches[resource].add_handler(handler)


def connect(
    triggers: Triggers, queue: WorkQueue[Key], caches: Mapping[Resource, EventSource], slurm: SlurmEvents
) -> None:
    """Let events put keys on a controller's queue.

    Parameters
    ----------
    triggers
        The controller's. A kind that no cache watches (Nodes, where the operator may not) is passed over.
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
