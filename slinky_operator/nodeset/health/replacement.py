"""What is done about nodes that a rule has drained and that hold no job: which are replaced, and how often.

Only a node that is drained for its health, whose Node is still bad, and that Slurm's list of jobs proves empty, is
replaced; never one that somebody else drains or cordons by its pod. A try is written into the NodeSet's status before
anything is done, with the uid of the pod: whatever ends in between, no try is made without being counted, and none
twice for one count. After each try on a Node the pause doubles, and after the last one its nodes stay drained.

A replaced node that is not back counts for the budget of `choice`, as if it were drained still. What a try is for a
machine, which more than this NodeSet may use, is in `machines`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from slinky_api.v1alpha1.nodeset.health import Replace
from slinky_api.v1alpha1.nodeset.status import MAX_REPLACEMENTS, Replacement
from slinky_operator.nodeset.disruption import availability
from slinky_operator.nodeset.health import machines, rules
from slinky_operator.nodeset.health.choice import HealthChoice
from slinky_operator.nodeset.health.machines import MachineSteps
from slinky_operator.nodeset.model import machines as machine_policy
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.machines import MachineRules
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
    machines: MachineSteps = MachineSteps()  # noqa: RUF009 - frozen
    """Machines to go on with, if the policy is for machines."""
    refused: str = ""
    """Why the policy has no effect; empty if it has."""
    waits: Mapping[str, str] = field(default_factory=dict)
    """Kubernetes Nodes on which no try begins or goes on, and why."""
    wake_up: float | None = None
    """Seconds until the next try may begin, or one has taken its time; None if only an event changes anything."""


def absent(snapshot: Snapshot, now: datetime) -> frozenset[str]:
    """Pods that are being replaced and whose nodes are not drained meanwhile: they count as if they were."""
    under_way = _under_way(snapshot, now)
    if not under_way:
        return frozenset()
    tried = {one.pod_uid for one in snapshot.nodeset.status.replacements or ()}
    here = {
        member.name
        for member in snapshot.members
        if Cause.HEALTH in member.drained_for or (member.pod.uid in tried and not member.pod.deleting)
    }
    return frozenset(under_way.keys() - here)


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
    policy = spec.replaces if spec is not None else None
    stored = snapshot.nodeset.status.replacements or ()
    known = {
        one.host: one
        for one in stored
        if machines.is_marked(one, snapshot) or (policy is not None and not _is_over(one, policy, now))
    }
    if policy is None:
        waits, ends = dict(machines.left(known, snapshot)), _ends(snapshot, live)
        return ReplacementChoice(_listed(known), machines=ends, waits=waits, wake_up=min(_again(ends), default=None))
    is_machine, nodeset, readable = policy.policy.is_for_machine, snapshot.nodeset, snapshot.slurm.readable
    refused = machine_policy.refusal(policy.policy, snapshot.machine_rules, nodeset.namespace) if is_machine else ""
    if nodeset.deleting or snapshot.cluster.deleting or not readable or refused:
        ends = _ends(snapshot, live) if readable or nodeset.deleting else MachineSteps()
        waits = dict(machines.left(known, snapshot)) if refused else {}
        again = min(_again(ends), default=None)
        return ReplacementChoice(_listed(known), machines=ends, refused=refused, waits=waits, wake_up=again)
    tries = _Tries(snapshot, policy, now, known, _under_way(snapshot, now))
    for member in _candidates(snapshot, live, health, states, causes):
        tries.consider(member.pod)
    bad = [member.pod for member in live if member.name in health.bad]
    return tries.chosen_of_machines(live, bad) if is_machine else tries.chosen(_ends(snapshot, live))


class _Tries:
    """Tries that begin or go on in one pass."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Replace,
        now: datetime,
        known: dict[str, Replacement],
        under_way: Mapping[str, float],
    ) -> None:
        self._snapshot, self._policy, self._now = snapshot, policy, now
        self._known, self._under_way = known, under_way
        self._is_machine, self._owner = policy.policy.is_for_machine, machines.owner(snapshot)
        self._room, self._busy = policy.max_concurrent - len(under_way), set(under_way)
        self._pods: list[Pod] = []
        self._given_up: list[GivenUp] = []
        self._waits: dict[str, str] = {}
        self._due = [one for one in under_way.values() if one > 0]
        self._is_full = False

    def consider(self, pod: Pod) -> None:
        """Go on with the try on the Node of a pod, or begin one, or say why not."""
        record, policy = self._known.get(pod.host), self._policy
        if record is None:
            self._begin(pod, 1)
        elif record.pod_uid == pod.uid and self._goes_on(record, pod):
            self._pods.append(pod)
        elif record.pod in self._busy:
            # Another pod on the same Node: tries there are counted one by one.
            return
        elif record.tries >= policy.max_tries:
            self._given_up.append(GivenUp(pod.node_name, record))
        elif (left := _pause_left(record, policy, self._now)) > 0:
            self._due.append(left)
        else:
            self._begin(pod, record.tries + 1)

    def _goes_on(self, record: Replacement, pod: Pod) -> bool:
        """Whether there is something left to do for a try."""
        host = self._snapshot.host_of(pod)
        if record.boot_id and not machines.is_same_boot(record, host):
            return False
        if pod.name in self._under_way:
            return True
        return self._is_machine and machines.is_waiting(record, host, self._owner)

    def _begin(self, pod: Pod, number: int) -> None:
        """Count a try, if there is room for it."""
        host = self._snapshot.host_of(pod)
        rules_of_machines = self._snapshot.machine_rules or MachineRules()
        why_not = machines.why_not(host, self._owner, rules_of_machines) if self._is_machine else ""
        if number == 1 and len(self._known) >= MAX_REPLACEMENTS:
            self._is_full = True
        elif why_not:
            self._waits[pod.host] = why_not
        elif self._room > 0:
            self._room -= 1
            self._busy.add(pod.name)
            boot_id = host.boot_id if self._is_machine and host is not None else ""
            self._known[pod.host] = Replacement(
                host=pod.host, tries=number, last=stamp(self._now), pod=pod.name, pod_uid=pod.uid, boot_id=boot_id
            )

    def chosen(self, ends: MachineSteps) -> ReplacementChoice:
        """The choice, for pods."""
        return ReplacementChoice(
            _listed(self._known),
            tuple(self._pods),
            tuple(self._given_up),
            self._is_full,
            ends,
            waits=dict(machines.left(self._known, self._snapshot)),
            wake_up=min([*self._due, *_again(ends)], default=None),
        )

    def chosen_of_machines(self, live: Sequence[Member], bad: Sequence[Pod]) -> ReplacementChoice:
        """The choice, for machines."""
        snapshot, known = self._snapshot, self._known
        marks = [
            (pod.host, machines.mark_of(snapshot, known[pod.host], self._policy)) for pod in self._pods[: machines.MOST]
        ]
        hosts = snapshot.hosts or {}
        shown = frozenset(name for name, mark in marks if machines.shows(hosts.get(name), mark))
        steps = MachineSteps(tuple(marks), shown, machines.given_back(snapshot, _pods(live), bad))
        due = [*self._due, *_again(steps)]
        return ReplacementChoice(
            _listed(known),
            given_up=tuple(self._given_up),
            is_full=self._is_full,
            machines=steps,
            waits=self._waits | dict(machines.late(known, snapshot, self._now)),
            wake_up=min(due, default=None),
        )


