"""Which of the partitions that a node selector may stand for Slurm has: asked only where a label may stand for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.sylabs.clusters import Chosen
from slinky_operator.sylabs.snapshot import Unasked
from slinky_operator.sylabs.translation.node_selector import possible_partitions
from slurm_client.errors import SlurmError
from slurm_client.models import Partition

VALID_S: Final = 30.0
"""Seconds for which an answer holds: a namespace with many objects asks Slurm once."""

MANY: Final = 100
"""Clusters of which the last answer is kept."""


MOST_NAMES: Final = 1_000
"""Partitions of a Cluster that are kept, the first by name."""

LONGEST_NAME: Final = 253
"""Characters of the name of a partition that is kept."""


class Client(Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    async def partitions(self) -> Iterable[Partition]:
        """All partitions."""
        ...


class Slurm(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    @property
    def client(self) -> Client:
        """Its client."""
        ...

    contact: Contact


class Clients(Protocol):
    """What is used of `slurm.connection.clients.ClientMap`."""

    def find(self, namespace: str, name: str) -> Slurm | None:
        """The client of a Cluster, or `None` if there is nothing to connect with yet."""
        ...


class PartitionReader:
    """Asks Clusters for their partitions.

    Parameters
    ----------
    slurm
        Clients of Clusters.
    clock
        Monotonic seconds.
    """

    def __init__(self, slurm: Clients, clock: Callable[[], float]) -> None:
        self._slurm = slurm
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[float, frozenset[str]]] = {}

    async def ask(self, chosen: Chosen, selector: Mapping[str, str]) -> Chosen | Unasked:
        """Add the partitions that labels stand for to what is known of a site."""
        possible = possible_partitions(selector, chosen.site.labels)
        if not possible:
            return chosen
        known = self._known.get((chosen.namespace, chosen.name))
        if known is None or self._clock() - known[0] > VALID_S:
            slurm = self._slurm.find(chosen.namespace, chosen.name)
            if slurm is None or slurm.contact.state is not ContactState.READY:
                return _unasked(chosen, "" if slurm is None else slurm.contact.why)
            try:
                found = kept_names(await slurm.client.partitions())
            except SlurmError as error:
                return _unasked(chosen, str(error))
            known = self._clock(), found
            if len(self._known) >= MANY:
                self._known.clear()
            self._known[chosen.namespace, chosen.name] = known
        return replace(chosen, site=replace(chosen.site, partitions=possible & known[1]))


def kept_names(partitions: Iterable[Partition]) -> frozenset[str]:
    """Names of partitions that a label may stand for, as many as are kept of one Cluster."""
    names = {one.name for one in partitions if len(one.name) <= LONGEST_NAME}
    return frozenset(sorted(names)[:MOST_NAMES])


def _unasked(chosen: Chosen, why: str) -> Unasked:
    words = (
        f"spec.nodeSelector may name a partition, and Slurm of Cluster {chosen.namespace}/{chosen.name} "
        "cannot list its partitions yet"
    )
    return Unasked(f"{words}: {why}" if why else words)
