"""The parts of a Cluster's Slurm that this controller uses; those of the API server are in `kube.ports`."""

# ruff: noqa: D102 - each is documented where it is implemented

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from slinky_operator.slurm.connection.contact import Contact
from slinky_operator.slurm.connection.slurmd_status import SlurmdStatus
from slinky_operator.slurm.connection.volume_query import Looker
from slinky_operator.slurm.pods.volume_room import Volumes
from slurm_client.models import Diag, Job, Node, Reservation
from slurm_client.models.database.history import JobRecord


class DatabaseCalls(Protocol):
    """The calls of the client's `db` that are used here."""

    async def job_records(self, job_id: int) -> Iterable[JobRecord]: ...


class SlurmCalls(Protocol):
    """The calls of `slurm_client.SlurmClient` that are used here."""

    async def diag(self) -> Diag: ...

    async def nodes(self) -> Iterable[Node]: ...

    async def reservations(self) -> Iterable[Reservation]: ...

    async def drain_nodes(self, names: Iterable[str], reason: str) -> None: ...

    async def undrain_nodes(self, names: Iterable[str]) -> None: ...

    async def update_nodes(
        self,
        names: Iterable[str],
        *,
        state: str | None = None,
        reason: str | None = None,
        extra: str | None = None,
        features: Sequence[str] | None = None,
        active_features: Sequence[str] | None = None,
        topology: str | None = None,
    ) -> None: ...

    async def delete_nodes(self, names: Iterable[str], *, are_nodes: bool = False) -> None: ...

    @property
    def db(self) -> DatabaseCalls: ...

    async def job(self, job_id: int, *, details: bool = True) -> Job: ...

    async def cancel_job(self, job: Job) -> None: ...

    async def requeue_job(self, job: Job) -> None: ...


class Slurm(Protocol):
    """One Cluster's Slurm: `slinky_operator.slurm.connection.cluster_client.ClusterClient`."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def client(self) -> SlurmCalls: ...

    @property
    def contact(self) -> Contact: ...

    @property
    def nodes(self) -> Mapping[str, Node]: ...

    @property
    def nodes_at(self) -> float | None: ...

    async def shared_jobs(self, since: float = ...) -> Iterable[Job]: ...

    async def fresh_jobs(self) -> Iterable[Job]: ...

    async def jobs_with_nodes(self) -> Iterable[Job]: ...

    async def refresh(self, names: Iterable[str]) -> Mapping[str, Node | None]: ...

    async def steps_at(self, address: str) -> SlurmdStatus: ...

    def hurry(self, *, whole: bool = False) -> None: ...

    def show_output(self, nodeset: str, shares: tuple[float, float] | None) -> None: ...


AskVolumes = Callable[[Looker], Awaitable[Volumes]]
"""Asks a job log server how much room its volume has: `slinky_operator.slurm.connection.volume_query.ask_volumes`."""


class SlurmByCluster(Protocol):
    """`slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> Slurm | None: ...
