"""Which pod is placed where by a job that Slurm runs, and why one is not. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from slinky_operator.bridge.pods.model import slurmjobs
from slinky_operator.bridge.pods.model.ending import not_owned
from slinky_operator.bridge.pods.model.group_owners import Owner
from slinky_operator.bridge.pods.model.snapshot import Away, Gone, GroupJob, Member, Snapshot
from slinky_operator.bridge.pods.model.steps import AGAIN_S, GAP_S, Draft, End, Lift, Tell
from slinky_operator.jobs.refusal import InvalidJob


def place(snapshot: Snapshot, job: GroupJob, draft: Draft) -> None:
    """Place the pods that wait: all of a group at first, later those that come in the place of others."""
    waiting = snapshot.waiting
    if not waiting:
        return
    if isinstance(snapshot.place, Away):
        _may_not(snapshot, job, snapshot.place, draft)
        return
    if isinstance(snapshot.owner, Gone | Away) or (
        isinstance(snapshot.owner, Owner) and not slurmjobs.is_owned(snapshot.key, job.obj, snapshot.owner.uid)
    ):
        not_owned(snapshot, job, draft)
        return
    nodes = slurmjobs.slots(job.status.allocation or (), int(job.spec.get("cpusPerTask") or 1), job.tasks)
    if len(nodes) < job.tasks:
        words = f"Slurm job {job.status.job_id} has room for {len(nodes)} of {job.tasks} pods: cancel it"
        draft.tell(snapshot, waiting, "TooFewCpus", words)
        return
    lifts = list(_lifts(snapshot, job, nodes, draft))
    if not _is_begun(snapshot, job) and len(lifts) < job.tasks:
        waited = _waited(snapshot, job)
        if waited >= GAP_S:
            ended = {"exitCode": 1, "comment": f"{len(lifts)} of {job.tasks} pods were there"}
            draft.steps.append(End(job, ended))
            return
        words = f"Slurm runs job {job.status.job_id}, and {len(lifts)} of {job.tasks} pods can be placed: waits for all"
        for one in lifts:
            draft.tells.setdefault(one.member.uid, Tell(one.member, "GroupIncomplete", words))
        draft.again(max(1.0, GAP_S - waited))
        return
    draft.steps += lifts
    for lift in lifts:
        draft.tells.pop(lift.member.uid, None)


def _may_not(snapshot: Snapshot, job: GroupJob, why: Away, draft: Draft) -> None:
    """No pod of the job may be placed any more: it gives its nodes back if none was."""
    draft.tell(snapshot, snapshot.waiting, why.reason, why.message)
    if not _is_begun(snapshot, job) and _waited(snapshot, job) >= GAP_S:
        draft.steps.append(End(job, {"exitCode": 1, "comment": "no pod of it may be placed"}))
    else:
        draft.again(AGAIN_S)


def _is_begun(snapshot: Snapshot, job: GroupJob) -> bool:
    """Whether a pod was placed by a job."""
    return any(one.job == job.name for one in snapshot.members)


def _waited(snapshot: Snapshot, job: GroupJob) -> float:
    """Seconds for which Slurm has run a job."""
    started = job.status.start_time
    return (snapshot.now - started).total_seconds() if started is not None else 0.0


def _lifts(snapshot: Snapshot, job: GroupJob, nodes: list[str], draft: Draft) -> Iterator[Lift]:
    taken = {one.slot: one for one in snapshot.living if one.job == job.name}
    ranks = slurmjobs.slots_by_rank(job)
    free = iter([slot for slot in range(job.tasks) if slot not in taken])
    for one in snapshot.waiting:
        words = _unfit(one, job)
        slot: int | None = None
        if not words:
            slot = slurmjobs.wanted_slot(job, one, ranks)
            if slot == -1:
                words = f"SlurmJob {job.name} has no task for index {one.rank}: waits for the next job"
            elif slot is not None and slot in taken:
                words = f"waits until pod {taken[slot].name}, in whose place it comes, has ended"
            elif slot is None:
                slot = next(free, None)
                if slot is None:
                    words = f"all {job.tasks} tasks of SlurmJob {job.name} are taken: waits for one"
        if words or slot is None:
            draft.tells[one.uid] = Tell(one, "NoTask", words)
            continue
        taken[slot] = one
        yield Lift(one, job, slot, nodes[slot])


def _unfit(member: Member, job: GroupJob) -> str:
    """Why a pod cannot be a task of a job; empty if it can."""
    if member.other_gates:
        return f"waits until the scheduling gate {member.other_gates[0][:253]} is removed, which is another's"
    if isinstance(member.request, InvalidJob):
        return str(member.request)
    if member.request is None or not member.request.fits(job.spec):
        return f"asks for something else than a task of SlurmJob {job.name} has: waits for the next job"
    return ""
