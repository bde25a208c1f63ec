"""Slurm as one command has seen it: what was read, and what could not be and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from slurm_client.models import Job, License, Node, Partition, Reservation
from slurm_client.models.database.accounts import Association
from slurm_client.models.database.qos import Qos


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPicture:
    """What slurmctld and slurmdbd said, at one moment.

    Attributes
    ----------
    associations, qos
        None where there is no accounting, or it could not be asked.
    """

    now: datetime
    jobs: tuple[Job, ...] = ()
    nodes: tuple[Node, ...] = ()
    partitions: tuple[Partition, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    licenses: tuple[License, ...] = ()
    associations: tuple[Association, ...] | None = None
    qos: tuple[Qos, ...] | None = None
    version: str = ""
