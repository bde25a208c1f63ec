"""The next job of a group whose pods wait: whether there is one now, what it asks for, and why there is none. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from slinky_operator.bridge.pods.model import slurmjobs
from slinky_operator.bridge.pods.model.components import Component, grouped
from slinky_operator.bridge.pods.model.group_owners import Owner
from slinky_operator.bridge.pods.model.membership import GroupKind
from slinky_operator.bridge.pods.model.snapshot import Away, GroupJob, Member, Place, Snapshot
from slinky_operator.bridge.pods.model.steps import (
    AGAIN_S,
    FIRST_PAUSE_S,
    GATHERING_S,
    LONG_RUN_S,
    LONGEST_PAUSE_S,
    MOST_PODS,
    Create,
    Draft,
)
from slinky_operator.bridge.pods.model.translation.device_requests import ClaimsPending
from slinky_operator.bridge.pods.model.translation.request import check
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.reconcile.text import moment, named


def make_next(snapshot: Snapshot, last: GroupJob | None, draft: Draft) -> None:
    """Make the next job of the group, once that makes sense."""
    waiting = snapshot.waiting
    if last is not None and (pause := _pause(snapshot, last, draft)):
        draft.again(pause)
        return
    found = _wanted(snapshot)
    if isinstance(found, Away):
        if found.reason in {"GroupIncomplete", "ClaimsPending"}:
            age = min((snapshot.now - one.created).total_seconds() for one in waiting if one.created) if waiting else 0
            if age < GATHERING_S:
                draft.again(GATHERING_S - age)
                return
        draft.tell(snapshot, waiting, found.reason, found.message)
        draft.again(AGAIN_S)
        return
    owner, place, components = found
    # A pod that still ends names the job that placed it, even if that SlurmJob was deleted.
    named_before = (slurmjobs.attempt_named(snapshot.key, owner.uid, one.job) for one in snapshot.living)
    before = [one for one in named_before if one is not None]
    attempt = max([*before, -1 if last is None else last.attempt]) + 1
    body = slurmjobs.made_for(snapshot.key, snapshot.namespace, owner, place, components, attempt)
    draft.steps.append(Create(body))
    ignored = list(dict.fromkeys(name for one in components for name in one.request.ignored))
    if ignored:
        words = f"annotations without effect, which only administrators of Slurm may ask for: {named(ignored)}"
        draft.tell(snapshot, waiting, "Ignored", words)


def _pause(snapshot: Snapshot, last: GroupJob, draft: Draft) -> float:
    """Seconds until the next job after one that has ended."""
    ended = slurmjobs.ended_at(last)
    if not last.has_run and not last.is_lost:
        # The user who cancelled it while it waited, or Slurm that refused it, meant these pods.
        # By two clocks: the API server may be ahead of the operator, which has written the end.
        times = ended, moment(last.obj["metadata"].get("creationTimestamp"))
        is_new = not snapshot.is_single and all(_is_after(one.created, times) for one in snapshot.waiting)
        if not is_new:
            words = (
                f"SlurmJob {last.name} ended before it had run: {last.status.summary or last.status.reason}. To submit "
                f"it again: kubectl delete slurmjob {last.name} -n {snapshot.namespace}"
            )
            draft.tell(snapshot, snapshot.waiting, "JobEnded", words)
            return AGAIN_S
    if ended is None:
        return 0.0
    start = last.status.start_time
    if start is not None and (ended - start).total_seconds() >= LONG_RUN_S:
        return 0.0
    pause = min(FIRST_PAUSE_S * 2 ** min(last.attempt, 10), LONGEST_PAUSE_S)
    return float(max(0.0, pause - (snapshot.now - ended).total_seconds()))


def _is_after(created: datetime | None, times: Iterable[datetime | None]) -> bool:
    return created is not None and all(one is not None and created > one for one in times)


def _wanted(snapshot: Snapshot) -> tuple[Owner, Place, tuple[Component, ...]] | Away:
    """What the next job is for; why there can be none."""
    owner = snapshot.owner
    if snapshot.is_single:
        first = snapshot.waiting[0]
        owner = Owner(first.name, first.uid, 1)
    if not isinstance(owner, Owner):
        words = f"{snapshot.key.kind} {snapshot.key.name}, to which the pod belongs, does not exist"
        return owner if isinstance(owner, Away) else Away("Refused", words)
    obstacle = next(_obstacles(snapshot, owner), None)
    if obstacle is not None:
        return obstacle
    pods = _complete(snapshot, owner)
    if isinstance(pods, Away):
        return pods
    components, place = grouped(pods), snapshot.place
    assert isinstance(place, Place)  # noqa: S101 - for the type checker
    if isinstance(components, Away):
        return components
    for one in components:
        try:
            check(one.request, place.granted)
        except InvalidJob as error:
            return Away("Refused", f"pod {one.pods[0].name}: {error}" if len(components) > 1 else str(error))
    return owner, place, components


def _obstacles(snapshot: Snapshot, owner: Owner) -> Iterator[Away]:
    """Why there can be no job, whether all pods are there or not."""
    title, place = f"{snapshot.key.kind} {owner.name}", snapshot.place
    if owner.end:
        yield Away("OwnerEnded", f"{title} is over: {owner.end}")
    if owner.problem is not None:
        yield Away("Refused", f"{title}: {owner.problem[0]}: {owner.problem[1]}")
    if not isinstance(place, Place):
        yield place or Away("ClusterNotReady", "its Cluster is not known yet")
    if owner.pods > MOST_PODS:
        yield Away("Refused", f"{title} has {owner.pods} pods, and a group has {MOST_PODS} at most")
    for one in snapshot.waiting:
        if one.other_gates:
            gate = one.other_gates[0][:253]
            yield Away("OtherGate", f"pod {one.name} waits until the scheduling gate {gate} is removed: not ours")
        if isinstance(one.request, ClaimsPending):
            yield Away("ClaimsPending", f"pod {one.name}: {one.request.message}")
        if isinstance(one.request, InvalidJob):
            yield Away("Refused", f"pod {one.name}: {one.request}")


def _complete(snapshot: Snapshot, owner: Owner) -> list[Member] | Away:
    """The pods of the next job; what is missing."""
    waiting = list(snapshot.waiting)
    needed = owner.pods
    if snapshot.key.kind is GroupKind.JOBSET:
        good = {one.rank for one in snapshot.members if one.phase == "Succeeded"}
        needed = max(1, needed - len(good))
    if snapshot.key.kind is GroupKind.POD_GROUP:
        needed = max(needed, min(len(waiting), MOST_PODS))
    if all(one.rank is not None for one in waiting):
        by_rank = {one.rank: one for one in reversed(waiting)}
        waiting = [by_rank[rank] for rank in sorted(by_rank, key=lambda rank: rank or 0)]
    if needed < 1 or len(waiting) < needed:
        words = f"{len(waiting)} of {needed} pods of {snapshot.key.kind} {owner.name} wait for Slurm: all must be there"
        return Away("GroupIncomplete", words)
    return waiting[:needed]
