"""Everything the exporter knows at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from slurm_client.models import Job, License, Node, Partition, Reservation
from slurm_client.models.database.service import DatabasePing
from slurm_client.models.resources import Share
from slurm_client.models.service import Diag, Ping
from slurm_exporter.sources.health import Health


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Data of Slurm and how old it is.

    A list that was never answered, or is too old to be shown, is `None`: no data is not an empty cluster.

    Parameters
    ----------
    now
        Wall-clock time in UTC, for ages of jobs.
    release, data_parser
        Of slurmrestd; empty before the first answer.
    health
        Of each source.
    """

    now: datetime
    release: str = ""
    data_parser: str = ""
    nodes: Mapping[str, Node] | None = None
    jobs: Mapping[str, Job] | None = None
    partitions: Mapping[str, Partition] | None = None
    reservations: Mapping[str, Reservation] | None = None
    licenses: Mapping[str, License] | None = None
    diag: Diag | None = None
    shares: tuple[Share, ...] | None = None
    pings: tuple[Ping, ...] | None = None
    database_pings: tuple[DatabasePing, ...] | None = None
    health: tuple[Health, ...] = field(default=())
