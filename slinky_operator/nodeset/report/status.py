"""The status of a NodeSet: counts under both generations' names, and conditions with reasons.

Pure. Whether it is written is decided by comparing it with the stored one. Texts contain times, not ages: a text that
changes with the clock would be written forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from slinky_api import labels
from slinky_api.conditions import NodeSetCondition, Reason, find, merge
from slinky_api.v1alpha1.common import Condition, LabelSelector
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.nodeset.disruption import availability, rolling_update
from slinky_operator.nodeset.model import loads, pod_state
from slinky_operator.nodeset.model.loads import Loads
from slinky_operator.nodeset.model.revisions import revision_records
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.placement import pinning
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import (
    checks,
    health,
    out_of_service,
    progress,
    ssh,
    summary,
    topology,
    troubles,
    volumes,
)
from slinky_operator.nodeset.report.out_of_service import OutOfService
from slinky_operator.nodeset.report.progress import Counts
from slinky_operator.nodeset.report.troubles import Trouble
from slinky_operator.reconcile.failures import Failure
from slinky_operator.reconcile.text import cut, joined
from slinky_operator.reconcile.writes.parts import condition
from slinky_operator.runtime.printable import printable_lines


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass reports about a NodeSet."""

    status: NodeSetStatus
    troubles: tuple[Trouble, ...] = ()
    """What prevents it from matching its spec, for Events."""


def build(
    snapshot: Snapshot,
    found: Decisions,
    now: datetime,
    refusals: Sequence[str] = (),
    failure: Failure | None = None,
) -> NodeSetStatus:
    """Build the status alone; for parameters see `report`."""
    return report(snapshot, found, now, refusals, failure).status


def report(
    snapshot: Snapshot,
    found: Decisions,
    now: datetime,
    refusals: Sequence[str] = (),
    failure: Failure | None = None,
) -> Report:
    """Build the status, and the troubles in it for Events.

    Parameters
    ----------
    snapshot, found
        The snapshot, and the decisions of the plan.
    now
        The transition time of conditions that change.
    refusals
        What was rejected, or kept a pod from being deleted, in this pass.
    failure
        The error with which this pass will end.
    """
    nodeset = snapshot.nodeset
    stored = nodeset.status
    members = [member for member in snapshot.members if not member.pod.deleting]
    aside = [one.record for one in snapshot.aside if one.record is not None and not one.pod.deleting]
    counted = loads_of(snapshot)
    ready = [member for member in members if availability.is_ready(member)]
    updated = sum(1 for member in members if member.pod.revision == snapshot.revision.hash)
    desired = found.layout.desired if found.layout.desired is not None else len(members)
    draining = [s for s in found.states.values() if isinstance(s, pod_state.Draining | pod_state.Drained)]
    up = [member for member in ready if availability.is_long_ready(member.pod, snapshot, now)]
    available = sum(1 for member in up if availability.is_open(member))
    # Until then the status may be another operator's, and a takeover reads it.
    begun = labels.FINALIZER_NODESET_DRAIN in nodeset.metadata.finalizers
    # A revision becomes the current one once the update to it is over: pods are not reverted to one that did not start.
    # A pod that only a cordon makes unavailable has started.
    counts = Counts(desired, len(ready), available, updated)
    current = snapshot.revision.current
    if updated == len(up) == len(snapshot.pods) == desired and not snapshot.revision.problems:
        current = snapshot.revision.hash
    out = out_of_service.nodes(snapshot, found)
    told = _Findings(
        troubles.find_all(snapshot, found, out, refusals, now),
        out,
        failure,
        progress.progress(snapshot, found, counts, now),
        progress.held_back(snapshot, counts),
    )
    written = NodeSetStatus.counted(
        desired=desired,
        replicas=len(snapshot.pods),
        updated=updated,
        ready=len(ready),
        available=available,
        draining=len(draining),
        misscheduled=len(found.layout.misplaced),
        idle=counted.idle,
        allocated=counted.allocated,
        down=sum(1 for node in aside if node.is_down),
        drain=sum(1 for node in aside if node.is_drain),
        summary=summary.text(
            snapshot,
            found,
            counts,
            told.troubles,
            out,
            failure,
            told.progress,
            told.held_back if not told.progress else None,
        ),
        nodes=counted.counts,
        conditions=merge(stored.conditions, _conditions(snapshot, found, counts, told), now),
        observed_generation=nodeset.metadata.generation if begun else stored.observed_generation,
        selector=selector(nodeset),
        scaling_mode=nodeset.mode,
        current_revision=revision_records.name(nodeset, current),
        update_revision=revision_records.name(nodeset, snapshot.revision.hash),
        node_set_hash=current if begun else stored.node_set_hash,
        update_hash=snapshot.revision.hash,
        collision_count=stored.collision_count,
        ordinal_to_node=pinning.remembered(nodeset, snapshot.pods),
        replacements=(found.replacement.records or None) if found.replacement is not None else stored.replacements,
        registered=found.registrations.recorded,
        maintenance=snapshot.cluster.maintenance or None,
        autoscaling=stored.autoscaling if nodeset.spec.autoscaling is not None else None,
    )
    return Report(written, tuple(told.troubles))


