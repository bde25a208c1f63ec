"""What is done next about a list of copies, and what is shown. Pure.

A pod makes all copies that can be made. What it says of each counts, and is kept in the status before another pod is
made; what it has not said is tried by another one, a few times. Copies may be made twice: they are the same then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.slurmjob.files import JobCopies, JobCopy
from slinky_operator.kube.objects import Object
from slinky_operator.pod_programs.joblogs.copies.orders import Copy, Report
from slinky_operator.reconcile.text import cut
from slinky_operator.slurmjob.pods import pod_state
from slinky_operator.slurmjob.pods.copy_pod import items_of
from slinky_operator.slurmjob.pods.copy_routes import Item

MAX_ATTEMPTS: Final = 4
"""Pods for one list of copies."""

PAUSES: Final = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10))
"""Before each further pod."""

WAYS_COME: Final = timedelta(minutes=15)
"""After the end of a job: for so long it is waited for an address or a key that may come."""

DEADLINE: Final = timedelta(hours=24)
"""After the end of a job: what has not been copied by then is not."""

RETRY_S: Final = 5.0
"""Seconds until the next look for what is not there yet."""

UNBOUNDED_RETRY_S: Final = 30.0
"""The same where it may stay away for ever."""

MAX_POLL_S: Final = 20.0
"""The same for a pod that waits or runs, at most; pods that copy are not watched."""

LONGEST_MESSAGE: Final = 300
"""Characters of what is said of one copy."""


@dataclass(frozen=True, slots=True)
class CopySnapshot:
    """What is known of a list of copies.

    Parameters
    ----------
    items
        All that are wanted.
    before
        What was done.
    pod
        That of this attempt; None if there is none.
    lacking
        Volumes that do not exist, in words; empty if all do, or if that was not looked at.
    now
        The time.
    ended
        When the job has ended; None before, when nothing is given up.
    """

    items: Sequence[Item]
    before: JobCopies
    pod: Object | None
    lacking: str
    now: datetime
    ended: datetime | None = None


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What is done, and shown.

    Parameters
    ----------
    condition
        Status, reason and message.
    status
        What was done, for the status.
    orders
        What a pod of this attempt is to copy; None if nothing is to be written.
    wake
        Seconds until the next look; None if nothing more is done.
    """

    condition: tuple[str, Reason, str]
    status: JobCopies
    orders: tuple[Copy, ...] | None = None
    wake: float | None = None


def plan(snapshot: CopySnapshot) -> CopyPlan:
    """Decide on the next step."""
    before = snapshot.before
    pod = snapshot.pod
    end = (pod_state.copies_ended(pod) or pod_state.lost(pod, snapshot.now)) if pod is not None else None
    if end is not None:
        # Another attempt has another pod.
        return _after(snapshot, end)
    pending = _pending(snapshot.items, before)
    if not pending:
        return _complete(before)
    if _is_past(snapshot, DEADLINE):
        return _complete(_given_up(before, pending, "not copied within 24 hours after the job ended"))
    if pod is not None:
        return _while(snapshot, pod, pending)
    return _start(snapshot, pending)


def _pending(items: Sequence[Item], done: JobCopies) -> list[Item]:
    known = {copy.name for copy in done.copies}
    return [one for one in items if one.name not in known]


def _is_past(snapshot: CopySnapshot, patience: timedelta) -> bool:
    return snapshot.ended is not None and snapshot.now - snapshot.ended > patience


def _start(snapshot: CopySnapshot, pending: Sequence[Item]) -> CopyPlan:
    before = snapshot.before
    coming = [one for one in pending if one.copy is None and one.may_come]
    if coming and not _is_past(snapshot, WAYS_COME):
        wake = RETRY_S if snapshot.ended is not None else UNBOUNDED_RETRY_S
        return CopyPlan(("False", Reason.FILES_OUT_OF_REACH, _listed(coming)), before, wake=wake)
    beyond = [one for one in pending if one.copy is None]
    status = before
    for one in beyond:
        status = _given_up(status, [one], one.why)
    copies = tuple(one.copy for one in pending if one.copy is not None)
    if not copies:
        return _complete(status)
    if before.retry_time is not None and snapshot.now < before.retry_time:
        left = (before.retry_time - snapshot.now).total_seconds()
        return CopyPlan(("False", Reason.COPY_FAILED, "the copy failed; the operator tries again"), before, wake=left)
    words = f"{len(copies)} to be copied"
    return CopyPlan(("Unknown", Reason.COPYING, words), status, copies, wake=1.0)


