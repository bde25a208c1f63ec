"""Submissions that are still to be made, the first and those after a failure: what forbids them. Pure.

The user's own faults are said first. The finalizer is set before Slurm is asked, so that no object goes while Slurm has
a job of it.
"""

from __future__ import annotations

from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_operator.jobs import tenants
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.slurmjob.files.facts import needs_preparation
from slinky_operator.slurmjob.model import cancellation, dependencies
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import obstacles
from slinky_operator.slurmjob.model.stages.obstacles import OBSTACLE_S
from slinky_operator.slurmjob.model.steps import Plan, Step

LABELS_S: Final = 60.0
"""Seconds until it is looked again whether a namespace is granted a user now."""


def has_finalizer(snapshot: Snapshot) -> bool:
    """Whether the object is kept from going until its job is dealt with."""
    return labels.FINALIZER_SLURMJOB in snapshot.job.metadata.finalizers


def before(snapshot: Snapshot) -> Plan:
    """Nothing has been submitted: everything that forbids it is said, the user's own faults first."""
    job = snapshot.job
    if isinstance(snapshot.submission, InvalidJob):
        is_refused = isinstance(snapshot.submission, tenants.NotGranted)
        return Plan(why=(Reason.JOBS_NOT_ALLOWED if is_refused else Reason.INVALID_SPEC, str(snapshot.submission)))
    if snapshot.cluster is not None and isinstance(snapshot.granted, tenants.Refused):
        # Labels of namespaces are read, not watched: what they grant may have changed.
        return Plan(wake=LABELS_S, why=(Reason.JOBS_NOT_ALLOWED, snapshot.granted.message))
    if job.spec.suspend:
        return Plan(why=(Reason.SUSPENDED, "spec.suspend is set: the job is submitted when it is no longer"))
    if isinstance(snapshot.dependency, dependencies.Wait):
        return Plan(why=(snapshot.dependency.reason, snapshot.dependency.message))
    obstacle = obstacles.of(snapshot)
    if obstacle is not None:
        return Plan(wake=OBSTACLE_S, why=obstacle)
    return submit(snapshot, 0)


def submit(snapshot: Snapshot, attempt: int, *, failed: int | None = None) -> Plan:
    """Submit the job, or say why not."""
    if cancellation.is_asked(snapshot.job):
        return cancellation.not_submitted(snapshot.job)
    forbidden = _forbidden(snapshot)
    if forbidden is not None:
        return forbidden
    if snapshot.job.spec.dry_run:
        return Plan(Step.DRY_RUN)
    if not has_finalizer(snapshot):
        return Plan(Step.ADD_FINALIZER)
    if needs_preparation(snapshot.job):
        return Plan(Step.PREPARE)
    return Plan(Step.SUBMIT, attempt=attempt, failed=failed)


def _forbidden(snapshot: Snapshot) -> Plan | None:
    """Why nothing is submitted now. Only what could be once is submitted again: all may have changed since."""
    if snapshot.job.spec.suspend:
        return Plan(why=(Reason.SUSPENDED, "spec.suspend is set: the job is submitted again when it is no longer"))
    if snapshot.refused_until is not None and snapshot.now < snapshot.refused_until:
        return Plan(wake=(snapshot.refused_until - snapshot.now).total_seconds())
    if snapshot.submission is None or isinstance(snapshot.submission, InvalidJob):
        words = str(snapshot.submission or "it cannot be submitted again as it is")
        return Plan(why=(Reason.INVALID_SPEC, words))
    if isinstance(snapshot.granted, tenants.Refused):
        return Plan(wake=LABELS_S, why=(Reason.JOBS_NOT_ALLOWED, snapshot.granted.message))
    if isinstance(snapshot.dependency, dependencies.Wait):
        return Plan(why=(snapshot.dependency.reason, snapshot.dependency.message))
    return None
