"""What is remembered of a SlurmJob between passes: when something was last tried; all that matters is in the status."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from slinky_operator.slurmjob.model.steps import Order


@dataclass(frozen=True, slots=True)
class Lacking:
    """Volumes that a job cannot be submitted without.

    Parameters
    ----------
    names
        Which do not exist, and where.
    until
        When they are looked for again.
    looks
        How often they were looked for.
    """

    names: str
    until: datetime
    looks: int


@dataclass(slots=True)
class Memory:
    """What is remembered of one SlurmJob."""

    ready_since: datetime | None = None
    """From when on the job could have been submitted, for metrics."""
    refusals: int = 0
    refused_until: datetime | None = None
    refused_generation: int | None = None
    """Of the object when its job was refused: one that was changed since is submitted at once."""
    lacking: Lacking | None = None
    order: Order | None = None
    cancelled: int | None = None
    """Number of the last job whose cancellation was reported."""
    second_orders: dict[int, Order] = field(default_factory=dict)
    """The last cancellation of each second job, by its number."""
    missing_since: datetime | None = None
    """Since when slurmctld does not list the job, or tasks of it, and slurmdbd answers."""
    history_away_since: datetime | None = None
    cluster_gone_since: datetime | None = None
    allocation_again: datetime | None = None
    """When slurmctld is asked once more what a job without a script was given."""
    record_since: datetime | None = None
    """Since when Slurm's accounting is to be told how the work of such a job has ended."""
    record_again: datetime | None = None
    record_tries: int = 0
    """How often it was told in vain."""
    warned: set[str] = field(default_factory=set)
    """Slurm's words for why the job waits of which there were Events."""
