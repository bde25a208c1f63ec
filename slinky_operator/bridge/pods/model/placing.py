"""Which pod is placed where by a job that Slurm runs, and why one is not. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from slinky_operator.bridge.pods.model import components, devices, slurmjobs
from slinky_operator.bridge.pods.model.ending import not_owned
from slinky_operator.bridge.pods.model.group_owners import Owner
from slinky_operator.bridge.pods.model.lift import shown
from slinky_operator.bridge.pods.model.snapshot import Away, Gone, GroupJob, Member, Snapshot
from slinky_operator.bridge.pods.model.steps import AGAIN_S, ASK_S, DEVICES_S, GAP_S, Draft, End, Lift, Tell
from slinky_operator.bridge.pods.model.translation.device_requests import ClaimsPending
from slinky_operator.bridge.pods.model.translation.request import Request
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.reconcile.text import cut

GONE: Final = "NodeGone"
"""Reason of pods whose job has Kubernetes Nodes that do not exist."""

_NAMES: Final = 200
"""Characters of the names of such Nodes."""


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
    nodes = slurmjobs.slots(job)
    if len(nodes) < job.tasks:
        words = f"Slurm job {job.status.job_id} has room for {len(nodes)} of {job.tasks} pods: cancel it"
        draft.tell(snapshot, waiting, "TooFewCpus", words)
        return
    lifts = list(_lifts(snapshot, job, nodes, draft))
    if any(one.node in snapshot.absent.all for one in lifts):
        lifts = _without_absent(snapshot, job, lifts, draft)
    elif not _is_begun(snapshot, job) and len(lifts) < job.tasks:
        _wait_for_all(snapshot, job, lifts, draft)
        return
    writes = [step for lift in lifts for step in lift.given.writes]
    if writes:
        # The claims are shown with their devices soon, and their pods are lifted then; those of a new group together.
        draft.steps += writes
        draft.again(AGAIN_S)
        is_begun = _is_begun(snapshot, job)
        lifts = [lift for lift in lifts if is_begun and not lift.given.writes]
    draft.steps += lifts
    for lift in lifts:
        draft.tells.pop(lift.member.uid, None)


def _wait_for_all(snapshot: Snapshot, job: GroupJob, lifts: Sequence[Lift], draft: Draft) -> None:
    """The first pods of a job are placed together: for a while it waits for those that are missing."""
    waited = _waited(snapshot, job)
    if waited >= GAP_S and not snapshot.devices_unknown:
        ended = {"exitCode": 1, "comment": f"{len(lifts)} of {job.tasks} pods were there"}
        draft.steps.append(End(job, ended))
        return
    words = f"Slurm runs job {job.status.job_id}, and {len(lifts)} of {job.tasks} pods can be placed: waits for all"
    for one in lifts:
        draft.tells.setdefault(one.member.uid, Tell(one.member, "GroupIncomplete", words))
    draft.again(max(1.0, GAP_S - waited))


def _without_absent(snapshot: Snapshot, job: GroupJob, lifts: Sequence[Lift], draft: Draft) -> list[Lift]:
    """Pods that can be placed although Kubernetes Nodes of their job do not exist, which Slurm does not know yet.

    A job of which no pod lives ends once they are gone, and the next one gets other Nodes. Its pods say so before: a
    cache that shows that is not behind a pod that this job has placed just now.
    """
    absent = snapshot.absent
    names = ", ".join(sorted({one.node for one in lifts} & absent.missing))
    words = f"Slurm has given job {job.status.job_id} Kubernetes Nodes that do not exist: {cut(names, _NAMES)}"
    has_pods = any(one.job == job.name for one in snapshot.living)
    is_gone = any(one.node in absent.gone for one in lifts)
    rest = "the pod waits until that job ends" if has_pods else "the job ends unless they return, and another follows"
    if is_gone and not has_pods and all(_says_gone(one.member, words) for one in lifts):
        draft.steps.append(End(job, {"exitCode": 1, "comment": f"Nodes do not exist: {cut(names, _NAMES)}"}))
    for one in lifts:
        if names and (not has_pods or one.node in absent.missing):
            draft.tells[one.member.uid] = Tell(one.member, GONE, f"{words}; {rest}")
    draft.again(ASK_S)
    return [one for one in lifts if one.node not in absent.all] if has_pods else []


def _says_gone(member: Member, words: str) -> bool:
    """Whether a pod shows that its job, and no earlier one, has Nodes that do not exist."""
    stored = shown(member.obj)
    return stored.get("reason") == GONE and str(stored.get("message")).partition(":")[0] == words.partition(":")[0]


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
    """Seconds for which a job that runs has waited for its pods; those of one whose pods all came again are younger."""
    created = min((one.created for one in snapshot.waiting if one.created is not None), default=None)
    since = max((time for time in (job.status.start_time, created) if time is not None), default=snapshot.now)
    return (snapshot.now - since).total_seconds() if job.status.start_time is not None else 0.0


class _Tasks:
    """The tasks of a job: which of them pods have, and which are free.

    Parameters
    ----------
    last
        Tasks that are given away last.
    """

    def __init__(self, job: GroupJob, living: Iterable[Member], last: frozenset[int]) -> None:
        self._job = job
        self._taken = {one.slot: one for one in living if one.job == job.name}
        self._ranks = slurmjobs.slots_by_rank(job)
        self._component_of = [number for number, tasks in enumerate(job.sizes) for _ in range(tasks)]
        self._free: dict[int, deque[int]] = {number: deque() for number in range(len(job.sizes))}
        numbered = enumerate(self._component_of)
        for number, component in sorted(numbered, key=lambda pair: (pair[0] in last, pair[0])):
            if number not in self._taken:
                self._free[component].append(number)

    def take(self, member: Member, fitting: Sequence[int]) -> int | str:
        """Give a pod a task of one of these components, or say why it gets none."""
        slot = slurmjobs.wanted_slot(self._job, member, self._ranks)
        if slot is None:
            slot = next((self._free[number].popleft() for number in fitting if self._free[number]), None)
        elif slot == -1:
            return f"SlurmJob {self._job.name} has no task for index {member.rank}: waits for the next job"
        elif self._component_of[slot] not in fitting:
            return _other(self._job)
        elif slot in self._taken:
            return f"waits until pod {self._taken[slot].name}, in whose place it comes, has ended"
        if slot is None:
            return f"all {self._job.tasks} tasks of SlurmJob {self._job.name} are taken: waits for one"
        self._taken[slot] = member
        return slot


def _lifts(snapshot: Snapshot, job: GroupJob, nodes: list[str], draft: Draft) -> Iterator[Lift]:
    absent = frozenset(number for number, node in enumerate(nodes) if node in snapshot.absent.all)
    tasks = _Tasks(job, snapshot.living, absent)
    known: dict[Request, tuple[int, ...]] = {}
    for one in snapshot.waiting:
        words, fitting = _unfit(one, job, known)
        slot = words or tasks.take(one, fitting)
        if isinstance(slot, str):
            draft.tells[one.uid] = Tell(one, "NoTask", slot)
            continue
        if slot in absent:
            yield Lift(one, job, slot, nodes[slot])
            continue
        found = devices.given(snapshot, job, one, slot, nodes)
        if isinstance(found, str):
            draft.tells[one.uid] = Tell(one, "DevicesNotReady", found)
            draft.again(DEVICES_S)
            continue
        yield Lift(one, job, slot, nodes[slot], found)


def _unfit(member: Member, job: GroupJob, known: dict[Request, tuple[int, ...]]) -> tuple[str, tuple[int, ...]]:
    """Why a pod cannot be a task of a job, or of which components it can."""
    if member.other_gates:
        return f"waits until the scheduling gate {member.other_gates[0][:253]} is removed, which is another's", ()
    if isinstance(member.request, InvalidJob):
        return str(member.request), ()
    if isinstance(member.request, ClaimsPending):
        return member.request.message, ()
    request = member.request
    if request is not None and request not in known:
        known[request] = components.fitting(request, job)
    found = known[request] if request is not None else ()
    return ("", found) if found else (_other(job), ())


def _other(job: GroupJob) -> str:
    return f"asks for something else than a task of SlurmJob {job.name} has: waits for the next job"
