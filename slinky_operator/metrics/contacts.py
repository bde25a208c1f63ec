"""The client map and the caches of the API server, as they are when somebody scrapes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.resources import Resource
from slinky_operator.metrics.names import MOST_OBJECTS, PREFIX
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slinky_operator.slurm.connection.contact import ContactState
from slurm_client.models import Node

_CLUSTER: Final = ["namespace", "cluster"]


class Contacts(Collector):
    """Samples of the connection with each Cluster's Slurm.

    Parameters
    ----------
    clients
        The client map.
    clock
        Monotonic seconds.
    """

    def __init__(
        self, clients: ClientMap, *, clock: Callable[[], float] = time.monotonic, most: int = MOST_OBJECTS
    ) -> None:
        self._clients = clients
        self._clock = clock
        self._most = most

    def describe(self) -> Iterable[Metric]:
        """Families without samples: the registry asks for their names."""
        return self._families(())

    @override
    def collect(self) -> Iterator[Metric]:
        return self._families(tuple(islice(self._clients.entries(), self._most)))

    def _families(self, entries: Sequence[ClusterClient]) -> Iterator[Metric]:
        connected = GaugeMetricFamily(
            f"{PREFIX}_slurm_connected",
            "1 if the Cluster's Slurm answers; the label has the kind of trouble if it does not.",
            labels=[*_CLUSTER, "trouble"],
        )
        since = GaugeMetricFamily(
            f"{PREFIX}_slurm_contact_since_timestamp_seconds",
            "When the Cluster's Slurm began to answer, or ceased to, as Unix time.",
            labels=_CLUSTER,
        )
        age = GaugeMetricFamily(
            f"{PREFIX}_slurm_nodes_age_seconds",
            "Seconds since Slurm confirmed the nodes that the operator knows.",
            labels=_CLUSTER,
        )
        queue_age = GaugeMetricFamily(
            f"{PREFIX}_autoscaling_queue_age_seconds",
            "Seconds since autoscaling last read the jobs of a Cluster; no sample if it scales none of its NodeSets.",
            labels=_CLUSTER,
        )
        nodes = GaugeMetricFamily(f"{PREFIX}_slurm_nodes", "Slurm nodes that the operator knows.", labels=_CLUSTER)
        external = GaugeMetricFamily(
            f"{PREFIX}_bridge_nodes",
            "Slurm nodes without a slurmd, on which Slurm places pods, by state: idle, busy, drained or out.",
            labels=[*_CLUSTER, "state"],
        )
        free = GaugeMetricFamily(
            f"{PREFIX}_volume_free_ratio",
            "What a volume of a daemon, or the fullest with job output of a NodeSet, has left, from 0 to 1.",
            labels=[*_CLUSTER, "volume", "of"],
        )
        now = self._clock()
        for entry in entries:
            where = [entry.namespace, entry.name]
            contact = entry.contact
            connected.add_metric([*where, contact.trouble.value], float(contact.state is ContactState.READY))
            since.add_metric(where, contact.since.timestamp())
            nodes.add_metric(where, len(entry.nodes))
            for state, count in sorted(Counter(_state(one) for one in entry.nodes.values() if one.is_external).items()):
                external.add_metric([*where, state], count)
            if entry.nodes_at is not None:
                age.add_metric(where, now - entry.nodes_at)
            if entry.queue_at is not None:
                queue_age.add_metric(where, now - entry.queue_at)
            outputs = {f"job-output of {nodeset}": shares for nodeset, shares in entry.outputs.items()}
            for volume, (of_bytes, of_inodes) in {**entry.volumes, **outputs}.items():
                free.add_metric([*where, volume, "bytes"], of_bytes)
                free.add_metric([*where, volume, "inodes"], of_inodes)
        yield from (connected, since, age, nodes, external, queue_age, free)


def _state(node: Node) -> str:
    """The state of a node without a slurmd: a drained one may have jobs, one that is out takes none."""
    if node.is_drain:
        return "drained"
    if not node.is_usable:
        return "out"
    return "busy" if node.is_busy else "idle"


class Watches(Collector):
    """Samples of the caches of the API server.

    Parameters
    ----------
    caches
        By resource.
    clock
        Monotonic seconds.
    """

    def __init__(
        self, caches: Mapping[Resource, Mirror | Informer], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._caches = caches
        self._clock = clock

    def describe(self) -> Iterable[Metric]:
        """Families without samples: the registry asks for their names."""
        return self.collect()

    @override
    def collect(self) -> Iterator[Metric]:
        objects = GaugeMetricFamily(f"{PREFIX}_cache_objects", "Objects in a cache.", labels=["resource"])
        lists = CounterMetricFamily(
            f"{PREFIX}_cache_lists", "Lists taken to fill a cache or to compare it.", labels=["resource"]
        )
        silence = GaugeMetricFamily(
            f"{PREFIX}_watch_silence_seconds",
            "Seconds since a watch last heard from the API server, which sends a bookmark at least each minute.",
            labels=["resource"],
        )
        now = self._clock()
        for resource, cache in self._caches.items():
            label = [str(resource)]
            objects.add_metric(label, len(cache.store))
            lists.add_metric(label, cache.relists)
            if isinstance(cache, Informer) and cache.heard_at is not None:
                silence.add_metric(label, now - cache.heard_at)
        yield from (objects, lists, silence)
