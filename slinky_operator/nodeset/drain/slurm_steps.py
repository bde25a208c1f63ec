"""The steps for existing pods that depend on Slurm's answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from slinky_operator.nodeset.disruption import eviction, rolling_update, victims
from slinky_operator.nodeset.drain import deadline, forgotten_ends, pod_condition, slurmd_questions
from slinky_operator.nodeset.model import actions, kubernetes_nodes, pod_state
from slinky_operator.nodeset.model.member import Member
from slinky_operator.nodeset.model.pod_state import State
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains, identity, kubernetes_features
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.nodeset.slurm_nodes.identity import RecordOwnership
from slinky_operator.nodeset.slurm_nodes.kubernetes_features import Traits
from slinky_operator.reconcile.text import named


def marks_of_records(snapshot: Snapshot, live: Sequence[Member]) -> list[actions.Action]:
    """Mark the records of pods that were taken over.

    Parameters
    ----------
    live
        The pods that are neither being deleted nor ended.
    """
    namespace = snapshot.nodeset.namespace
    unmarked = tuple(
        member.pod
        for member in live
        if member.record is not None and identity.is_named_in(member.record, namespace, member.pod.name)
    )
    return [actions.MarkRecords(unmarked)] if unmarked else []


def undrains(
    snapshot: Snapshot, live: Sequence[Member], causes: Mapping[str, frozenset[Cause]]
) -> list[actions.Action]:
    """Undrain nodes that no cause keeps drained; for parameters see `drains_to_write`."""
    found = tuple(
        member.pod.node_name for member in live if not causes.get(member.name) and _may_undrain(snapshot, member)
    )
    return [actions.Undrain(found)] if found else []


def drains_to_write(
    snapshot: Snapshot,
    live: Sequence[Member],
    causes: Mapping[str, frozenset[Cause]],
    unhealthy: Mapping[str, str],
    now: datetime,
) -> list[actions.Action]:
    """Drain nodes for which there is a cause: one action for each set of causes and reason.

    Parameters
    ----------
    live
        The pods that are neither being deleted nor ended.
    causes
        The causes for which the node of each pod is drained, by name of the pod.
    unhealthy
        What the reason says of the Node of a pod that is drained for its health, by name of the pod.
    now
        The time; timezone-aware.
    """
    alike: dict[tuple[frozenset[Cause], str], list[Member]] = {}
    for member in live:
        why = causes.get(member.name, frozenset())
        if _needs_drain(snapshot, member, why):
            host = snapshot.host_of(member.pod) if Cause.NODE_CORDON in why else None
            request = snapshot.drain_request_of(member.pod)
            told = [
                host.why_cordoned if host is not None else "",
                unhealthy.get(member.name, ""),
                request.words if request is not None else "",
            ]
            words = kubernetes_nodes.one_line("; ".join(filter(None, told)))
            alike.setdefault((why, words), []).append(member)
    return [
        actions.Drain(
            tuple(member.pod.node_name for member in members),
            drains.reason(why, snapshot.owner, words),
            why,
            tuple(_note(member, now) for member in members),
        )
        for (why, words), members in sorted(alike.items(), key=lambda item: (sorted(item[0][0]), item[0][1]))
    ]


def deletions_of_drained_pods(
    snapshot: Snapshot, live: Sequence[Member], causes: Mapping[str, frozenset[Cause]], now: datetime
) -> list[actions.Action]:
    """Delete pods to be removed whose nodes are drained and empty; for parameters see `drains_to_write`.

    Pods that are removed for a repair alone are recreated, and checked by other rules.
    """
    delete: list[Pod] = []
    repair: list[Pod] = []
    for member in live:
        removal = causes.get(member.name, frozenset()) & drains.REMOVAL
        if not removal or not member.pod.bound or member.ownership is RecordOwnership.FOREIGN:
            continue
        if _needs_drain(snapshot, member, causes[member.name]) or pod_state.why_kept(member, now) is not None:
            continue
        (repair if removal == {Cause.REPAIR} else delete).append(member.pod)
    return [
        *([actions.DeletePods(tuple(delete))] if delete else []),
        *([actions.Repair(tuple(repair))] if repair else []),
    ]


def _is_open(member: Member) -> bool:
    """Whether the drain of a pod's node may be written: the record is not somebody else's, nor is its drain.

    A drain whose reason slurmctld has overwritten may be somebody else's.
    """
    if member.record is None or member.ownership is RecordOwnership.FOREIGN:
        return False
    return not pod_condition.previous_foreign_reason(member)


def _needs_drain(snapshot: Snapshot, member: Member, why: frozenset[Cause]) -> bool:
    """Whether a drain for these causes is to be written."""
    node = member.record
    if node is None or not why or not _is_open(member):
        return False
    return drains.needs_write(node, why) and not _goes_on(snapshot, member, why)


def _goes_on(snapshot: Snapshot, member: Member, why: frozenset[Cause]) -> bool:
    """Whether the drain of an update stands while its Node, or the pod, is cordoned: its clock is not started again.

    The update waits for the end of the cordon, and nothing has a deadline meanwhile; jobs that are still there then
    have had the time since the drain began. An update that is not wanted any more does not count.
    """
    if not why <= drains.CORDONS or Cause.UPDATE not in member.drained_for:
        return False
    if Cause.DRAIN_REQUEST in why and Cause.DRAIN_REQUEST not in member.drained_for:
        # It outlives its request, which is found by the reason.
        return False
    known = pod_state.known((member,), snapshot.owner)
    return bool(rolling_update.outdated((member,), snapshot.nodeset, snapshot.revision, known))


def _may_undrain(snapshot: Snapshot, member: Member) -> bool:
    """Whether a node may be undrained.

    A record that outlived its pod is used again: it stays drained until the new slurmd has registered.
    """
    node = member.record
    if node is None or not node.is_drain or not _is_open(member):
        return False
    is_up = member.pod.registered or member.ownership is RecordOwnership.OURS
    return is_up and drains.may_be_given_back(node) and eviction.may_undrain(snapshot.nodeset, member.pod)


def give_traits(snapshot: Snapshot, live: Sequence[Member]) -> list[actions.Action]:
    """Set the features and the topology of the NodeSet's nodes from their Kubernetes Nodes."""
    found: dict[str, Traits] = {}
    places = snapshot.nodeset.spec.topology
    for member in live:
        node, host = member.record, snapshot.host_of(member.pod)
        if node is None or host is None or member.ownership is not RecordOwnership.OURS:
            continue
        wanted = kubernetes_features.traits(host, places)
        refused = snapshot.refused_traits.get(member.pod.node_name)
        if refused is not None and refused.wanted == wanted:
            # It would be refused again; to ask costs a list of all nodes.
            continue
        if kubernetes_features.missing(node, wanted) is not None:
            found[member.pod.node_name] = wanted
    return [actions.SetTraits(found)] if found else []


