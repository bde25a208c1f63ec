"""What is done about nodes that a rule has drained and that hold no job: which pods are recreated, and how often.

Only a node that is drained for its health, whose Node is still bad, and that Slurm's list of jobs proves empty, is
replaced; never one that somebody else drains or cordons by its pod. A try is written into the NodeSet's status before
anything is done, with the uid of the pod: whatever ends in between, no try is made without being counted, and none
twice for one count. After each try on a Node the pause doubles, and after the last one its nodes stay drained.

A replaced node that is not back counts for the budget of `choice`, as if it were drained still.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset.health import Replace
from slinky_api.v1alpha1.nodeset.status import MAX_REPLACEMENTS, Replacement
from slinky_operator.nodeset.disruption import availability
from slinky_operator.nodeset.health import rules
from slinky_operator.nodeset.health.choice import HealthChoice
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_state import State
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.reconcile.text import moment, stamp

TAKES: Final = timedelta(minutes=5)
"""How long a try may take; then its place is given to the next one."""

LONGEST_PAUSE: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A node that stays drained, since all tries on its Kubernetes Node were in vain."""

    node: str
    """In Slurm."""
    record: Replacement


@dataclass(frozen=True, slots=True)
class ReplacementChoice:
    """What is done about drained nodes in one pass."""

    records: tuple[Replacement, ...] = ()
    """Tries for the status, with those that begin now."""
    pods: tuple[Pod, ...] = ()
    """Pods to recreate, whose tries the status has."""
    given_up: tuple[GivenUp, ...] = ()
    is_full: bool = False
    """Whether a try waits until the status has room for another Node."""
    wake_up: float | None = None
    """Seconds until the next try may begin, or one has taken its time; None if only an event changes anything."""


def absent(snapshot: Snapshot, now: datetime) -> int:
    """How many nodes are being replaced and not drained meanwhile: they count for the budget as if they were."""
    tried = {one.pod_uid for one in snapshot.nodeset.status.replacements or ()}
    here = {
        member.name
        for member in snapshot.members
        if Cause.HEALTH in member.drained_for or (member.pod.uid in tried and not member.pod.deleting)
    }
    return len(_under_way(snapshot, now).keys() - here)


def choose(
    snapshot: Snapshot,
    live: Sequence[Member],
    health: HealthChoice,
    states: Mapping[str, State],
    causes: Mapping[str, Collection[Cause]],
    now: datetime,
) -> ReplacementChoice:
    """Choose the nodes that are replaced.

    Parameters
    ----------
    snapshot
        The snapshot, with the NodeSet's status as it is stored.
    live
        The pods that are neither being deleted nor ended.
    health
        Which nodes are drained for their health.
    states, causes
        State of each pod, and the causes for which its node is drained, by name.
    now
        The time; timezone-aware.
    """
    spec = snapshot.nodeset.spec.health
    replace = spec.replaces if spec is not None else None
    if replace is None:
        return ReplacementChoice()
    known = {one.host: one for one in snapshot.nodeset.status.replacements or () if not _is_over(one, replace, now)}
    if snapshot.nodeset.deleting or snapshot.cluster.deleting or not snapshot.slurm.readable:
        return ReplacementChoice(_listed(known))
    under_way = _under_way(snapshot, now)
    room, busy = replace.max_concurrent - len(under_way), set(under_way)
    pods: list[Pod] = []
    given_up: list[GivenUp] = []
    due = [one for one in under_way.values() if one > 0]
    is_full = False
    for member in _candidates(snapshot, live, health, states, causes):
        pod, record = member.pod, known.get(member.pod.host)
        if record is not None and record.pod_uid == pod.uid and pod.name in under_way:
            pods.append(pod)
        elif record is not None and record.pod in busy:
            # Another pod on the same Node: tries there are counted one by one.
            continue
        elif record is not None and record.tries >= replace.max_tries:
            given_up.append(GivenUp(pod.node_name, record))
        elif record is not None and (left := _pause_left(record, replace, now)) > 0:
            due.append(left)
        elif record is None and len(known) >= MAX_REPLACEMENTS:
            is_full = True
        elif room > 0:
            room -= 1
            busy.add(pod.name)
            tries = record.tries + 1 if record is not None else 1
            known[pod.host] = Replacement(host=pod.host, tries=tries, last=stamp(now), pod=pod.name, pod_uid=pod.uid)
    return ReplacementChoice(_listed(known), tuple(pods), tuple(given_up), is_full, min(due, default=None))


def why_kept(member: Member, now: datetime) -> str | None:
    """Why a pod may not be recreated for the health of its Node now, or None if it may; the last check before that.

    Parameters
    ----------
    member
        The pod, with a fresh answer from Slurm about its node.
    now
        The time; timezone-aware.
    """
    why = pod_state.why_kept(member, now)
    if why is None and Cause.HEALTH not in member.drained_for:
        return f"node {member.pod.node_name} is not drained for its health any more"
    return why


def _candidates(
    snapshot: Snapshot,
    live: Sequence[Member],
    health: HealthChoice,
    states: Mapping[str, State],
    causes: Mapping[str, Collection[Cause]],
) -> list[Member]:
    """Nodes that are drained for their health alone, proven empty, and on a Node that is bad; the longest first."""
    found = [
        member
        for member in live
        if member.name in health.bad
        and isinstance(states.get(member.name), pod_state.Drained)
        and {Cause.HEALTH, Cause.NODE_CORDON}.issuperset(causes.get(member.name, ()))
        and not _would_stay_away(snapshot, member.pod)
    ]
    return sorted(found, key=lambda member: (health.bad[member.name].since or rules.EVER, member.pod.node_name))


def _would_stay_away(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether another pod could not come up: its Node is the only one for it, and is cordoned."""
    host = snapshot.host_of(pod)
    return (pod.on_node or bool(pod.pinned_to)) and (host is None or host.cordoned)


def _under_way(snapshot: Snapshot, now: datetime) -> dict[str, float]:
    """Names of the pods that are being replaced, and how many seconds that may take still.

    The former one stands, whether it is drained at the moment or not, or the next one has yet to serve.
    """
    members = {member.name: member for member in snapshot.members}
    found = {}
    for record in snapshot.nodeset.status.replacements or ():
        begun = moment(record.last)
        if begun is None or now - begun >= TAKES:
            continue
        member = members.get(record.pod)
        is_next = member is not None and member.pod.uid != record.pod_uid
        if member is None or not is_next or not availability.is_ready(member):
            found[record.pod] = (begun + TAKES - now).total_seconds()
    return found


def _is_over(record: Replacement, replace: Replace, now: datetime) -> bool:
    """Whether a Node has all its tries again."""
    last = moment(record.last)
    return last is None or (now - last).total_seconds() >= replace.within_seconds


def _pause_left(record: Replacement, replace: Replace, now: datetime) -> float:
    """Seconds until the next try on a Node; negative if it is due."""
    last = moment(record.last)
    if last is None:
        return 0.0
    doubled = float(replace.backoff_seconds << min(record.tries - 1, 20))
    return (last - now).total_seconds() + min(doubled, LONGEST_PAUSE.total_seconds())


def _listed(known: Mapping[str, Replacement]) -> tuple[Replacement, ...]:
    return tuple(known[host] for host in sorted(known))
