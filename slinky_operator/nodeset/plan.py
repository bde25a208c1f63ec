"""From what is to what is to be done: pure, and the only place where the parts of the rules come together.

A plan is made from a frozen snapshot and the time, and says what to do, what to tell, and when to look again. Nothing
in it is remembered: what was begun is read back from Slurm's reasons and the pods' conditions.

What of the picture is old can at worst make a plan begin something that `act` then finds done or no longer wanted. For
what cannot be undone, deletes above all, `act` asks again and puts the answer to `podstate.why_kept` and
`records.to_delete`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from slinky_api import labels
from slinky_operator.nodeset import (
    claims,
    creation,
    deadline,
    drain,
    guard,
    history,
    identity,
    places,
    podstate,
    protection,
    records,
    restarts,
    rollout,
    shown,
    takeover,
    traits,
    victims,
)
from slinky_operator.nodeset.actions import (
    Action,
    AddFinalizer,
    DeleteClaims,
    DeleteIdlePods,
    DeletePods,
    DeleteRecords,
    Drain,
    DropRevisions,
    EndDrains,
    EnsureGuard,
    LetGo,
    MarkDown,
    MarkRecords,
    MarkRegistered,
    MarkRestarted,
    Protect,
    RecordRevision,
    RenumberRevision,
    SetTraits,
    Show,
    TakeOver,
    Undrain,
    Unprotect,
)
from slinky_operator.nodeset.drain import Cause
from slinky_operator.nodeset.facts import Pod, Slurmd
from slinky_operator.nodeset.hosts import Host
from slinky_operator.nodeset.identity import Bond
from slinky_operator.nodeset.layout import Layout, lay_out
from slinky_operator.nodeset.podstate import State
from slinky_operator.nodeset.snapshot import Snapshot
from slurm_client.models import Job, Node

SOON: Final = 2.0
"""Seconds until the next look where an end is expected that no node event tells of, such as a suspended job's."""

