"""Which pods are recreated because their slurmd runs and never registers.

Such a slurmd does not recover: it started with a key that has been changed since, or was rejected. A new pod starts
with the current key; if that does not help either, one pod after the other is tried, no more at a time than an update
may replace, and each has its full time.

A pod may have held a job only if Slurm has known it. So a pod that has registered is repaired only if Slurm has
forgotten its node, which never registers again by itself, and its slurmd has shown for minutes that no step runs
(`running_steps`). Neither is one whose name is used by a job or by somebody else's record or drain. A pod's time begins
when its slurmd starts, or when Slurm can be asked again, whichever is later. The end of that time is written on the
pod, so that it survives a restart of the operator, and is removed while Slurm is unreachable: then no slurmd could
register. A recreated pod is recognized by its age. A cordoned pod is left for inspection.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slinky_api.conditions import NodeSetCondition, Reason, find, is_true
from slinky_operator.nodeset.disruption import rolling_update
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods import pod_names
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement import creation
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slinky_operator.reconcile.text import named

LIKELY: Final = "it cannot reach slurmctld, has another key, or is refused; its log and slurmctld's say which"
"""Why a slurmd that runs does not register, for people."""


@dataclass(frozen=True, slots=True)
class UnregisteredPod:
    """A pod whose slurmd runs and has not registered."""

    pod: Pod
    since: datetime
    """When its slurmd started."""
    until: datetime
    """When its time ends."""
    jobs: tuple[int, ...] = ()
    """Jobs that name its node: while there are any, it stays."""

    def is_over(self, now: datetime) -> bool:
        """Whether its time is over, and it may be recreated."""
        return self.until <= now and not self.jobs


def is_repair_candidate(member: Member) -> bool:
    """Whether a pod runs and has never registered, as its record or the lack of one shows; or is forgotten and idle.

    A predecessor's record is not the pod's own; a node drained by somebody else is left to them.
    """
    pod, node = member.pod, member.record
    if pod.slurmd is not Slurmd.RUNNING or pod.slurmd_started_at is None:
        return False
    if pod.registered:
        return node is None and member.is_idle
    return node is None or (member.ownership is RecordOwnership.PREDECESSOR and not drains.is_foreign(node))


def waiting(snapshot: Snapshot, live: Iterable[Member], layout: Layout) -> dict[str, UnregisteredPod]:
    """The pods whose slurmd runs and has not registered, by name; none if no pod could be created in their place.

    Parameters
    ----------
    live
        The pods that are neither being deleted nor ended.
    layout
        The slots of pods: a pod that could not be recreated is left out.
    """
    conditions = snapshot.nodeset.status.conditions
    reachable = find(conditions, NodeSetCondition.SLURM_REACHABLE)
    if reachable is None or reachable.last_transition_time is None or not creation.is_possible(snapshot):
        return {}
    if not is_true(conditions, NodeSetCondition.SLURM_REACHABLE):
        return {}
    found = {}
    for member in live:
        pod = member.pod
        if not is_repair_candidate(member):
            continue
        if pod.slurmd_started_at is None or pod_names.pod_name(snapshot.nodeset, pod.node_name) in layout.waiting:
            continue
        # Not by the clock of its Node alone, which may be slow.
        begin = max(filter(None, (pod.slurmd_started_at, pod.created_at, reachable.last_transition_time)))
        jobs = tuple(job.id for job in member.jobs)
        until = _until(pod, pod.slurmd_started_at, begin + snapshot.patience, snapshot.patience)
        if pod.registered:
            # Its slurmd has had the time in which it has shown to be idle.
            until = begin
        found[pod.name] = UnregisteredPod(pod, pod.slurmd_started_at, until, jobs)
    return found


def _until(pod: Pod, started_at: datetime, latest: datetime, patience: timedelta) -> datetime:
    """When the time of a pod ends: as written before, if that gives this slurmd its full time."""
    if pod.register_by is None or pod.register_by.tzinfo is None:
        return latest
    return min(latest, max(pod.register_by, started_at + patience))


def announcements(
    snapshot: Snapshot, waits: Mapping[str, UnregisteredPod], now: datetime
) -> tuple[tuple[Pod, str | None], ...]:
    """When pods are recreated, to be written on them: the time, or None to remove an outdated one.

    A slurmd that has just started normally registers soon, and nothing is written for it.

    Parameters
    ----------
    waits
        The result of `waiting`.
    now
        The time; timezone-aware.

    Returns
    -------
    tuple
        Pods with the text to write; pods that are up to date are left out.
    """
    if not snapshot.slurm.readable:
        away = snapshot.slurm.reason in {Reason.SLURM_UNREACHABLE, Reason.CONTROLLER_DOWN}
        return tuple((pod, None) for pod in snapshot.pods if away and pod.register_by is not None and not pod.deleting)
    over = [(pod, None) for pod in snapshot.pods if pod.registered and pod.register_by is not None and not pod.deleting]
    late = [
        (one.pod, _stamp(one.until))
        for one in waits.values()
        if not one.pod.registered
        and now - one.since >= pod_state.REGISTRATION_GRACE
        and _differ(one.pod.register_by, one.until)
    ]
    return (*over, *late)


def _differ(written: datetime | None, until: datetime) -> bool:
    """Whether a time has to be written; fractions of a second do not count."""
    return written is None or written.tzinfo is None or int(written.timestamp()) != int(until.timestamp())


def needs_jobs(snapshot: Snapshot, waits: Iterable[UnregisteredPod], now: datetime) -> bool:
    """Whether jobs must be queried before pods are chosen."""
    return snapshot.slurm.readable and snapshot.slurm.jobs is None and any(wait.until <= now for wait in waits)


def choose(
    snapshot: Snapshot,
    waits: Collection[UnregisteredPod],
    live: Sequence[Member],
    *,
    awaited: int,
    desired: int,
    now: datetime,
) -> frozenset[str]:
    """Names of the pods to recreate now: those begun already, then those that have run longest.

    Parameters
    ----------
    snapshot
        The snapshot.
    waits
        The pods that are not removed for another reason.
    live
        The pods that are neither being deleted nor ended.
    awaited
        How many pods are missing and will be created.
    desired
        The desired number of pods, for the budget.
    now
        The time.
    """
    over = [wait for wait in waits if wait.is_over(now)]
    if not over:
        return frozenset()
    names = {one.pod.name for one in over}
    begun = {member.name for member in live if Cause.REPAIR in member.drained_for}
    coming = sum(1 for member in live if member.name not in names and _is_young(member.pod, snapshot, now))
    updating = sum(1 for member in live if member.pod.registered and _is_updating(snapshot, member))
    room = max(
        0,
        rolling_update.budget(snapshot.nodeset, desired)
        - terminating_count(snapshot, now)
        - coming
        - updating
        - awaited,
    )
    over.sort(key=lambda one: (one.pod.name not in begun, one.since, one.pod.name))
    return frozenset(one.pod.name for one in over[:room])


def _is_updating(snapshot: Snapshot, member: Member) -> bool:
    """Whether a pod is drained for an update, which does not wait for the end of a cordon."""
    host = snapshot.host_of(member.pod)
    waits = member.pod.cordoned or (host is not None and host.cordoned)
    return Cause.UPDATE in member.drained_for and not waits


def terminating_count(snapshot: Snapshot, now: datetime) -> int:
    """How many pods are being deleted, and not for longer than that may take."""
    return sum(1 for pod in snapshot.pods if pod.deleting and (pod.gone_by is None or pod.gone_by > now))


def _is_young(pod: Pod, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod is starting, and not for so long that it may never register."""
    first_run = pod.slurmd is Slurmd.RUNNING and pod.last_ended_at is None
    begin = pod.slurmd_started_at if first_run else pod.created_at
    return not pod.registered and begin is not None and now - begin < snapshot.patience


