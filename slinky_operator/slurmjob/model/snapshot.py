"""What a pass over a SlurmJob knows, read once and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.slurmjob.kind import JobAllocation, JobLogStatus, SlurmJob
from slinky_operator.jobs import tenants
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.translation import Submission
from slinky_operator.slurmjob.model import dependencies
from slinky_operator.slurmjob.model.slurm_records.records import Seen
from slinky_operator.slurmjob.model.steps import Order
from slurm_client.models import Job


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why nothing can be done now."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Looked:
    """What slurmctld's list of jobs has shown."""

    at: datetime
    """When it was asked for."""
    seen: Seen | None
    """The job with this object's mark and user; None if there is none."""
    records: tuple[Job, ...] = ()
    """What that was made of."""
    claimed: int | None = None
    """Number of a job with mark and user, which another SlurmJob has as its own."""


@dataclass(frozen=True, slots=True)
class History:
    """What slurmdbd has said."""

    seen: Seen | None = None
    candidates: tuple[int, ...] = ()
    """Numbers of jobs that may be that of a submission whose answer is not known."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the plan reads."""

    job: SlurmJob
    now: datetime
    cluster: Cluster | None
    """None if there is none, or it cannot be read."""
    granted: tenants.Grant | tenants.Refused
    obstacle: Obstacle | None
    """Why its Slurm cannot be asked; None if there is no Cluster at all."""
    looked: Looked | None
    """None while the list of jobs is not known."""
    keeps_history: bool = False
    """Whether there is a slurmdbd to ask."""
    history: History | None = None
    """None if it was not asked."""
    submission: Submission | InvalidJob | None = None
    """What would be submitted; None where nothing is to be."""
    logs: JobLogStatus | None = None
    """What was decided about its output; None without `spec.logs`."""
    dependency: dependencies.Ready | dependencies.Wait = dependencies.NOTHING
    refused_until: datetime | None = None
    """Slurm has refused it: not tried again before."""
    order: Order | None = None
    """The last hold, release or cancellation that Slurm was asked for."""
    second_jobs: tuple[Seen, ...] = ()
    """Jobs that calls without an answer have led to besides the one that counts, and that have not ended."""
    listed_at: datetime | None = None
    """When the list of jobs was asked for in which they were looked for; None if they were not."""
    second_orders: Mapping[int, Order] = field(default_factory=dict)
    """The last cancellation of each of them, by its number."""
    cluster_gone_since: datetime | None = None
    """Since when the operator has seen that there is no Cluster."""
    allocation: tuple[JobAllocation, ...] | None = None
    """What a job without a script was given; None if slurmctld was not asked, or has not said it."""
    allocation_again: datetime | None = None
    """slurmctld has not said it: not asked again before."""
    record_since: datetime | None = None
    """Since when Slurm's accounting is to be told how the work of such a job has ended."""
    record_again: datetime | None = None
    """It could not be told: not tried again before."""
    missing_since: datetime | None = None
    """Since when slurmctld does not list the job, or tasks of it, any more, and slurmdbd answers."""
