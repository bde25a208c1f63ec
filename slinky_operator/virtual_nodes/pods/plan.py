"""The next step for a pod on a virtual Node, and what it shows meanwhile. Pure.

The order of writes is what keeps a job from being submitted twice, or cancelled by nobody's order, wherever the process
ends: the pod names its SlurmJob and gets the finalizer; the SlurmJob is made, owned by the pod; it goes, or is left
without the pod; what is known of its end is shown; the finalizer is removed, and the pod goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_operator.jobs import tenants
from slinky_operator.jobs import translation as submissions
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import moment
from slinky_operator.reconcile.writes.parts import controller_of
from slinky_operator.virtual_nodes.pod_jobs import job_name
from slinky_operator.virtual_nodes.pods import deletion, pod_owners, projection, slurmjobs
from slinky_operator.virtual_nodes.pods.projection import ENDED, Frame
from slinky_operator.virtual_nodes.pods.snapshot import Away, Place, PodJob, Snapshot

AGAIN_S: Final = 30.0
"""Seconds until the next look for what no event tells of."""

SOON_S: Final = 1.0
"""Seconds until the next look for a pod that must go first."""

QUICK_S: Final = 3.0
"""Seconds for which a job that waits is not shown: most that start at once are never shown as queued."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """Name the SlurmJob in the pod, and set the finalizer."""

    name: str


@dataclass(frozen=True, slots=True)
class Create:
    """Make the SlurmJob."""

    body: Object


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Take over a SlurmJob that an outage has left."""

    job: Object


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the SlurmJob without the pod: nobody has ordered its end."""

    job: Object
    why: str


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete the SlurmJob, which cancels the job and waits for its end."""

    job: Object


@dataclass(frozen=True, slots=True)
class Release:
    """Remove the finalizer, and let a pod go that is to go."""