def overdue(
    snapshot: Snapshot, live: Sequence[Member], causes: Mapping[str, frozenset[Cause]], now: datetime
) -> list[deadline.Overdue]:
    """Nodes whose drain has exceeded its timeout, according to the cached records.

    Parameters
    ----------
    live
        The pods that are neither being deleted nor ended.
    causes
        The causes for which the node of each pod is drained, by name of the pod.
    now
        The time by the operator's clock; timezone-aware. Slurm's is queried before anything is done.
    """
    wanted = [(member, causes[member.name]) for member in live if member.pod.bound and causes.get(member.name)]
    return deadline.overdue(wanted, snapshot.nodeset.spec.drain, now)


def endings(late: Iterable[deadline.Overdue], causes: Mapping[str, frozenset[Cause]]) -> list[actions.Action]:
    """What is done to nodes whose drain has exceeded its timeout."""
    acting = tuple((one.pod, causes[one.pod.name]) for one in late if one.acts)
    return [actions.EndDrains(acting)] if acting else []


def ends_to_ask_for(snapshot: Snapshot, states: Mapping[str, State], now: datetime) -> list[actions.Action]:
    """What is asked about jobs that delay drains for long, and about forgotten nodes; and which jobs are cancelled."""
    recorded, mode = snapshot.recorded, snapshot.nodeset.spec.drain.forgotten_jobs
    asked = forgotten_ends.questions(states.values(), recorded, now)
    slurmds = slurmd_questions.questions(snapshot, states, now)
    gone = slurmd_questions.gone(snapshot, forgotten_ends.jobs_of(states.values()).values(), now)
    over = forgotten_ends.to_cancel(states.values(), recorded, gone, mode, now)
    return [
        *([actions.AskForEnds(asked)] if asked else []),
        *([actions.AskForSteps(slurmds)] if slurmds else []),
        *([actions.CancelForgotten(over, snapshot.pods)] if over else []),
    ]


def _note(member: Member, now: datetime) -> str:
    """A node with the jobs on it, for an Event."""
    name, held = member.pod.node_name, member.jobs
    if not held:
        return name
    numbers = named([str(job.id) for job in held])
    ran = f"{victims.seconds_lost(held, now):.0f} s"
    return f"{name} (job {numbers}, running for {ran})" if len(held) == 1 else f"{name} (jobs {numbers}, {ran} in all)"