def loads_of(snapshot: Snapshot) -> Loads:
    """Count the nodes of all pods."""
    slurm = snapshot.slurm
    return loads.count(((pod, slurm.nodes.get(pod.node_name)) for pod in snapshot.pods), readable=slurm.readable)


def invalid(nodeset: NodeSet | None, stored: NodeSetStatus, text: str, now: datetime) -> NodeSetStatus:
    """The status of a NodeSet that cannot be parsed: the stored one, and why nothing is done.

    Parameters
    ----------
    nodeset
        The NodeSet; None if it cannot be parsed at all.
    stored
        Its current status.
    text
        What is invalid, by field.
    now
        The time, for conditions that change.
    """
    why = (Reason.INVALID_SPEC, text)
    degraded = _condition(NodeSetCondition.DEGRADED, why)
    ready = _condition(NodeSetCondition.READY, why, holds=False)
    kept = [one for one in stored.conditions if one.type not in {degraded.type, ready.type}]
    generation = nodeset.metadata.generation if nodeset is not None else stored.observed_generation
    return stored.model_copy(
        update={
            "conditions": merge(stored.conditions, [*kept, degraded, ready], now),
            "observed_generation": generation,
            "summary": cut(text, summary.LONGEST),
        }
    )


def selector(nodeset: NodeSet) -> str:
    """Selector of exactly this NodeSet's pods: the user's, and the operator's label with the uid."""
    parts = [f"{labels.LABEL_NODESET_UID}={nodeset.uid}"]
    if nodeset.spec.selector is not None:
        parts = [*_terms(nodeset.spec.selector), *parts]
    return ",".join(parts)


def _terms(given: LabelSelector) -> Iterable[str]:
    yield from (f"{key}={value}" for key, value in sorted(given.match_labels.items()))
    for expression in given.match_expressions:
        match expression.operator:
            case "In":
                yield f"{expression.key} in ({','.join(expression.values)})"
            case "NotIn":
                yield f"{expression.key} notin ({','.join(expression.values)})"
            case "Exists":
                yield expression.key
            case "DoesNotExist":
                yield f"!{expression.key}"


@dataclass(frozen=True, slots=True)
class _Findings:
    """The common input of conditions and the status text."""

    troubles: list[Trouble]
    out_of_service: Sequence[OutOfService]
    failure: Failure | None
    progress: tuple[Reason, str] | None
    held_back: tuple[Reason, str] | None


def _conditions(snapshot: Snapshot, found: Decisions, counts: Counts, told: _Findings) -> list[Condition]:
    trouble = _with(told.failure, _all(told.troubles))
    # Nodes whose volumes have little room serve, and so do those that the budget does not let drain, or without logins.
    serving = volumes.REASONS | health.REASONS | checks.REASONS | topology.REASONS | ssh.REASONS
    unready = _with(told.failure, _all([one for one in told.troubles if one.reason not in serving]))
    busy = told.progress
    held_back = told.held_back if busy is None else None
    slurm = snapshot.slurm
    whole = counts.ready == counts.desired == len(snapshot.pods) and unready is None and busy is None
    ready = f"{counts.ready} of {_of(snapshot, counts)} nodes are ready"
    if not slurm.readable and snapshot.pods:
        ready = f"not known how many of {_of(snapshot, counts)} nodes are ready"
    reason, text = unready or busy or held_back or (Reason.AS_EXPECTED, "")
    if not whole and reason is Reason.AS_EXPECTED:
        reason, text = Reason.PODS_NOT_READY, _not_ready(snapshot)
    return [
        _condition(NodeSetCondition.READY, (reason, f"{ready}: {text}" if text else ready), holds=whole),
        _available(snapshot, counts),
        _condition(NodeSetCondition.PROGRESSING, busy or held_back, holds=busy is not None),
        _condition(NodeSetCondition.DEGRADED, trouble),
        _condition(NodeSetCondition.DRAINING, progress.draining(snapshot, found)),
        *_kept_records(snapshot, found),
        *health.conditions(snapshot, found),
        *checks.conditions(snapshot, found),
        *volumes.conditions(snapshot, volumes.told(snapshot)),
        _out_of_service(snapshot, told.out_of_service),
        _condition(NodeSetCondition.NAME_CONFLICT, _conflicts(snapshot, found)),
        _condition(NodeSetCondition.CLUSTER_GONE, troubles.cluster_gone(snapshot)),
        _condition(NodeSetCondition.SLURM_REACHABLE, (slurm.reason, slurm.why), holds=slurm.readable),
        _condition(NodeSetCondition.NODES_WATCHED, _unwatched(snapshot), holds=snapshot.hosts is not None),
        *_autoscaling(nodeset=snapshot.nodeset),
    ]


