"""What a NodeSet is doing: the conditions `Progressing` and `Draining`, and the status text without troubles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from slinky_api.conditions import Reason
from slinky_operator.nodeset.disruption import repairs, rolling_update
from slinky_operator.nodeset.model import pod_state
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import troubles
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.reconcile.text import joined, named, stamp
from slinky_operator.slurm.nodes.node_references import REQUIRED, References


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of pods for conditions."""

    desired: int
    ready: int
    available: int
    updated: int


def held_back(snapshot: Snapshot, counts: Counts) -> tuple[Reason, str] | None:
    """Why pods of another revision keep it."""
    if counts.updated >= counts.desired or snapshot.revision.problems:
        return None
    strategy = snapshot.nodeset.spec.update_strategy
    told = f"{counts.updated} of {counts.desired} pods have revision {snapshot.revision.hash}"
    if strategy.type == "OnDelete":
        return Reason.UPDATE_ON_DELETE, f"{told}; the others are updated when they are deleted"
    if snapshot.cluster.update_wait:
        return Reason.UPDATE_WAITS_FOR_CLUSTER, f"{told}; {snapshot.cluster.update_wait}"
    if snapshot.cluster.window_wait:
        return Reason.UPDATE_WAITS_FOR_MAINTENANCE, f"{told}; {snapshot.cluster.window_wait}"
    if strategy.rolling_update.paused:
        return Reason.UPDATE_PAUSED, f"{told}; spec.updateStrategy.rollingUpdate.paused keeps the others as they are"
    return Reason.UPDATE_HELD_BACK, f"{told}; spec.updateStrategy.rollingUpdate.partition keeps the others as they are"


def progress(  # noqa: PLR0911 - one for each
    snapshot: Snapshot, found: Decisions, counts: Counts, now: datetime
) -> tuple[Reason, str] | None:
    """What is in progress."""
    pods, desired = len(snapshot.pods), counts.desired
    if snapshot.nodeset.deleting:
        applied = troubles.is_applied_while_deleting(snapshot.nodeset)
        return Reason.APPLIED_WHILE_DELETING if applied else Reason.DELETING, _deleting(snapshot, found)
    if snapshot.cluster.deleting and not snapshot.cluster.external:
        return (
            Reason.CLUSTER_DELETING,
            f"Cluster {snapshot.nodeset.spec.cluster_name} is being deleted: {pods} pods are left",
        )
    if pods < desired and snapshot.cluster.exists and not snapshot.cluster.listed:
        return Reason.NOT_IN_CONFIG, _not_listed(snapshot)
    if found.victims:
        return Reason.SCALING_IN, f"{pods} pods, {desired} wanted"
    if snapshot.revision.problems:
        # No pod can be created from the spec: nothing continues until it is corrected.
        return None
    if found.creation.blocked:
        return Reason.SCALING_OUT, joined(
            [f"{name} waits: {why}" for name, why in sorted(found.creation.blocked.items())]
        )
    if pods < desired:
        told = (
            f"; {found.creation.held} wait until others have registered (maxConcurrentStartup)"
            if found.creation.held
            else ""
        )
        return Reason.SCALING_OUT, f"{pods} pods, {desired} wanted{told}"
    if rolling_update.outdated(snapshot.members, snapshot.nodeset, snapshot.revision, found.known):
        return Reason.UPDATING, f"{counts.updated} of {desired} pods have revision {snapshot.revision.hash}"
    return _starting(snapshot, found, now)


def draining(snapshot: Snapshot, found: Decisions) -> tuple[Reason, str] | None:
    """Nodes, jobs and since when: what a person needs to see why a pod waits."""
    told = []
    jobs = False
    nodes = {pod.name: pod.node_name for pod in snapshot.pods}
    states = [
        (nodes.get(pod, pod), state)
        for pod, state in found.states.items()
        if isinstance(state, pod_state.Draining | pod_state.Drained)
    ]
    # Those that exceed their timeout first: they may need somebody's attention.
    for name, state in sorted(states, key=lambda item: (item[0] not in found.overdue, item[0])):
        if isinstance(state, pod_state.Drained):
            told.append(f"{name} is drained ({causes(state.causes)})")
        else:
            text = f"{name} ({causes(state.causes)}"
            if state.since is not None:
                text += f", since {stamp(state.since)}"
            text += ")"
            if state.jobs:
                jobs = True
                text += f" holds {named([f'job {job.id} {job.state}' for job in state.jobs])}"
            if name in found.overdue:
                text += f", {troubles.overdue(found.overdue[name], snapshot.nodeset.spec.drain)}"
            told.append(text)
    if not told:
        return None
    if found.overdue:
        return Reason.DRAIN_TIMED_OUT, joined(told)
    if jobs:
        return Reason.WAITING_FOR_JOBS, joined(told)
    return _drain_reason(found), joined(told)


