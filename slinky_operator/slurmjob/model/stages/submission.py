"""Submissions that are still to be made, the first and those after a failure: what forbids them. Pure.

The user's own faults are said first. The finalizer is set before Slurm is asked, so that no object goes while Slurm has
a job of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_operator.jobs import tenants
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.slurmjob.model import dependencies
from slinky_operator.slurmjob.model.job_files import needs_preparation
from slinky_operator.slurmjob.model.news import Note
from slinky_operator.slurmjob.model.snapshot import Snapshot
from slinky_operator.slurmjob.model.stages import cancellation, obstacles
from slinky_operator.slurmjob.model.stages.obstacles import OBSTACLE_S
from slinky_operator.slurmjob.model.steps import AddFinalizer, DryRun, Plan, Prepare, Request, Submit

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
        reason = Reason.JOBS_NOT_ALLOWED if is_refused else Reason.INVALID_SPEC
        return Plan(news=Note(reason, str(snapshot.submission)))
    if snapshot.cluster is not None and isinstance(snapshot.granted, tenants.Refused):
        # Labels of namespaces are read, not watched: what they grant may have changed.
        return Plan(news=Note(Reason.JOBS_NOT_ALLOWED, snapshot.granted.message), wake=LABELS_S)
    if job.spec.suspend:
        return Plan(news=Note(Reason.SUSPENDED, "spec.suspend is true: the job is submitted once it is false"))
    if isinstance(snapshot.dependency, dependencies.Wait):
        return Plan(news=Note(snapshot.dependency.reason, snapshot.dependency.message))
    obstacle = obstacles.of(snapshot)
    if obstacle is not None:
        return Plan(news=obstacle, wake=OBSTACLE_S)
    return submit(snapshot, 0)


def submit(snapshot: Snapshot, attempt: int, *, failed: int | None = None, again: bool = False) -> Plan:
    """Submit the job, or say why not."""
    if again:
        # What it waited for before it started has come about.
        snapshot = replace(snapshot, dependency=dependencies.NOTHING)
    if cancellation.is_asked(snapshot.job):
        return cancellation.not_submitted(snapshot.job)
    request = _request(snapshot)
    if isinstance(request, Plan):
        return request
    if snapshot.job.spec.dry_run:
        return Plan(DryRun(request))
    if not has_finalizer(snapshot):
        return Plan(AddFinalizer())
    if needs_preparation(snapshot.job):
        return Plan(Prepare(request))
    return Plan(Submit(request, attempt, failed, again))


def _request(snapshot: Snapshot) -> Request | Plan:
    """What is submitted, or what is done instead. Only what could be once is submitted again: all may have changed."""
    pause = _pause(snapshot)
    if pause is not None:
        return pause
    if snapshot.submission is None or isinstance(snapshot.submission, InvalidJob):
        words = str(snapshot.submission or "the spec has no job to submit again")
        return Plan(news=Note(Reason.INVALID_SPEC, words))
    if isinstance(snapshot.granted, tenants.Refused):
        return Plan(news=Note(Reason.JOBS_NOT_ALLOWED, snapshot.granted.message), wake=LABELS_S)
    if isinstance(snapshot.dependency, dependencies.Wait):
        return Plan(news=Note(snapshot.dependency.reason, snapshot.dependency.message))
    if snapshot.cluster is None:
        return Plan(news=obstacles.no_cluster(snapshot), wake=OBSTACLE_S)
    return Request(snapshot.cluster, snapshot.granted, snapshot.submission, snapshot.dependency)


def _pause(snapshot: Snapshot) -> Plan | None:
    """What is done while the user wants no submission, or Slurm has refused one a moment ago."""
    if snapshot.job.spec.suspend:
        words = "spec.suspend is true: the job is submitted again once it is false"
        return Plan(news=Note(Reason.SUSPENDED, words))
    if snapshot.refused_until is not None and snapshot.now < snapshot.refused_until:
        return Plan(wake=(snapshot.refused_until - snapshot.now).total_seconds())
    return None