def _while(snapshot: CopySnapshot, pod: Object, pending: Sequence[Item]) -> CopyPlan:
    """The pod waits, or runs."""
    name = pod["metadata"]["name"]
    copies = tuple(one.copy for one in pending if one.copy is not None)
    wake = _poll(snapshot, pod)
    waits = pod_state.waiting_for(pod, snapshot.now)
    if waits is None:
        return CopyPlan(("Unknown", Reason.COPYING, f"pod {name} copies"), snapshot.before, wake=wake)
    # A pod that waits long needs newer tokens.
    is_same = set(items_of(pod)) == {copy.name for copy in copies}
    orders = copies if is_same else None
    if snapshot.lacking:
        words = f"{snapshot.lacking}; pod {name} waits: create what is missing"
        return CopyPlan(("False", Reason.VOLUME_NOT_FOUND, words), snapshot.before, orders, wake)
    if waits:
        return CopyPlan(("False", Reason.COPY_POD_WAITS, f"pod {name} waits: {waits}"), snapshot.before, orders, wake)
    return CopyPlan(("Unknown", Reason.COPYING, f"pod {name} is starting"), snapshot.before, orders, wake)


def _poll(snapshot: CopySnapshot, pod: Object) -> float:
    made = pod["metadata"].get("creationTimestamp")
    try:
        age = (snapshot.now - datetime.fromisoformat(str(made))).total_seconds()
    except (ValueError, TypeError):
        age = 0.0
    return min(max(age / 5, 1.0), MAX_POLL_S)


def _after(snapshot: CopySnapshot, end: pod_state.CopiesEnded) -> CopyPlan:
    """The pod has ended."""
    before = snapshot.before
    done = [*before.copies]
    known = {one.name for one in done}
    trouble = end.why
    for item in _pending(snapshot.items, before):
        report = end.reports.get(item.name)
        if report is None or item.name in known:
            continue
        if not report.why:
            done.append(_copied(item.name, report))
        elif report.is_final:
            done.append(JobCopy(name=item.name, message=cut(report.why, LONGEST_MESSAGE)))
        else:
            trouble = f"{item.name}: {report.why}"
    status = before.model_copy(update={"copies": tuple(done), "attempts": before.attempts + 1, "retry_time": None})
    pending = _pending(snapshot.items, status)
    if not pending:
        return _complete(status)
    if status.attempts >= MAX_ATTEMPTS:
        return _complete(_given_up(status, pending, f"{status.attempts} attempts failed, the last one: {trouble}"))
    pause = PAUSES[min(before.attempts, len(PAUSES) - 1)]
    status = status.model_copy(update={"retry_time": snapshot.now + pause})
    words = cut(f"next attempt in {pause.total_seconds():g} s: {trouble}", LONGEST_MESSAGE)
    return CopyPlan(("False", Reason.COPY_FAILED, words), status, wake=pause.total_seconds())


def _copied(name: str, report: Report) -> JobCopy:
    message = ""
    if report.left_out:
        message = f"{report.left_out} links and special files were left out: {report.example}"
        message += " and others" if report.left_out > 1 else ""
    return JobCopy(name=name, is_copied=True, files=report.files, size=report.size, message=message)


def _given_up(status: JobCopies, items: Sequence[Item], why: str) -> JobCopies:
    more = tuple(JobCopy(name=one.name, message=cut(one.why or why, LONGEST_MESSAGE)) for one in items)
    return status.model_copy(update={"copies": (*status.copies, *more)})


def _complete(status: JobCopies) -> CopyPlan:
    """Nothing more is done."""
    ordered = tuple(sorted(status.copies, key=lambda one: one.name))
    status = status.model_copy(update={"copies": ordered, "is_complete": True, "retry_time": None})
    if not ordered:
        return CopyPlan(("True", Reason.NOTHING_TO_COPY, "no result is configured for this end of the job"), status)
    failed = [one for one in ordered if not one.is_copied]
    if failed:
        words = "; ".join(f"{one.name}: {one.message}" for one in failed)
        return CopyPlan(("False", Reason.COPY_FAILED, words), status)
    return CopyPlan(("True", Reason.COPIED, "; ".join(map(_said, ordered))), status)


def _said(copy: JobCopy) -> str:
    more = f", {copy.message}" if copy.message else ""
    return f"{copy.name}: {copy.files} files, {copy.size} bytes{more}"


def _listed(items: Sequence[Item]) -> str:
    return "; ".join(f"{one.name}: {one.why}" for one in items)
