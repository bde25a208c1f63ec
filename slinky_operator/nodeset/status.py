"""What a NodeSet tells about itself: counts under both generations' names, and conditions with reasons.

Pure. Whether it is written is decided by comparing it with what is stored. Texts carry times, not ages: a text that
changes with the clock would be written for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from slinky_api import labels
from slinky_api.conditions import NodeSetCondition, Reason, find, merge
from slinky_api.v1alpha1.common import Condition, LabelSelector
from slinky_api.v1alpha1.nodeset import Drain, NodeSet, NodeSetStatus
from slinky_operator.failures import Failure
from slinky_operator.nodeset import availability, drain, history, pins, podstate, rejections, repairs, rollout
from slinky_operator.nodeset.assessment import Assessment
from slinky_operator.nodeset.deadline import Overdue
from slinky_operator.nodeset.layout import is_fixed_otherwise
from slinky_operator.nodeset.snapshot import Snapshot

LONGEST_LIST = 5
"""Nodes told in one condition."""


def build(
    snapshot: Snapshot,
    found: Assessment,
    now: datetime,
    refusals: Sequence[str] = (),
    failure: Failure | None = None,
) -> NodeSetStatus:
    """Make the status.

    Parameters
    ----------
    snapshot, found
        What the pass saw, and what the plan made of it.
    now
        For conditions that change.
    refusals
        What was refused, or kept a pod from being deleted, in this pass.
    failure
        With what this pass will end.
    """
    nodeset = snapshot.nodeset
    stored = nodeset.status
    pods = [pod for pod in snapshot.pods if not pod.deleting]
    nodes = [snapshot.slurm.nodes[pod.node_name] for pod in pods if pod.node_name in snapshot.slurm.nodes]
    ready = sum(1 for pod in pods if availability.is_ready(pod, snapshot))
    updated = sum(1 for pod in pods if pod.revision == snapshot.revision.hash)
    desired = found.desired if found.desired is not None else len(pods)
    draining = [s for s in found.states.values() if isinstance(s, podstate.Draining | podstate.Drained)]
    available = sum(1 for pod in pods if availability.serves(pod, snapshot, now))
    # Until then the status is what another operator may have left, and a takeover reads it.
    begun = labels.FINALIZER_NODESET_DRAIN in nodeset.metadata.finalizers
    # A revision is the current one once the update to it is over: what did not come up is nothing to return to. What
    # only a cordon keeps from serving has come up.
    counts = Counts(desired, ready, available, updated)
    current = snapshot.revision.current
    up = sum(1 for pod in pods if availability.has_come_up(pod, snapshot, now))
    if updated == up == len(snapshot.pods) == desired and not snapshot.revision.problems:
        current = snapshot.revision.hash
    return NodeSetStatus.counted(
        desired=desired,
        replicas=len(snapshot.pods),
        updated=updated,
        ready=ready,
        available=available,
        draining=len(draining),
        misscheduled=len(found.misplaced),
        idle=sum(1 for node in nodes if node.is_idle),
        allocated=sum(1 for node in nodes if node.state.base in {"ALLOCATED", "MIXED"}),
        down=sum(1 for node in nodes if node.is_down),
        drain=sum(1 for node in nodes if node.is_drain),
        conditions=merge(stored.conditions, _conditions(snapshot, found, counts, refusals, failure, now), now),
        observed_generation=nodeset.metadata.generation if begun else stored.observed_generation,
        selector=selector(nodeset),
        scaling_mode=nodeset.mode,
        current_revision=history.name(nodeset, current),
        update_revision=history.name(nodeset, snapshot.revision.hash),
        node_set_hash=current if begun else stored.node_set_hash,
        update_hash=snapshot.revision.hash,
        collision_count=stored.collision_count,
        ordinal_to_node=pins.remembered(nodeset, snapshot.pods),
    )


def invalid(nodeset: NodeSet | None, stored: NodeSetStatus, text: str, now: datetime) -> NodeSetStatus:
    """The status of a NodeSet that cannot be read: what it was, and why nothing is done."""
    why = (Reason.INVALID_SPEC, text)
    degraded = _condition(NodeSetCondition.DEGRADED, why)
    ready = _condition(NodeSetCondition.READY, why, holds=False)
    kept = [one for one in stored.conditions if one.type not in {degraded.type, ready.type}]
    generation = nodeset.metadata.generation if nodeset is not None else stored.observed_generation
    return stored.model_copy(
        update={
            "conditions": merge(stored.conditions, [*kept, degraded, ready], now),
            "observed_generation": generation,
        }
    )


def selector(nodeset: NodeSet) -> str:
    """Selector of exactly this NodeSet's pods: the user's, and our label with the uid."""
    parts = [f"{labels.LABEL_NODESET_UID}={nodeset.uid}"]
    if nodeset.spec.selector is not None:
        parts = [*_terms(nodeset.spec.selector), *parts]
    return ",".join(parts)


def _terms(given: LabelSelector) -> Iterable[str]:
    yield from (f"{key}={value}" for key, value in sorted(given.match_labels.items()))
    for one in given.match_expressions:
        match one.operator:
            case "In":
                yield f"{one.key} in ({','.join(one.values)})"
            case "NotIn":
                yield f"{one.key} notin ({','.join(one.values)})"
            case "Exists":
                yield one.key
            case "DoesNotExist":
                yield f"!{one.key}"


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of pods that conditions are about."""

    desired: int
    ready: int
    available: int
    updated: int


