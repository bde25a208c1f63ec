"""What wakes the Cluster controller: handlers for informers, and listeners on the client map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from slinky_api import labels
from slinky_operator.cluster.execute.config_sources import ConfigMapWatcher
from slinky_operator.kube.informer import Handler
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.kube.store import Key, key_of
from slinky_operator.runtime.queue import WorkQueue
from slinky_operator.slurm.clients import ClientMap, Contact
from slurm_client.watch import NodeEvent

NODE_EVENT_DELAY: Final = 0.5
"""Seconds by which node events are gathered: they change counts and nothing else here."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """Which handler belongs to which informer or mirror."""

    clusters: Handler
    node_sets: Handler
    pods: Handler
    """For pods with the label `cluster.slinky.slurm.net/name`: slurmd's and the daemons'."""

    children: Handler
    """For StatefulSets, Deployments, Services, ConfigMaps and PodDisruptionBudgets of ours."""


def wire(  # noqa: C901 - one small handler after the other
    queue: WorkQueue[Key], clients: ClientMap, texts: ConfigMapWatcher
) -> Wiring:
    """Make the handlers that put Clusters on the queue, and listen to the client map and to the users' ConfigMaps.

    Which stores there must be, and with which indexes, is said by `observe.Caches`.
    """

    def contact(uid: str, _: Contact) -> None:
        client = clients.get(uid)
        if client is not None:
            queue.add((client.namespace, client.name))

    def node(uid: str, _: NodeEvent) -> None:
        client = clients.get(uid)
        if client is not None:
            queue.add_after((client.namespace, client.name), NODE_EVENT_DELAY)

    def cluster(old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is not None:
            queue.add(key_of(obj))

    def node_set(old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and _of_interest(old) == _of_interest(new):
            return
        for obj in (old, new):
            name = ((obj or {}).get("spec") or {}).get("clusterName")
            if obj is not None and isinstance(name, str):
                queue.add((key_of(obj)[0], name))

    def child(old: Object | None, new: Object | None) -> None:
        for obj in (old, new):
            name = _labels(obj).get(labels.LABEL_CLUSTER_NAME)
            if obj is not None and name:
                queue.add((key_of(obj)[0], name))

    def pod(old: Object | None, new: Object | None) -> None:
        # Of slurmd pods only the end matters: a deletion may wait for it.
        if new is None or labels.LABEL_CLUSTER_UID not in _labels(new):
            child(old, new)

    texts.subscribe(queue.add)
    clients.subscribe_contact(contact)
    clients.subscribe(node)
    return Wiring(cluster, node_set, pod, child)


def describe(key: Key) -> tuple[str, str | None, str]:
    """Kind, namespace and name of a key, for log lines."""
    return CLUSTERS.kind, key[0], key[1]


def _labels(obj: Object | None) -> dict[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _of_interest(obj: Object) -> tuple[Any, ...]:
    """What slurm.conf and the finalizers depend on: the status changes all the time."""
    metadata = obj["metadata"]
    return tuple(metadata.get(field) for field in ("uid", "generation", "deletionTimestamp", "finalizers"))