Step = Reserve | Create | TakeOver | Leave | DeleteJob | Release


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done, and shown.

    Parameters
    ----------
    step
        What is done; None for nothing.
    status
        The status of the pod, written first; None to leave it.
    wake
        Seconds until the next look; None to wait for an event.
    warning
        Reason and message of an Event.
    """

    step: Step | None = None
    status: Object | None = None
    wake: float | None = None
    warning: tuple[str, str] | None = None


def needs_place(snapshot: Snapshot) -> bool:
    """Whether a job is to be made for the pod."""
    is_new = snapshot.job is None or not snapshot.job.is_owned
    return not snapshot.shows and is_new and not deletion.is_deleting(snapshot.pod) and snapshot.phase not in ENDED


def plan(snapshot: Snapshot) -> Plan:
    """Decide on the next step."""
    if snapshot.shows:
        return _showing(snapshot)
    if deletion.is_deleting(snapshot.pod):
        return _deleting(snapshot)
    job = snapshot.job
    if snapshot.phase in ENDED:
        return _ended(snapshot)
    if job is not None and job.is_owned:
        return _with_job(snapshot, job)
    if job is None and snapshot.has_finalizer and (snapshot.is_made or _has_shown(snapshot.pod)):
        words = f"SlurmJob {snapshot.named_job} was deleted, and its job with it; create another pod to run it again"
        return Plan(status=projection.over(_frame(snapshot), "SlurmJobDeleted", words))
    return _new(snapshot)


def _showing(snapshot: Snapshot) -> Plan:
    """Show the SlurmJob that the pod belongs to: whatever becomes of the pod, nothing becomes of the job."""
    job = snapshot.job
    if deletion.is_deleting(snapshot.pod):
        return Plan(Release())
    if snapshot.phase in ENDED:
        return Plan()
    if job is not None:
        return Plan(status=projection.of_job(_frame(snapshot), job.status))
    if controller_of(snapshot.pod).get("name") == snapshot.shows:
        # The cache is behind, or the SlurmJob has gone, and the pod goes with it.
        return Plan(wake=AGAIN_S)
    words = (
        f"metadata.annotations[{labels.ANNOTATION_VIRTUAL_POD_SHOWS}]: SlurmJob {snapshot.shows[:253]} does not own "
        "this pod: leave the annotation out"
    )
    return _refused(snapshot, EventReason.UNSUPPORTED_POD_SPEC, words)


def _ended(snapshot: Snapshot) -> Plan:
    """Let go of a pod that has ended; of one that Kubernetes itself has failed, its Node being gone, leave the job."""
    job = snapshot.job
    if not snapshot.has_finalizer:
        return Plan()
    if job is None or not job.is_owned:
        return Plan(Release())
    why = deletion.outage(snapshot.pod, is_preemption_meant=snapshot.is_preemption_meant)
    if why and not projection.shows_end(snapshot.pod):
        # It may never be deleted, and the next pod of the controller waits for the job.
        return Plan(wake=AGAIN_S) if job.is_deleting else Plan(Leave(job.obj, why))
    return Plan(Release()) if projection.is_finished(job.status) else Plan()


def _with_job(snapshot: Snapshot, job: PodJob) -> Plan:
    if not snapshot.has_finalizer:
        # Somebody has removed it.
        return Plan(Reserve(job.obj["metadata"]["name"]))
    status = projection.of_job(_frame(snapshot), job.status)
    waits_shortly = not _has_shown(snapshot.pod) and job.status.state in {"", "Waiting", "Pending"}
    if waits_shortly:
        created = job.obj["metadata"].get("creationTimestamp")
        age = (snapshot.now - _moment(created, snapshot)).total_seconds()
        is_expected = job.status.reason in {"", "Queued", "Starting", str(Reason.SUBMITTING), str(Reason.SUBMITTED)}
        if is_expected and 0 <= age < QUICK_S:
            return Plan(wake=QUICK_S - age)
    return Plan(status=status)


def _new(snapshot: Snapshot) -> Plan:
    """Make a job for the pod, take one over, or refuse the pod."""
    where = snapshot.place
    if where is None:
        return Plan(wake=AGAIN_S)
    if isinstance(where, Away):
        return Plan(status=_waiting(snapshot, where.reason, where.message), wake=AGAIN_S)
    if snapshot.left_job is not None:
        name = snapshot.left_job["metadata"]["name"]
        return Plan(TakeOver(snapshot.left_job) if _names(snapshot, name) else Reserve(name))
    if snapshot.is_predecessor_ending:
        return Plan(wake=SOON_S)
    try:
        body = _body(snapshot, where)
    except InvalidJob as error:
        is_refused = isinstance(error, tenants.NotGranted)
        return _refused(
            snapshot, str(Reason.JOBS_NOT_ALLOWED if is_refused else EventReason.UNSUPPORTED_POD_SPEC), str(error)
        )
    name = body["metadata"]["name"]
    return Plan(Create(body) if _names(snapshot, name) else Reserve(name))


def _names(snapshot: Snapshot, name: str) -> bool:
    """Whether the pod names a SlurmJob, and has the finalizer: only then it is made, or taken over."""
    return snapshot.has_finalizer and snapshot.named_job == name


def _body(snapshot: Snapshot, where: Place) -> Object:
    """The SlurmJob of the pod.

    Raises
    ------
    InvalidJob
        With the path in the pod.
    """
    if isinstance(where.granted, tenants.Refused):
        raise tenants.NotGranted("metadata.namespace", where.granted.message)
    translation = where.translation
    if isinstance(translation, InvalidJob):
        raise translation
    spec, name = translation.spec, job_name(snapshot.pod["metadata"]["uid"])
    try:
        submission = submissions.translate(spec, name=name, user=where.granted.user, now=snapshot.now)
        _ = tenants.restrict(submission.job, where.granted)
    except InvalidJob as error:
        told = translation.refused(error.problem)
        raise type(error)(told.field, told.reason) from None
    if submission.array is not None:
        raise InvalidJob("spec", "a pod is one job: remove --array from the script, and use an Indexed Job")
    return slurmjobs.made_for(snapshot.pod, where, dict(translation.fields), translation.user)


def _refused(snapshot: Snapshot, reason: str, message: str) -> Plan:
    warning = (str(reason), message)
    if pod_owners.may_fail(snapshot.pod):
        status = projection.refused(_frame(snapshot), str(reason), message)
        return Plan(Release() if snapshot.has_finalizer else None, status, warning=warning)
    return Plan(status=_waiting(snapshot, str(reason), message), wake=AGAIN_S, warning=warning)


def _waiting(snapshot: Snapshot, reason: str, message: str) -> Object:
    return projection.waits(_frame(snapshot), reason, message)


def _deleting(snapshot: Snapshot) -> Plan:
    """The pod goes: its job is cancelled first, or left if nobody has ordered that."""
    pod, job = snapshot.pod, snapshot.job
    if job is None:
        return Plan(Release(), _unless_ended(snapshot, _cancelled(snapshot)))
    if not job.is_owned:
        message = f"the pod was deleted, which nobody had ordered; its job runs on as SlurmJob {snapshot.named_job}"
        return Plan(Release(), _unless_ended(snapshot, projection.left(_frame(snapshot), message)))
    why = deletion.outage(pod, is_preemption_meant=snapshot.is_preemption_meant)
    # The next pod of the controller may be there: it must find the end that this one has not shown, or it runs again.
    if projection.is_finished(job.status) and (not why or projection.shows_end(pod)):
        status = projection.of_job(_frame(snapshot), job.status)
        return Plan(Release(), _unless_ended(snapshot, status))
    if job.is_deleting:
        return Plan(wake=AGAIN_S)
    if not why:
        return Plan(DeleteJob(job.obj))
    return Plan(Leave(job.obj, why))


def _cancelled(snapshot: Snapshot) -> Object:
    words = "the pod was deleted, and its job with it"
    return projection.over(_frame(snapshot), "Cancelled", words)


def _unless_ended(snapshot: Snapshot, status: Object) -> Object | None:
    return None if snapshot.phase in ENDED else status


def _has_shown(pod: Object) -> bool:
    """Whether the pod has shown a job: that it waits for one is no sign of it."""
    containers = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return bool(containers[0].get("containerID"))


def _frame(snapshot: Snapshot) -> Frame:
    return Frame(snapshot.pod, snapshot.now, snapshot.address, snapshot.is_node_ready)


def _moment(text: object, snapshot: Snapshot) -> datetime:
    return moment(text) or snapshot.now