def _conditions(
    snapshot: Snapshot,
    found: Assessment,
    counts: Counts,
    refusals: Sequence[str],
    failure: Failure | None,
    now: datetime,
) -> list[Condition]:
    trouble = _with(failure, _trouble(snapshot, found, refusals, now))
    progress = _progress(snapshot, found, counts, now)
    held_back = _held_back(snapshot, counts) if progress is None else None
    slurm = snapshot.slurm
    whole = counts.ready == counts.desired == len(snapshot.pods) and trouble is None and progress is None
    told = f"{counts.ready} of {counts.desired} nodes are ready"
    reason, text = trouble or progress or held_back or (Reason.AS_EXPECTED, "")
    if not whole and reason is Reason.AS_EXPECTED:
        reason = Reason.PODS_NOT_READY
    return [
        _condition(NodeSetCondition.READY, (reason, f"{told}: {text}" if text else told), holds=whole),
        _available(snapshot, counts),
        _condition(NodeSetCondition.PROGRESSING, progress or held_back, holds=progress is not None),
        _condition(NodeSetCondition.DEGRADED, trouble),
        _condition(NodeSetCondition.DRAINING, _draining(snapshot, found)),
        _condition(NodeSetCondition.NAME_CONFLICT, _conflicts(snapshot, found)),
        _condition(NodeSetCondition.CLUSTER_GONE, _cluster_gone(snapshot)),
        _condition(NodeSetCondition.SLURM_REACHABLE, (slurm.reason, slurm.why), holds=slurm.readable),
        _condition(NodeSetCondition.NODES_WATCHED, _unwatched(snapshot), holds=snapshot.hosts is not None),
    ]


