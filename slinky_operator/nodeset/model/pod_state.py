"""The one state of each pod, computed in each pass from the pod, its Slurm node and the wanted drain.

The only thing remembered is that a pod has registered, recorded before it counts as Ready, as its condition or in the
NodeSet's status (`planning.registrations`): from then on its node may hold jobs, and a node that Slurm no longer knows
is a reason to keep the pod, not to delete it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pods.pod_facts import Pod, Slurmd
from slinky_operator.nodeset.model.snapshot import SlurmFacts
from slinky_operator.nodeset.slurm_nodes import drains, identity, registration
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slinky_operator.reconcile.text import named
from slurm_client.models import Job, Node

REGISTRATION_GRACE: Final = timedelta(seconds=30)
"""How long a slurmd that Slurm does not know may still be registering, once it runs, or once its pod exists; it takes a
second or two."""

TRIES_AGAIN: Final = timedelta(seconds=150)
"""How long a slurmd that ran before slurmctld answered may take to register: it tries again every 128 s at last, and
has first to read its configuration."""

STARTS_WITHIN: Final = timedelta(minutes=10)
"""The same before all that runs on a Kubernetes Node ends: an image may have to be pulled, and no version of the pod is
part of the proof. A pod that takes longer keeps no bad machine."""


@dataclass(frozen=True, slots=True)
class Starting:
    """Starting: Slurm does not know its slurmd, or its registration is not recorded on the pod yet.

    If Slurm cannot be asked, only a pod whose slurmd never started is known to be in this state.
    """

    why: str = ""
    """What delays it, if known."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Registered, and not drained by the operator; `foreign` is the reason of somebody else's drain."""

    foreign: str = ""


@dataclass(frozen=True, slots=True)
class Misregistered:
    """Known to Slurm, which rejects the values of its slurmd's registration; it gets no jobs. Jobs on it continue."""

    why: str
    """The reason that Slurm shows."""


@dataclass(frozen=True, slots=True)
class Draining:
    """Drained by the operator, or about to be, and not proven empty."""

    causes: frozenset[Cause]
    since: datetime | None
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Drained:
    """Drained, and empty by node state and jobs."""

    causes: frozenset[Cause]


@dataclass(frozen=True, slots=True)
class Deleting:
    """Being deleted from Kubernetes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """All its containers have ended for good, as reported by its kubelet: no job can run in it."""


class Doubt(StrEnum):
    """Why the state of a pod is unknown."""

    NO_ANSWER = "no answer"
    """Slurm cannot be asked."""
    FORGOTTEN = "forgotten"
    """Its node had registered and Slurm has lost it: jobs that Slurm does not show may run there."""
    FOREIGN_RECORD = "foreign record"
    """The record of its node's name does not belong to this NodeSet."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Slurm cannot answer, or the answer does not fit. Nothing is deleted."""

    why: str
    """For people."""
    doubt: Doubt = Doubt.NO_ANSWER


_READY: Final = Ready()

State = Starting | Ready | Misregistered | Draining | Drained | Deleting | Ended | Unknown


def is_known(member: Member, owner: str) -> bool:
    """Whether the record is the pod's, as far as can be known before its kubelet reports that it runs."""
    pod, record = member.pod, member.record
    if record is None or pod.slurmd_started_at is not None:
        return member.ownership is RecordOwnership.OURS
    return identity.bond(record, owner=owner, pod_uid=pod.uid, slurmd_started_at=pod.created_at) is RecordOwnership.OURS


def known(members: Iterable[Member], owner: str) -> frozenset[str]:
    """Names of the pods that Slurm knows although it is not recorded on them yet."""
    return frozenset(member.name for member in members if not member.pod.registered and is_known(member, owner))


def classify(member: Member, slurm: SlurmFacts, causes: Collection[Cause]) -> State:  # noqa: PLR0911 - one for each
    """Return the state of a pod.

    Parameters
    ----------
    member
        The pod with its node.
    slurm
        Whether Slurm can be asked, and whether jobs were queried: if they were not, nothing counts as drained.
    causes
        The causes for which its node is to be drained.
    """
    pod, node = member.pod, member.record
    if pod.slurmd is Slurmd.ENDED:
        return Ended()
    if pod.deleting:
        return Deleting()
    if not slurm.readable:
        if not pod.registered and pod.slurmd is Slurmd.NEVER:
            return Starting(pod.stuck)
        return Unknown(slurm.why)
    if node is None:
        if pod.registered:
            return Unknown(f"Slurm does not know node {pod.node_name}, which had registered", Doubt.FORGOTTEN)
        return Starting(pod.stuck)
    match member.ownership:
        case RecordOwnership.FOREIGN:
            return Unknown(_whose(pod, node), Doubt.FOREIGN_RECORD)
        case RecordOwnership.PREDECESSOR if not pod.registered:
            return Starting(pod.stuck or "the record of its predecessor is still there")
        case _:
            return _registered(member, node, frozenset(causes), jobs_known=slurm.jobs is not None)


