"""What names nodes in a Slurm that runs: its reservations are asked for, long lists are read in a thread."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from slinky_operator.kube.cache.weight import run_in_thread
from slinky_operator.slurm.nodes import node_references
from slinky_operator.slurm.nodes.node_references import References
from slurm_client.models import Job, Reservation


class Client(Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    async def reservations(self) -> Iterable[Reservation]:
        """All reservations, later ones too."""
        ...


class Slurm(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    @property
    def namespace(self) -> str:
        """Of the Cluster."""
        ...

    @property
    def name(self) -> str:
        """Of the Cluster."""
        ...

    @property
    def client(self) -> Client:
        """Its client."""
        ...


async def references(slurm: Slurm, jobs: Iterable[Job], names: Collection[str]) -> References:
    """What names these nodes: jobs that are known, and reservations, which are queried now.

    Raises
    ------
    SlurmError
        Slurm did not answer, or refused.
    """
    reservations = tuple(await slurm.client.reservations())
    if not node_references.are_given(jobs, reservations):
        return {}
    return await run_in_thread(
        (slurm.namespace, "references", slurm.name), node_references.find, jobs, reservations, names
    )