def _trouble(  # noqa: PLR0911 - one for each
    snapshot: Snapshot, found: Assessment, refusals: Sequence[str], now: datetime
) -> tuple[Reason, str] | None:
    """The first thing that keeps the NodeSet from what its spec asks for."""
    nodeset, cluster = snapshot.nodeset, snapshot.cluster
    if snapshot.revision.problems:
        return Reason.INVALID_SPEC, "; ".join(snapshot.revision.problems)
    if is_fixed_otherwise(nodeset):
        return Reason.SCALING_MODE_FIXED, (
            f"spec.scalingMode: {nodeset.spec.scaling_mode} was asked for, but the NodeSet has been made in mode "
            f"{nodeset.mode}, which decides how its nodes are called; nothing is done until the spec agrees. "
            "Another mode takes another NodeSet"
        )
    if found.desired is None:
        return Reason.NODES_NOT_WATCHED, (
            f"spec.scalingMode: {nodeset.mode} needs the operator to see Nodes, and it runs with --no-watch-nodes"
        )
    if not cluster.exists:
        told = f"there is no Cluster {nodeset.spec.cluster_name} in this namespace"
        return _cluster_gone(snapshot) or (Reason.CLUSTER_NOT_FOUND, told)
    if cluster.refused:
        how = "has it as it was" if cluster.listed else "is without it"
        return Reason.CONFIG_REFUSED, f"the Cluster's configuration {how}: {cluster.refused}"
    if not snapshot.slurm.readable:
        return snapshot.slurm.reason, snapshot.slurm.why
    unknown = [state for state in found.states.values() if isinstance(state, podstate.Unknown)]
    if unknown:
        others = sorted(state.why for state in unknown if not state.forgotten)
        return Reason.NODE_UNKNOWN, _told([*_forgotten(found), *others])
    rejected = rejections.told(snapshot, found)
    if rejected:
        return Reason.INVALID_REGISTRATION, rejections.advised(_told(rejected))
    if refusals:
        return Reason.POD_REFUSED, _told(sorted(refusals))
    return _unregistered(snapshot, found, now)


def _with(failure: Failure | None, trouble: tuple[Reason, str] | None) -> tuple[Reason, str] | None:
    """Trouble, and with what the pass ends unless that is told there already."""
    if failure is None:
        return trouble
    if trouble is None:
        return failure.reason, failure.message
    reason, text = trouble
    if failure.words and all(words in text for words in failure.words):
        return trouble
    return reason, f"{text}; {failure.message}"


def _forgotten(found: Assessment) -> list[str]:
    """The pods whose nodes Slurm has lost, and what a person can do."""
    names = sorted(
        name for name, state in found.states.items() if isinstance(state, podstate.Unknown) and state.forgotten
    )
    if not names:
        return []
    first = names[:LONGEST_LIST]
    more = f" and {len(names) - LONGEST_LIST} more" if len(names) > LONGEST_LIST else ""
    told = f"Slurm does not know the nodes of pods {', '.join(first)}{more}, which had registered: jobs may run there"
    return [f"{told} that it has forgotten, so they stay. Where none does: kubectl delete pod {' '.join(first)}"]


def _unregistered(snapshot: Snapshot, found: Assessment, now: datetime) -> tuple[Reason, str] | None:
    """Pods that have not registered in their time; and those made in their place, until they have."""
    waits = sorted(found.waits.values(), key=lambda one: (one.until, one.pod.name))
    stored = find(snapshot.nodeset.status.conditions, NodeSetCondition.DEGRADED)
    told_before = stored is not None and stored.status == "True" and stored.reason == Reason.NOT_REGISTERED
    on_the_way = any(isinstance(state, podstate.Starting | podstate.Deleting) for state in found.states.values())
    if any(one.until <= now for one in waits) or (told_before and (waits or on_the_way or found.blocked)):
        again = {name for name, causes in found.causes.items() if drain.Cause.REPAIR in causes}
        told = [repairs.told(one, again, now) for one in waits] or ["pods that were made anew have yet to register"]
        return Reason.NOT_REGISTERED, f"{_told(told)}. Probably {repairs.LIKELY}"
    return None


def _cluster_gone(snapshot: Snapshot) -> tuple[Reason, str] | None:
    nodeset = snapshot.nodeset
    if snapshot.cluster.exists or not snapshot.cluster.gone or not snapshot.pods:
        return None
    return Reason.CLUSTER_GONE, (
        f"there is no Cluster {nodeset.spec.cluster_name} in this namespace, so nobody can say what its nodes hold, "
        f"and no pod is deleted. To give up their jobs: kubectl delete nodeset {nodeset.name} --wait=false; "
        f"kubectl annotate nodeset {nodeset.name} {labels.ANNOTATION_SKIP_DRAIN}=true"
    )