LATER: Final = 30.0
"""Seconds until the next look where an event is expected: the net below the events."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a plan found, for status and Events."""

    desired: int | None
    """Pods that are wanted; None where the mode is not served."""
    states: Mapping[str, State] = field(default_factory=dict)
    """State of each pod, by name."""
    causes: Mapping[str, frozenset[Cause]] = field(default_factory=dict)
    """What each pod's node is to be drained for, by name."""
    victims: tuple[str, ...] = ()
    """Pods that are too many, in the order in which they were chosen."""
    blocked: Mapping[str, str] = field(default_factory=dict)
    """Names of nodes whose pods cannot be created yet, and why."""
    waiting_for_slurm: tuple[str, ...] = ()
    """Nodes without a pod that Slurm itself must give up first."""
    skip_drain: bool = False
    overdue: Mapping[str, deadline.Overdue] = field(default_factory=dict)
    """Nodes whose drain has taken longer than the spec allows, by name."""
    conflicts: Mapping[str, str] = field(default_factory=dict)
    """Nodes that cannot be made because their name is somebody else's, and whose."""
    misplaced: tuple[str, ...] = ()
    """Pods on Kubernetes Nodes that no longer match."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    assessment: Assessment
    actions: tuple[Action, ...] = ()
    wake_up: float | None = None
    """Seconds until the next pass even if nothing changes."""
    needs_jobs: bool = False
    """Whether the jobs must be asked for and a new plan made."""
    fresh_jobs: bool = False
    """Whether they must be asked for just now: a name may be used again on which a suspended job does not show."""


def plan(snapshot: Snapshot, now: datetime) -> Plan:  # noqa: C901, PLR0912 - the order of things stands in one place
    """Make the plan.

    Parameters
    ----------
    snapshot
        Everything known.
    now
        The time; knows its zone.
    """
    nodeset = snapshot.nodeset
    live = [pod for pod in snapshot.pods if not pod.deleting and pod.slurmd is not Slurmd.ENDED]
    layout = lay_out(snapshot, live)
    desired = layout.desired
    if not nodeset.deleting and labels.FINALIZER_NODESET_DRAIN not in nodeset.metadata.finalizers:
        return Plan(Assessment(desired), (TakeOver(), AddFinalizer()))
    if not nodeset.deleting and not snapshot.mode_is_fixed:
        # The status of this pass fixes it: before that, no pod is made that another mode would not know.
        return Plan(Assessment(desired))
    skip = nodeset.deleting and labels.is_true(nodeset.metadata.annotations, labels.ANNOTATION_SKIP_DRAIN)
    orphans = _orphans(snapshot)
    if not layout.missing and records.more_to_come(snapshot.pods, now) is not None:
        # The others will follow within seconds, and are settled with them in the same few calls.
        orphans = [node for node in orphans if drain.is_busy(node)]
    if _needs_jobs(snapshot, live, layout, orphans, now):
        return Plan(Assessment(desired), needs_jobs=True, fresh_jobs=bool(orphans and layout.missing))

    chosen = _chosen(snapshot, layout, now)
    causes = _causes(snapshot, live, layout, chosen, now)
    states = {
        pod.name: podstate.classify(pod, snapshot.slurm, causes.get(pod.name, frozenset()), snapshot.owner)
        for pod in snapshot.pods
    }
    actions: list[Action] = []
    late = _overdue(snapshot, live, causes, now) if snapshot.slurm.readable and not skip else []
    settling = records.Settling()
    if skip:
        actions += _delete_all(snapshot)
    else:
        actions += _deletions_without_slurm(snapshot, live, causes)
        if snapshot.slurm.readable:
            settling = records.settle(orphans, snapshot.slurm.jobs, _ended(snapshot))
            slurm = [*_slurm_actions(snapshot, live, causes, now), *_endings(late, causes)]
            actions = [*slurm, *actions, *_traits(snapshot, live)]
        actions = [*_protections(snapshot, live, states, causes), *actions, *_showings(snapshot, live, states, actions)]
    if snapshot.slurm.readable:
        actions += _restarted(snapshot, live, now)
        if settling.down:
            actions.append(MarkDown(settling.down))
        if settling.delete:
            actions.append(DeleteRecords(settling.delete))
    record, forget = _upkeep(snapshot)
    actions += record
    unguarded = guard.without(snapshot.pods, snapshot.guard)
    if unguarded and not skip:
        # Behind all that concerns jobs: a refusal here must not hold that up.
        actions.append(EnsureGuard(unguarded))
    created = creation.Creation()
    if layout.missing and creation.is_possible(snapshot):
        created = creation.choose(snapshot, layout, live)
        if created.pods:
            actions += [*([] if snapshot.guard or unguarded else [EnsureGuard()]), *created.pods]
    actions += [*forget, *_claims_to_delete(snapshot, layout)]
    if nodeset.deleting and not snapshot.pods and not settling.down:
        actions.append(LetGo())
    assessment = Assessment(
        desired,
        states,
        causes,
        tuple(pod.name for pod in chosen),
        created.blocked,
        (*settling.busy, *settling.down),
        skip,
        {one.pod.node_name: one for one in late},
        created.conflicts,
        tuple(pod.name for pod in layout.misplaced),
    )
    return Plan(assessment, tuple(actions), _wake_up(snapshot, assessment, live, now))


def _orphans(snapshot: Snapshot) -> list[Node]:
    """Records of this NodeSet under whose names no pod is alive."""
    standing = {pod.node_name for pod in snapshot.pods if pod.slurmd is not Slurmd.ENDED}
    return [
        node
        for node in snapshot.slurm.nodes.values()
        if node.name not in standing
        and places.pod_name(snapshot.nodeset, node.name) not in snapshot.strangers
        and identity.is_tagged(node, snapshot.owner)
    ]


def _ended(snapshot: Snapshot) -> frozenset[str]:
    return snapshot.ended | {pod.node_name for pod in snapshot.pods if pod.slurmd is Slurmd.ENDED}


def _needs_jobs(
    snapshot: Snapshot, live: Sequence[Pod], layout: Layout, orphans: Sequence[Node], now: datetime
) -> bool:
    if not snapshot.slurm.readable or snapshot.slurm.jobs is not None:
        return False
    if layout.excess or layout.misplaced:
        return True
    if any(not drain.is_foreign(node) or drain.is_busy(node) for node in orphans):
        return True
    if orphans and layout.missing:
        # One of their names may be used again; a suspended job on it does not show in the node's state.
        return True
    for pod in live:
        node = snapshot.slurm.nodes.get(pod.node_name)
        matters = node is not None and (drain.is_ours(node) or _is_suspect(snapshot, pod, node, now))
        if matters or _cordons(snapshot, pod):
            return True
    return bool(rollout.outdated(live, snapshot.nodeset, snapshot.revision))


def _chosen(snapshot: Snapshot, layout: Layout, now: datetime) -> tuple[Pod, ...]:
    """The pods that are too many, in order."""
    if snapshot.slurm.readable:
        return victims.choose(layout.staying, layout.excess, snapshot.slurm, now)
    # With Slurm out of sight only those can be chosen that need no asking.
    free = [pod for pod in layout.staying if podstate.is_free_blindly(pod)]
    free.sort(key=lambda pod: -(pod.ordinal if pod.ordinal is not None else -1))
    return tuple(free[: layout.excess])


def _causes(
    snapshot: Snapshot, live: Sequence[Pod], layout: Layout, chosen: Sequence[Pod], now: datetime
) -> dict[str, frozenset[Cause]]:
    """What the node of each pod is to be drained for."""
    causes: dict[str, set[Cause]] = {pod.name: set() for pod in live}
    if snapshot.nodeset.deleting:
        removal = Cause.DELETION
    elif snapshot.cluster.deleting:
        removal = Cause.CLUSTER_DELETION
    else:
        removal = Cause.SCALE_IN
    for pod in chosen:
        causes[pod.name].add(removal)
    for pod in layout.misplaced:
        causes[pod.name].add(Cause.NODE_MISMATCH)
    for pod in live:
        causes[pod.name] |= _cordons(snapshot, pod)
    staying = [pod for pod in live if not causes[pod.name]]
    if layout.desired and not snapshot.revision.problems:
        for name in _updates(snapshot, staying, layout.desired, now):
            causes[name].add(Cause.UPDATE)
    return {name: frozenset(found) for name, found in causes.items() if found}


def _cordons(snapshot: Snapshot, pod: Pod) -> frozenset[Cause]:
    """Who wants the node kept free: the pod's annotation, its Kubernetes Node."""
    host = snapshot.host_of(pod)
    found = {Cause.CORDON} if pod.cordoned else set()
    return frozenset(found | {Cause.NODE_CORDON} if host is not None and host.cordoned else found)