def _registered(member: Member, node: Node, causes: frozenset[Cause], *, jobs_known: bool) -> State:
    if not member.pod.registered:
        # It counts from the pass after the one that records it.
        return Starting("registered just now")
    if not causes and not drains.is_aside(node):
        return _READY
    wanted, causes = causes, causes | drains.causes_in(node)
    if not wanted and registration.is_rejected(node) and not drains.is_foreign(node):
        # A node that the operator had drained before cannot be undrained either.
        return Misregistered(node.reason)
    if not causes and not drains.is_ours(node):
        return Ready(node.reason if drains.is_foreign(node) else "")
    if jobs_known and drains.is_drained(node, member.jobs):
        return Drained(causes)
    since = node.reason_changed_at if drains.is_ours(node) else None
    return Draining(causes, since, member.jobs)


def _whose(pod: Pod, node: Node) -> str:
    return f"node {pod.node_name} in Slurm is somebody else's{identity.static_hint(node)}"


def may_delete_without_slurm(pod: Pod) -> bool:
    """Whether a pod cannot hold a job, whatever Slurm would answer: no slurmd of it has ever run.

    For a bound pod, a missing report is not enough: the kubelet's report of a start may still be on the way. The
    kubelet must have reported that it cannot start the container.
    """
    if pod.slurmd is Slurmd.ENDED:
        return True
    if pod.registered or pod.slurmd is not Slurmd.NEVER:
        return False
    return not pod.bound or bool(pod.stuck)


def _why_awaited(pod: Pod, now: datetime, since: datetime | None = None) -> str | None:
    """Why a pod that Slurm has never known may not be deleted yet, or None if it may.

    A kubelet reports a start after the fact. A slurmd that starts while its pod is being deleted still registers, and
    Slurm gives jobs to its node, which ends a moment later: so it must register first, and be drained.
    """
    if pod.slurmd is Slurmd.RUNNING:
        started = pod.slurmd_started_at
        is_recent = started is None or _is_recent(pod, started, now)
        # It could not register before slurmctld answered.
        tries_again = started is not None and since is not None and started <= since and now - since < TRIES_AGAIN
        return f"slurmd of {pod.name} may be about to register" if is_recent or tries_again else None
    begun = pod.bound_at or pod.created_at
    if pod.bound and not pod.stuck and begun is not None and _is_recent(pod, begun, now):
        return f"slurmd of {pod.name} may be about to start"
    return None


def _is_recent(pod: Pod, begun: datetime, now: datetime) -> bool:
    """Whether what began just now may lead to a registration.

    The times that a pod shows are those of other clocks, so it counts when the operator has seen it. One that began so
    long ago that no clock differs by that was only not seen before: another operator led.
    """
    seen = begun if pod.seen_at is None or now - begun >= STARTS_WITHIN else pod.seen_at
    return now - seen < REGISTRATION_GRACE


def why_machine_waits(member: Member, since: datetime, now: datetime) -> str | None:
    """Why the Kubernetes Node of a pod may not be said to hold no job, though the pod may be deleted; None if it may.

    A machine ends, which nothing withdraws: a slurmd that registers after the proof gets jobs at once. One that its
    kubelet could not start may start the next time.

    Parameters
    ----------
    member
        As for `why_kept`.
    since
        Since when slurmctld answers: no slurmd could register before.
    now
        The time; timezone-aware.
    """
    pod = member.pod
    if member.record is not None or pod.slurmd is Slurmd.ENDED or pod.registered:
        return None
    begun = max(filter(None, (since, pod.bound_at or pod.created_at, pod.slurmd_started_at)))
    return None if now - begun >= STARTS_WITHIN else f"slurmd of {pod.name} has not registered yet"


def why_kept(member: Member, now: datetime) -> str | None:  # noqa: PLR0911 - one for each
    """Why a pod may not be deleted now, or None if it may.

    This is the last check before a delete.

    Parameters
    ----------
    member
        The pod from the cache, with a fresh answer from Slurm about its node. The delete carries its uid, and its
        version if that is part of the proof.
    now
        The time, for slurmds that may still register; timezone-aware.
    """
    pod, node, jobs = member.pod, member.record, member.jobs
    if pod.slurmd is Slurmd.ENDED:
        return None
    if node is None:
        if pod.registered and not member.is_idle:
            return f"Slurm does not know node {pod.node_name}, which had registered"
        if jobs:
            return f"jobs name node {pod.node_name}, which Slurm does not show"
        return _why_awaited(pod, now, member.answers_since)
    if member.ownership is RecordOwnership.FOREIGN:
        return _whose(pod, node)
    if drains.is_drained(node, jobs):
        return None
    if jobs:
        return f"node {pod.node_name} holds jobs {named([str(job.id) for job in jobs])}"
    return f"node {pod.node_name} is {node.state}"
