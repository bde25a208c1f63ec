"""The end of a job whose pods have ended, or have gone. Pure."""

from __future__ import annotations

from slinky_operator.bridge.pods.model import slurmjobs
from slinky_operator.bridge.pods.model.group_owners import COMPLETE, Owner
from slinky_operator.bridge.pods.model.membership import GroupKind
from slinky_operator.bridge.pods.model.snapshot import Gone, GroupJob, Snapshot
from slinky_operator.bridge.pods.model.steps import AGAIN_S, GAP_S, OWNER_S, DeleteJob, Draft, End


def end_if_over(snapshot: Snapshot, job: GroupJob, draft: Draft) -> bool:
    """End a job whose work is over."""
    if snapshot.living:
        return False
    if snapshot.is_single and snapshot.members:
        if job.has_run:
            is_good: bool | None = all(one.phase == "Succeeded" for one in snapshot.members)
            if any(one.is_void for one in snapshot.members):
                is_good = None
            draft.steps.append(End(job, slurmjobs.ended(snapshot.members, "", is_good=is_good)))
        else:
            draft.steps.append(DeleteJob(job))
        return True
    end_if_empty(snapshot, job, draft)
    return True


def end_if_empty(snapshot: Snapshot, job: GroupJob, draft: Draft) -> None:
    """No pod of the job lives: it ends at once if no more come, and after a while if they might."""
    owner = snapshot.owner
    why = ""
    if isinstance(owner, Owner):
        why = owner.end
    elif isinstance(owner, Gone):
        why = "Deleted"
    if isinstance(owner, Owner) and snapshot.key.kind is GroupKind.POD and not owner.end:
        # Its label was taken off, or there was no room for it.
        draft.again(OWNER_S)
        return
    pods = [one for one in snapshot.members if one.job == job.name]
    all_good = len(pods) >= job.tasks and all(one.phase == "Succeeded" for one in pods)
    if not why and not all_good and snapshot.empty_s < GAP_S:
        # No event tells of its owner, which says that it has failed a little later than its pods.
        draft.again(min(GAP_S - snapshot.empty_s, max(OWNER_S, snapshot.empty_s)))
        return
    if not job.has_run:
        draft.steps.append(DeleteJob(job))
        return
    is_good = True if why == COMPLETE or (all_good and not why) else False if why == "Failed" else None
    words = f"{snapshot.key.kind} {owner.name}, {why or 'ended'}" if isinstance(owner, Owner) else why
    draft.steps.append(End(job, slurmjobs.ended(pods, words, is_good=is_good)))


def not_owned(snapshot: Snapshot, job: GroupJob, draft: Draft) -> None:
    """The owner of the SlurmJob is gone, or it was written by somebody else."""
    if not snapshot.living and not job.is_over:
        end_if_empty(snapshot, job, draft)
        return
    words = f"SlurmJob {job.name} is not owned by what holds these pods together: somebody else has made it; delete it"
    draft.tell(snapshot, snapshot.waiting, "JobNotOurs", words)
    draft.again(AGAIN_S)