def _available(snapshot: Snapshot, counts: Counts) -> Condition:
    """Whether enough nodes serve; where Slurm cannot be asked, nobody knows."""
    least = max(0, counts.desired - rollout.budget(snapshot.nodeset, counts.desired))
    told = f"{counts.available} of {counts.desired} nodes are available, {least} are to be at least"
    holds = counts.available >= least
    reason = Reason.AS_EXPECTED if holds else Reason.PODS_NOT_READY
    made = _condition(NodeSetCondition.AVAILABLE, (reason, told), holds=holds)
    if snapshot.slurm.readable or holds:
        return made
    return made.model_copy(update={"status": "Unknown", "reason": snapshot.slurm.reason, "message": snapshot.slurm.why})


def _held_back(snapshot: Snapshot, counts: Counts) -> tuple[Reason, str] | None:
    """Why pods that have another revision are to keep it."""
    if counts.updated >= counts.desired:
        return None
    strategy = snapshot.nodeset.spec.update_strategy
    told = f"{counts.updated} of {counts.desired} pods have revision {snapshot.revision.hash}"
    if strategy.type == "OnDelete":
        return Reason.UPDATE_ON_DELETE, f"{told}; the others get it when somebody deletes them"
    if strategy.rolling_update.paused:
        return Reason.UPDATE_PAUSED, f"{told}; spec.updateStrategy.rollingUpdate.paused keeps the others as they are"
    return Reason.UPDATE_HELD_BACK, f"{told}; spec.updateStrategy.rollingUpdate.partition keeps the others as they are"


def _progress(  # noqa: PLR0911 - one for each
    snapshot: Snapshot, found: Assessment, counts: Counts, now: datetime
) -> tuple[Reason, str] | None:
    """What is under way."""
    pods, desired = len(snapshot.pods), counts.desired
    if snapshot.nodeset.deleting:
        return Reason.DELETING, _deleting(snapshot, found)
    if snapshot.cluster.deleting and not snapshot.cluster.external:
        return Reason.DELETING, f"Cluster {snapshot.nodeset.spec.cluster_name} is being deleted: {pods} pods are left"
    if pods < desired and snapshot.cluster.exists and not snapshot.cluster.listed:
        return Reason.NOT_IN_CONFIG, "the running configuration of the Cluster does not know this NodeSet yet"
    if found.victims:
        return Reason.SCALING_IN, f"{pods} pods, {desired} wanted"
    if found.blocked:
        return Reason.SCALING_OUT, _told([f"{name} waits: {why}" for name, why in sorted(found.blocked.items())])
    if pods < desired:
        told = f"; {found.held} wait until others have registered (maxConcurrentStartup)" if found.held else ""
        return Reason.SCALING_OUT, f"{pods} pods, {desired} wanted{told}"
    if rollout.outdated(snapshot.pods, snapshot.nodeset, snapshot.revision, found.known):
        return Reason.UPDATING, f"{counts.updated} of {desired} pods have revision {snapshot.revision.hash}"
    starting = sorted(name for name, state in found.states.items() if isinstance(state, podstate.Starting))
    if starting:
        stuck = [f"{name}: {why}" for name in starting if (why := _why(found.states[name]))]
        again = {name for name, causes in found.causes.items() if drain.Cause.REPAIR in causes}
        late = [repairs.told(found.waits[name], again, now) for name in starting if name in found.waits]
        return Reason.NOT_REGISTERED, _told([*stuck, *late] or starting)
    return None