def recheck(wanted: Iterable[Member], now: datetime) -> tuple[list[Pod], list[str]]:
    """Of the pods to recreate, those that still may be, and why the others may not.

    Parameters
    ----------
    wanted
        The pods, with a fresh answer from Slurm about their nodes.
    now
        The time; timezone-aware.
    """
    found, kept = [], []
    for member in wanted:
        if not is_repair_candidate(member):
            # It has registered, or somebody has taken the node: the next pass sees that.
            continue
        why = pod_state.why_kept(member, now)
        if why is None:
            found.append(member.pod)
        else:
            kept.append(why)
    return found, kept


def told(one: UnregisteredPod, chosen: Collection[str], now: datetime) -> str:
    """The text about such a pod in a condition."""
    text = f"{one.pod.name} has run since {_stamp(one.since)} and has not registered"
    if one.jobs:
        return f"{text}; it stays, since its node is named by jobs {named([str(job) for job in one.jobs])}"
    if one.pod.name in chosen:
        return f"{text}; it is recreated"
    if one.is_over(now):
        return f"{text}; it is recreated when maxUnavailable leaves room"
    return f"{text}; it is recreated at {_stamp(one.until)} unless it does"


def note(pod: Pod) -> str:
    """The text about a recreated pod in an Event."""
    return pod.name if pod.slurmd_started_at is None else f"{pod.name} (runs since {_stamp(pod.slurmd_started_at)})"


def _stamp(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