def _ends(snapshot: Snapshot, live: Sequence[Member]) -> MachineSteps:
    """What is left to do where no machine is to be replaced."""
    return MachineSteps(given_back=machines.given_back(snapshot, _pods(live), ()))


def _again(steps: MachineSteps) -> list[float]:
    """Seconds after which it is looked again what has come of it; empty if there is nothing to look at."""
    return [machines.AGAIN] if steps.tries or steps.given_back else []


def _pods(members: Sequence[Member]) -> list[Pod]:
    return [member.pod for member in members]


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
    health_spec = snapshot.nodeset.spec.health
    replace = health_spec.replaces if health_spec is not None else None
    is_machine = replace is not None and replace.policy.is_for_machine
    found = [
        member
        for member in live
        if member.name in health.bad
        and isinstance(states.get(member.name), pod_state.Drained)
        and {Cause.HEALTH, Cause.NODE_CORDON}.issuperset(causes.get(member.name, ()))
        and (is_machine or not _would_stay_away(snapshot, member.pod))
    ]
    return sorted(found, key=lambda member: (health.bad[member.name].since or rules.EVER, member.pod.node_name))


def _would_stay_away(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether another pod could not come up: its Node is the only one for it, and is cordoned."""
    host = snapshot.host_of(pod)
    return (pod.on_node or bool(pod.pinned_to)) and (host is None or host.cordoned)


def _under_way(snapshot: Snapshot, now: datetime) -> dict[str, float]:
    """Names of the pods that are being replaced, and how many seconds that may take still.

    The former one stands, whether it is drained at the moment or not, or the next one has yet to serve. Of a try for a
    machine that is the one after another start, or on another machine.
    """
    records = snapshot.nodeset.status.replacements or ()
    members = {member.name: member for member in snapshot.members} if records else {}
    found: dict[str, float] = {}
    for record in records:
        begun, takes = moment(record.last), machines.TAKES if record.boot_id else TAKES
        if begun is None or now - begun >= takes:
            continue
        member = members.get(record.pod)
        if record.boot_id:
            is_next = not machines.is_same_boot(record, (snapshot.hosts or {}).get(record.host))
        else:
            is_next = member is not None and member.pod.uid != record.pod_uid
        if member is None or not is_next or not availability.is_ready(member):
            found[record.pod] = (begun + takes - now).total_seconds()
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