def _updates(snapshot: Snapshot, staying: Sequence[Pod], desired: int, now: datetime) -> frozenset[str]:
    outdated = rollout.outdated(staying, snapshot.nodeset, snapshot.revision)
    if not outdated:
        return frozenset()
    nodes = snapshot.slurm.nodes
    begun = {
        pod.name for pod in outdated if pod.node_name in nodes and Cause.UPDATE in drain.causes_in(nodes[pod.node_name])
    }
    serving = sum(1 for pod in staying if pod.name not in begun and serves(pod, snapshot, now))
    return rollout.choose(
        outdated,
        allowed=rollout.budget(snapshot.nodeset, desired),
        unavailable=max(0, desired - serving),
        begun=begun,
        # Not `serves`: what only a drain of ours keeps from it comes back with an undrain, and is not broken.
        healthy=lambda pod: is_ready(pod, snapshot),
        rank=lambda pod: victims.rank(pod, snapshot.slurm, now),
    )


def serves(pod: Pod, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod is available: it has come up, and we do not drain it."""
    node = snapshot.slurm.nodes.get(pod.node_name)
    return node is not None and not drain.is_ours(node) and has_come_up(pod, snapshot, now)


def has_come_up(pod: Pod, snapshot: Snapshot, now: datetime) -> bool:
    """Whether a pod is registered, responding, and Ready for long enough."""
    if not is_ready(pod, snapshot) or pod.ready_since is None:
        return False
    return (now - pod.ready_since).total_seconds() >= snapshot.nodeset.spec.min_ready_seconds


def is_ready(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a pod is Ready: to Kubernetes, and to Slurm."""
    node = snapshot.slurm.nodes.get(pod.node_name)
    if pod.deleting or pod.ready_since is None or not pod.registered or node is None:
        return False
    if podstate.bond_of(pod, node, snapshot.owner) is not Bond.OURS:
        return False
    return not node.is_down and not node.is_not_responding


def _delete_all(snapshot: Snapshot) -> list[Action]:
    going = tuple(pod for pod in snapshot.pods if not pod.deleting)
    return [DeletePods(going, forced=True)] if going else []


def _deletions_without_slurm(
    snapshot: Snapshot, live: Sequence[Pod], causes: Mapping[str, frozenset[Cause]]
) -> list[Action]:
    """Pods that have ended, and those to be removed in which no slurmd has run."""
    ended = tuple(pod for pod in snapshot.pods if pod.slurmd is Slurmd.ENDED and not pod.deleting)
    never = tuple(
        pod
        for pod in live
        if causes.get(pod.name, frozenset()) & drain.REMOVAL
        and podstate.is_free_blindly(pod)
        # Where a kubelet has the pod and Slurm can be asked, it is.
        and not (snapshot.slurm.readable and pod.bound)
    )
    return [DeleteIdlePods((*ended, *never))] if ended or never else []


def _slurm_actions(  # noqa: C901 - one line for each kind
    snapshot: Snapshot, live: Sequence[Pod], causes: Mapping[str, frozenset[Cause]], now: datetime
) -> list[Action]:
    """What needs Slurm's word: registrations, undrains, drains, and deletes of pods that may have held jobs."""
    registered: list[Pod] = []
    unmarked: list[Pod] = []
    undrain: list[str] = []
    wanted: dict[tuple[frozenset[Cause], str], list[str]] = {}
    delete: list[Pod] = []
    jobs = snapshot.slurm.jobs or {}
    for pod in live:
        node = snapshot.slurm.nodes.get(pod.node_name)
        bond = podstate.bond_of(pod, node, snapshot.owner) if node is not None else None
        why = causes.get(pod.name, frozenset())
        if bond is Bond.OURS and not pod.registered:
            registered.append(pod)
        if node is not None and takeover.is_named_in(node, snapshot.nodeset.namespace, pod.name):
            unmarked.append(pod)
        if bond is Bond.FOREIGN:
            continue
        if node is not None and not why and drain.is_ours(node) and protection.may_undrain(snapshot.nodeset, pod):
            undrain.append(pod.node_name)
        if node is not None and why and drain.needs_write(node, why):
            host = snapshot.host_of(pod) if Cause.NODE_CORDON in why else None
            words = host.why_cordoned if host is not None else ""
            wanted.setdefault((why, words), []).append(pod.node_name)
        elif why & drain.REMOVAL and pod.bound:
            held = jobs.get(pod.node_name, ())
            if podstate.why_kept(pod, node, held, snapshot.owner, now) is None:
                delete.append(pod)
    actions: list[Action] = [MarkRecords(tuple(unmarked))] if unmarked else []
    if registered:
        actions.append(MarkRegistered(tuple(registered)))
    if undrain:
        actions.append(Undrain(tuple(undrain)))
    actions += [
        Drain(
            tuple(names), drain.reason(why, snapshot.owner, words), why, tuple(_note(name, jobs, now) for name in names)
        )
        for (why, words), names in sorted(wanted.items(), key=lambda item: (sorted(item[0][0]), item[0][1]))
    ]
    if delete:
        actions.append(DeletePods(tuple(delete)))
    return actions


def _protections(
    snapshot: Snapshot, live: Sequence[Pod], states: Mapping[str, State], causes: Mapping[str, frozenset[Cause]]
) -> list[Action]:
    """Pods that are to come into the PodDisruptionBudget, and those that may leave it."""
    wanted = {
        pod.name: protection.is_wanted(snapshot.nodeset, states[pod.name], causes.get(pod.name, frozenset()))
        for pod in live
    }
    protect = tuple(pod for pod in live if wanted[pod.name] and not pod.protected)
    lift = tuple(pod for pod in live if pod.protected and not wanted[pod.name])
    return [*([Protect(protect)] if protect else []), *([Unprotect(lift)] if lift else [])]


def _showings(
    snapshot: Snapshot, live: Sequence[Pod], states: Mapping[str, State], actions: Sequence[Action]
) -> list[Action]:
    """What pods are to show of their nodes; those that go now need not."""
    if not snapshot.slurm.readable:
        return []
    going = {pod.name for action in actions if isinstance(action, DeletePods) for pod in action.pods}
    nodes = snapshot.slurm.nodes
    changes = [shown.change(pod, nodes.get(pod.node_name), states[pod.name]) for pod in live if pod.name not in going]
    found = tuple(one for one in changes if one is not None)
    return [Show(found)] if found else []


def _overdue(
    snapshot: Snapshot, live: Sequence[Pod], causes: Mapping[str, frozenset[Cause]], now: datetime
) -> list[deadline.Overdue]:
    """Nodes on which the jobs have had their time, by what the picture shows."""
    slurm = snapshot.slurm
    wanted = [(pod, causes[pod.name]) for pod in live if pod.bound and causes.get(pod.name)]
    return deadline.overdue(wanted, slurm.nodes, slurm.jobs or {}, snapshot.nodeset.spec.drain, snapshot.owner, now)


def _traits(snapshot: Snapshot, live: Sequence[Pod]) -> list[Action]:
    """What their Kubernetes Nodes give to the Slurm nodes of our pods."""
    found: dict[str, Host] = {}
    for pod in live:
        node, host = snapshot.slurm.nodes.get(pod.node_name), snapshot.host_of(pod)
        if node is None or host is None or podstate.bond_of(pod, node, snapshot.owner) is not Bond.OURS:
            continue
        if traits.missing(node, host) is not None:
            found[pod.node_name] = host
    return [SetTraits(found)] if found else []


def _is_suspect(snapshot: Snapshot, pod: Pod, node: Node, now: datetime) -> bool:
    # A Slurm of somebody else's may be told to leave a node DOWN until an administrator has looked at it.
    return not snapshot.cluster.external and restarts.is_suspect(pod, node, now)


def _restarted(snapshot: Snapshot, live: Sequence[Pod], now: datetime) -> list[Action]:
    """Pods whose containers were started anew, with which all ended that Slurm still shows on their nodes."""
    slurm, found = snapshot.slurm, []
    for pod in live:
        node = slurm.nodes.get(pod.node_name)
        held = (slurm.jobs or {}).get(pod.node_name, ())
        if node is None or not _is_suspect(snapshot, pod, node, now):
            continue
        if restarts.has_lost_all(pod, node, held, snapshot.owner):
            found.append(pod)
    return [MarkRestarted(tuple(found))] if found else []


def _endings(late: Sequence[deadline.Overdue], causes: Mapping[str, frozenset[Cause]]) -> list[Action]:
    acting = tuple((one.pod, causes[one.pod.name]) for one in late if one.acts)
    return [EndDrains(acting)] if acting else []


def _note(name: str, jobs: Mapping[str, tuple[Job, ...]], now: datetime) -> str:
    """A node with what it holds, for an Event."""
    held = jobs.get(name, ())
    if not held:
        return name
    numbers = ", ".join(str(job.id) for job in held)
    return f"{name} (jobs {numbers}, {victims.seconds_lost(held, now):.0f} s on it)"


def _upkeep(snapshot: Snapshot) -> tuple[list[Action], list[Action]]:
    """What is to be recorded of revisions before pods are made, and forgotten after; nothing while none can be made."""
    nodeset, revision = snapshot.nodeset, snapshot.revision
    if nodeset.deleting or revision.problems:
        return [], []
    found = history.upkeep(
        revision.hash,
        revision.recorded,
        current=revision.current,
        carried={pod.revision for pod in snapshot.pods},
        limit=nodeset.spec.revision_history_limit,
    )
    record: list[Action] = [RecordRevision(found.record)] if found.record is not None else []
    if found.renumber is not None:
        record.append(RenumberRevision(*found.renumber))
    return record, [DropRevisions(found.drop)] if found.drop else []


def _claims_to_delete(snapshot: Snapshot, layout: Layout) -> list[Action]:
    """Claims of pods that went with a scale-in, where the spec wants them to go; those of a deletion go last of all."""
    nodeset = snapshot.nodeset
    if nodeset.spec.persistent_volume_claim_retention_policy.when_scaled != "Delete":
        return []
    if layout.desired is None or nodeset.deleting or not snapshot.cluster.exists or snapshot.cluster.deleting:
        return []
    # Pods that were taken over may have other names than those that will come after them.
    standing = {name for pod in snapshot.pods for name in (pod.name, places.pod_name(nodeset, pod.node_name))}
    left = claims.left_over(snapshot.claims, standing, layout.awaited)
    return [DeleteClaims(left)] if left else []


def _wake_up(snapshot: Snapshot, assessment: Assessment, live: Sequence[Pod], now: datetime) -> float | None:
    """When to look again although nothing has happened."""
    times = [*_deadlines(snapshot, assessment, now), *_gone_soon(snapshot, now)]
    states = assessment.states.values()
    if assessment.waiting_for_slurm:
        times.append(SOON)
    if assessment.blocked or any(isinstance(state, podstate.Unknown | podstate.Starting) for state in states):
        times.append(LATER)
    for pod in snapshot.pods:
        if isinstance(assessment.states.get(pod.name), podstate.Draining | podstate.Drained):
            node = snapshot.slurm.nodes.get(pod.node_name)
            # A job that does not show in the node's state ends without a node event.
            times.append(SOON if node is not None and node.is_drain and not drain.is_busy(node) else LATER)
    for pod in live:
        if pod.slurmd is Slurmd.RUNNING and not pod.registered and pod.name in assessment.causes:
            times.append(SOON)
        if pod.ready_since is not None and pod.registered:
            left = snapshot.nodeset.spec.min_ready_seconds - (now - pod.ready_since).total_seconds()
            if left > 0:
                times.append(left)
    return min(times, default=None)


def _gone_soon(snapshot: Snapshot, now: datetime) -> list[float]:
    """Seconds until records are settled that wait for others."""
    left = records.more_to_come(snapshot.pods, now)
    return [left] if left is not None else []


def _deadlines(snapshot: Snapshot, assessment: Assessment, now: datetime) -> list[float]:
    """Seconds until each drain has taken too long."""
    spec, nodes = snapshot.nodeset.spec.drain, snapshot.slurm.nodes
    draining = [(nodes[pod.node_name], pod) for pod in snapshot.pods if pod.node_name in nodes]
    left = [deadline.left(node, assessment.causes.get(pod.name, frozenset()), spec, now) for node, pod in draining]
    return [seconds for seconds in left if seconds is not None and seconds > 0]