def _unwatched(snapshot: Snapshot) -> tuple[Reason, str] | None:
    if snapshot.hosts is not None:
        return None
    return Reason.NODES_NOT_WATCHED, "the operator runs with --no-watch-nodes: a cordoned Node is not noticed"


def _why(state: podstate.State) -> str:
    return state.why if isinstance(state, podstate.Starting) else ""


def _deleting(snapshot: Snapshot, found: Assessment) -> str:
    if not snapshot.pods:
        return "no pod is left"
    told = f"{len(snapshot.pods)} pods are left"
    if found.skip_drain:
        return f"{told}; their jobs are given up, as asked for"
    return told


def _draining(snapshot: Snapshot, found: Assessment) -> tuple[Reason, str] | None:
    """Nodes, jobs and since when: what a person needs to see why a pod waits."""
    told = []
    jobs = False
    nodes = {pod.name: pod.node_name for pod in snapshot.pods}
    states = [(nodes.get(pod, pod), state) for pod, state in found.states.items()]
    # Those that have taken too long first: they are what somebody may have to look after.
    for name, state in sorted(states, key=lambda item: (item[0] not in found.overdue, item[0])):
        if isinstance(state, podstate.Drained):
            told.append(f"{name} is drained ({_causes(state.causes)})")
        elif isinstance(state, podstate.Draining):
            text = f"{name} ({_causes(state.causes)}"
            if state.since is not None:
                text += f", since {state.since.strftime('%Y-%m-%dT%H:%M:%SZ')}"
            text += ")"
            if state.jobs:
                jobs = True
                text += f" holds {', '.join(f'job {job.id} {job.state}' for job in state.jobs)}"
            if name in found.overdue:
                text += f", {_overdue(found.overdue[name], snapshot.nodeset.spec.drain)}"
            told.append(text)
    if not told:
        return None
    if found.overdue:
        return Reason.DRAIN_TIMED_OUT, _told(told)
    if jobs:
        return Reason.WAITING_FOR_JOBS, _told(told)
    only_cordon = all(
        state.causes <= drain.CORDONS
        for state in found.states.values()
        if isinstance(state, podstate.Draining | podstate.Drained)
    )
    return Reason.CORDONED if only_cordon else Reason.SCALING_IN, _told(told)


def _overdue(late: Overdue, spec: Drain) -> str:
    """What comes of a drain that has taken longer than the spec allows."""
    ended = spec.timeout is not None and (late.since + spec.timeout).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = f"longer than spec.drain.timeout, which ended {ended} (onTimeout {spec.on_timeout})"
    if late.stuck:
        numbers = ", ".join(str(job.id) for job in late.stuck)
        told += f": interactive or submitted with --no-requeue, so they are waited for: {numbers}"
    return told


def _conflicts(snapshot: Snapshot, found: Assessment) -> tuple[Reason, str] | None:
    told = [why for _, why in sorted(found.conflicts.items())]
    if snapshot.cluster.refused.startswith("metadata.name"):
        told.append(snapshot.cluster.refused)
    told += sorted(
        state.why
        for state in found.states.values()
        if isinstance(state, podstate.Unknown) and "somebody else's" in state.why
    )
    return (Reason.NAME_CONFLICT, _told(told)) if told else None


def _causes(causes: Iterable[drain.Cause]) -> str:
    return ", ".join(sorted(causes)) or "no longer wanted"


def _told(texts: Sequence[str]) -> str:
    shown = "; ".join(texts[:LONGEST_LIST])
    return shown if len(texts) <= LONGEST_LIST else f"{shown}; and {len(texts) - LONGEST_LIST} more"


def _condition(kind: NodeSetCondition, why: tuple[Reason, str] | None, *, holds: bool | None = None) -> Condition:
    """A condition; one that holds or not by whether there is something to tell, unless it is said."""
    reason, text = why or (Reason.AS_EXPECTED, "")
    true = why is not None if holds is None else holds
    return Condition(type=kind, status="True" if true else "False", reason=reason, message=text[:4096])
