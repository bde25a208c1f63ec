"""The next steps for a group of pods, and what its pods show meanwhile. Pure.

A group has one SlurmJob at a time, whose name follows from the group: made twice, it is one. Pods are placed while it
runs, each by one patch that a change of the pod in between makes fail; what stands in placed pods wins over what would
be decided now. So an operator that ends between two writes goes on where it was.

What has been placed is evicted only when Slurm has ended the job, or somebody has deleted the SlurmJob, for certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from slinky_operator.bridge.pods.model import slurmjobs
from slinky_operator.bridge.pods.model.devices import taken_back
from slinky_operator.bridge.pods.model.ending import end_if_over, not_owned
from slinky_operator.bridge.pods.model.lift import other_deadline, waits_for
from slinky_operator.bridge.pods.model.next_job import make_next
from slinky_operator.bridge.pods.model.placing import place
from slinky_operator.bridge.pods.model.snapshot import GroupJob, Snapshot
from slinky_operator.bridge.pods.model.steps import (
    AGAIN_S,
    ASK_S,
    QUICK_S,
    Announce,
    DeleteJob,
    Draft,
    Evict,
    Plan,
    Tell,
    cut_short,
)
from slinky_operator.jobs.phases import Phase, Reason
from slinky_operator.reconcile.text import moment


def needs_owner(snapshot: Snapshot) -> bool:
    """Whether what holds the group together decides: a job is to be made, or no pod lives."""
    job = snapshot.job
    if snapshot.needs_next:
        return not snapshot.is_single
    if job is None or job.is_over:
        return False
    if not snapshot.living:
        return not (snapshot.is_single and snapshot.members)
    return not snapshot.key.has_uid and not any(one.job for one in snapshot.members)


def needs_place(snapshot: Snapshot) -> bool:
    """Whether pods are to be understood: a job is to be made for them, or they are to be placed."""
    job = snapshot.job
    return snapshot.needs_next or (bool(snapshot.waiting) and job is not None and job.is_running)


def plan(snapshot: Snapshot) -> Plan:
    """Decide on the next steps."""
    draft = Draft()
    draft.steps += _evictions(snapshot)
    job = snapshot.job
    for one in snapshot.jobs[:-1]:
        # The cache of an operator that has just begun may have lacked the later one, or somebody has made one of them.
        if one.is_owned and not one.is_over and not any(pod.job == one.name for pod in snapshot.living):
            draft.steps.append(DeleteJob(one))
    if job is None or not job.is_running:
        draft.steps += taken_back(snapshot.waiting)
    if job is not None and not job.is_owned:
        not_owned(snapshot, job, draft)
    elif snapshot.needs_next:
        make_next(snapshot, job, draft)
    elif job is not None and not job.is_finished:
        _with_job(snapshot, job, draft)
    _foreign(snapshot, draft)
    _placed(snapshot, draft)
    return cut_short(snapshot, draft)


def _evictions(snapshot: Snapshot) -> Iterator[Evict]:
    by_name = {job.name: job for job in snapshot.jobs}
    for one in snapshot.living:
        if not one.job or one.is_deleting:
            continue
        job = by_name.get(one.job)
        if job is None and one.job in snapshot.lost:
            yield Evict(one, f"SlurmJob {one.job} was deleted, and its job in Slurm with it")
        elif job is not None and job.is_deleting:
            since = moment(job.obj["metadata"].get("deletionTimestamp"))
            yield Evict(one, f"SlurmJob {job.name} is being deleted, which cancels its job in Slurm", since)
        elif job is not None and job.is_finished:
            why = job.status.summary or job.status.reason
            if job.is_ended_by_us:
                # Nobody says so while a pod of it lives, but somebody who writes to the SlurmJob.
                why = f"spec.external.ended of SlurmJob {job.name} says that its work is over"
            words = f"Slurm has ended job {job.status.job_id or job.name}: {job.status.reason}: {why}"
            yield Evict(one, words, slurmjobs.ended_at(job))
        elif job is not None and (node := waits_for(one.obj, snapshot.now)) in snapshot.absent.gone:
            words = f"Slurm has placed it on Kubernetes Node {node}, which does not exist any more"
            yield Evict(one, words, is_unbound=True)


def _with_job(snapshot: Snapshot, job: GroupJob, draft: Draft) -> None:
    waiting = snapshot.waiting
    if job.is_deleting or job.is_ended_by_us:
        draft.tell(snapshot, waiting, "EarlierJobEnds", f"waits until SlurmJob {job.name} has ended")
        return
    if end_if_over(snapshot, job, draft):
        return
    if job.is_running:
        place(snapshot, job, draft)
        return
    number = f"Slurm job {job.status.job_id}" if job.status.job_id is not None else f"SlurmJob {job.name}"
    made = moment(job.obj["metadata"].get("creationTimestamp"))
    age = (snapshot.now - made).total_seconds() if made is not None else QUICK_S
    if waiting and 0 <= age < QUICK_S:
        draft.again(QUICK_S - age)
    elif waiting:
        reason = job.status.reason or "Submitting"
        if reason == Reason.QUEUED and not job.status.slurm_reason:
            # Slurm has just taken it, and has not said yet what it waits for: those words will be news.
            reason = "Submitted"
        words = job.status.summary or "the operator submits it"
        if job.status.slurm_reason and job.status.slurm_reason not in words:
            words = f"{words} ({job.status.slurm_reason})"
        if snapshot.too_large:
            words = f"{words}: {snapshot.too_large}"
        draft.tell(snapshot, waiting, reason, f"{number} waits: {words}")


def _foreign(snapshot: Snapshot, draft: Draft) -> None:
    """Pods that run although Slurm has not placed them."""
    for one in snapshot.living:
        if one.is_gated or one.is_deleting:
            continue
        if not one.job or one.job in snapshot.foreign:
            words = "its scheduling gate was removed, or never there: it runs without a job in Slurm"
            draft.tells[one.uid] = Tell(one, "NotPlacedBySlurm", words)


def _placed(snapshot: Snapshot, draft: Draft) -> None:
    """What pods show that Slurm has placed."""
    by_name = {job.name: job for job in snapshot.jobs}
    evicted = {step.member.uid for step in draft.steps if isinstance(step, Evict)}
    if snapshot.absent.unsure:
        draft.again(ASK_S)
    for one in snapshot.living:
        job = by_name.get(one.job)
        if not one.job or job is None or one.is_deleting or one.uid in evicted or job.is_ended_by_us:
            continue
        if not one.obj["spec"].get("nodeName"):
            # No event tells that its Node has gone meanwhile.
            draft.again(AGAIN_S)
        if job.status.state in {Phase.RUNNING, Phase.ENDING}:
            words = f"Slurm job {job.status.job_id}, task {one.slot}: SlurmJob {job.name}"
            draft.tells[one.uid] = Tell(one, "Placed", words, holds=True)
            deadline = other_deadline(one.obj, job)
            if deadline is not None:
                draft.steps.append(Announce(one, deadline))
        elif job.status.state == Phase.SUSPENDED:
            words = f"Slurm has suspended job {job.status.job_id}, and the pod goes on: resume it, or delete the pod"
            draft.tells[one.uid] = Tell(one, "JobSuspended", words, holds=True)
        elif job.status.state:
            words = f"Slurm does not show its job as running any more, and the pod goes on: {job.status.summary}"
            draft.tells[one.uid] = Tell(one, "JobLost", words, holds=True)