def _kept_records(snapshot: Snapshot, found: Decisions) -> Iterable[Condition]:
    """Records that stay in Slurm without a pod; nothing while there are none. Without an answer the last one stands."""
    if found.named:
        yield _condition(NodeSetCondition.RECORDS_KEPT, (Reason.NODES_NAMED, progress.kept_records(found.named)))
    elif not snapshot.slurm.readable:
        stored = find(snapshot.nodeset.status.conditions, NodeSetCondition.RECORDS_KEPT)
        yield from (stored,) if stored is not None else ()


def _autoscaling(nodeset: NodeSet) -> Iterable[Condition]:
    """What autoscaling has last decided; nothing without it, or before it has looked."""
    decided = nodeset.status.autoscaling
    if nodeset.spec.autoscaling is None or decided is None:
        return
    reason = decided.reason or Reason.AS_EXPECTED
    yield condition(NodeSetCondition.AUTOSCALING, reason, decided.message, holds=decided.active)


def _all(found: Sequence[Trouble]) -> tuple[Reason, str] | None:
    """All troubles as one condition: the reason of the first, the texts of all."""
    return (found[0].reason, "; ".join(one.text for one in found)) if found else None


def _not_ready(snapshot: Snapshot) -> str:
    """Pods that are not Ready in Slurm or Kubernetes and that nothing else reports."""
    texts = []
    for member in snapshot.members:
        pod, node = member.pod, member.record
        if availability.is_ready(member) or not snapshot.slurm.readable:
            continue
        if pod.deleting:
            texts.append(f"{pod.name} is ending")
        elif pod.ready_since is None:
            texts.append(f"{pod.name} is not Ready in Kubernetes")
        elif node is not None:
            texts.append(f"{pod.name} is {node.state}{out_of_service.why(node)}")
    return joined(texts)


def _of(snapshot: Snapshot, counts: Counts) -> int:
    """The total that the other counts refer to: while there are surplus pods, all of them."""
    return max(counts.desired, len(snapshot.pods))


def _out_of_service(snapshot: Snapshot, listed: Sequence[OutOfService]) -> Condition:
    """Nodes that get no jobs; Unknown if Slurm cannot be asked."""
    kind, slurm = NodeSetCondition.NODES_OUT_OF_SERVICE, snapshot.slurm
    if not slurm.readable and snapshot.pods:
        return condition(kind, slurm.reason, slurm.why, holds=None)
    if not listed:
        return _condition(kind, None)
    what = "node gets" if len(listed) == 1 else "nodes get"
    return _condition(kind, (listed[0].reason, f"{len(listed)} {what} no job: {joined([one.text for one in listed])}"))


def _with(failure: Failure | None, trouble: tuple[Reason, str] | None) -> tuple[Reason, str] | None:
    """The troubles, and the error with which the pass ends unless they contain it already."""
    if failure is None:
        return trouble
    if trouble is None:
        return failure.reason, failure.message
    reason, text = trouble
    if failure.words and all(words in text for words in failure.words):
        return trouble
    return reason, f"{text}; {failure.message}"


def _available(snapshot: Snapshot, counts: Counts) -> Condition:
    """Whether enough nodes serve; Unknown if Slurm cannot be asked."""
    least = max(0, counts.desired - rolling_update.budget(snapshot.nodeset, counts.desired))
    told = f"{counts.available} of {_of(snapshot, counts)} nodes available (minimum {least})"
    holds = counts.available >= least
    reason = Reason.AS_EXPECTED if holds else Reason.PODS_NOT_READY
    made = _condition(NodeSetCondition.AVAILABLE, (reason, told), holds=holds)
    if snapshot.slurm.readable or holds:
        return made
    return made.model_copy(
        update={"status": "Unknown", "reason": snapshot.slurm.reason, "message": printable_lines(snapshot.slurm.why)}
    )


def _unwatched(snapshot: Snapshot) -> tuple[Reason, str] | None:
    if snapshot.hosts is not None:
        return None
    return Reason.NODES_NOT_WATCHED, "the operator runs with --no-watch-nodes: a cordoned Node is not noticed"


def _conflicts(snapshot: Snapshot, found: Decisions) -> tuple[Reason, str] | None:
    told = [why for _, why in sorted(found.creation.conflicts.items())]
    if snapshot.cluster.refused.startswith("metadata.name"):
        told.append(snapshot.cluster.refused)
    told += sorted(
        state.why
        for state in found.states.values()
        if isinstance(state, pod_state.Unknown) and state.doubt is pod_state.Doubt.FOREIGN_RECORD
    )
    return (Reason.NAME_CONFLICT, joined(told)) if told else None


def _condition(kind: NodeSetCondition, why: tuple[Reason, str] | None, *, holds: bool | None = None) -> Condition:
    """A condition; True if there is something to report, unless `holds` says otherwise."""
    reason, text = why or (Reason.AS_EXPECTED, "")
    return condition(kind, reason, text, holds=why is not None if holds is None else holds)