DRAIN_REASONS: Final = {
    drains.Cause.DELETION: Reason.DELETING,
    drains.Cause.CLUSTER_DELETION: Reason.DELETING,
    drains.Cause.SCALE_IN: Reason.SCALING_IN,
    drains.Cause.NODE_MISMATCH: Reason.SCALING_IN,
    drains.Cause.NO_POD: Reason.SCALING_IN,
    drains.Cause.UPDATE: Reason.UPDATING,
    drains.Cause.REPAIR: Reason.REPAIRING,
    drains.Cause.CORDON: Reason.CORDONED,
    drains.Cause.NODE_CORDON: Reason.CORDONED,
    drains.Cause.DRAIN_REQUEST: Reason.CORDONED,
    drains.Cause.HEALTH: Reason.UNHEALTHY,
}

DRAIN_ORDER: Final = (
    Reason.DELETING,
    Reason.SCALING_IN,
    Reason.UPDATING,
    Reason.REPAIRING,
    Reason.UNHEALTHY,
    Reason.CORDONED,
)
"""Which reason the condition shows where nodes drain for several."""


def _drain_reason(found: Decisions) -> Reason:
    states = [one for one in found.states.values() if isinstance(one, pod_state.Draining | pod_state.Drained)]
    reasons = {DRAIN_REASONS[cause] for state in states for cause in state.causes}
    if any(not state.causes for state in states):
        # No longer wanted, and no cause is written in Slurm yet.
        reasons.add(Reason.SCALING_IN)
    return next(reason for reason in DRAIN_ORDER if reason in reasons)


def causes(of: Iterable[drains.Cause]) -> str:
    """The causes of a node's drain."""
    return ", ".join(sorted(of)) or "no longer wanted"


def _not_listed(snapshot: Snapshot) -> str:
    name, slurm = snapshot.nodeset.spec.cluster_name, snapshot.slurm
    told = f"waiting for Cluster {name}, whose running configuration does not have this NodeSet yet"
    return told if slurm.readable or slurm.reason is Reason.CLUSTER_NOT_READY else f"{told}; Slurm: {slurm.why}"


def _starting(snapshot: Snapshot, found: Decisions, now: datetime) -> tuple[Reason, str] | None:
    """Pods that are starting: what delays each, and how long it is waited for."""
    hindrances = {
        pod.name: pod.hindrance for pod in snapshot.pods if pod.hindrance is not None and not pod.hindrance.is_over(now)
    }
    crashing = {name for name, why in hindrances.items() if why.reason is Reason.CRASH_LOOP_BACK_OFF}
    starting = {name: state.why for name, state in found.states.items() if isinstance(state, pod_state.Starting)}
    if not starting:
        return None
    held = {name: hindrances[name].text if name in hindrances else why for name, why in sorted(starting.items())}
    stuck = [f"{name}: {why}" for name, why in held.items() if why]
    again = {name for name, of in found.causes.items() if drains.Cause.REPAIR in of}
    # While it runs between two crashes its remaining time is not shown: it starts again with each crash.
    late = [
        repairs.told(found.waits[name], again, now) for name in held if name in found.waits and name not in crashing
    ]
    return Reason.NOT_REGISTERED, joined([*stuck, *late] or list(held))


def _deleting(snapshot: Snapshot, found: Decisions) -> str:
    if not snapshot.pods:
        return f"no pod is left; {kept_records(found.named)}{_freed(found.named)}" if found.named else "no pod is left"
    told = f"{len(snapshot.pods)} pods are left"
    if found.skip_drain:
        return f"{told}; their jobs are abandoned, as requested"
    return told


def _freed(kept: References) -> str:
    """What lets a NodeSet go whose nodes pending jobs wait for, which nobody will make again before it has gone."""
    if not any(why.startswith(REQUIRED) for named in kept.values() for why in named):
        return ""
    return (
        ". A pending job that requires one of them waits for ever: 'scontrol update jobid=… reqnodelist=' lets it use "
        "other nodes, 'scancel' ends it"
    )


def kept_records(kept: References) -> str:
    """Which records stay, and for what.

    Parameters
    ----------
    kept
        Nodes without a pod, and what names them.
    """
    told = [f"{name} ({', '.join(kept[name])})" for name in sorted(kept)]
    return f"records of nodes without a pod stay in Slurm, drained, until nothing names the nodes: {joined(told)}"
