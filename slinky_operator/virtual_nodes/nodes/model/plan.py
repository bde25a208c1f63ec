"""From what a Cluster wants, what Slurm says and which Nodes there are to what is written. Pure.

A partition that Slurm has not shown lately removes nothing: only an answer without it does. The Node of a partition
that has gone takes no more pods, and is removed when none is left. A Node that somebody has deleted is made again. A
name that belongs to anybody else's Node is never touched. A Cluster has no more than `naming.MOST` Nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import joined, named
from slinky_operator.reconcile.writes.children import quantity
from slinky_operator.virtual_nodes.node_names import virtual_node
from slinky_operator.virtual_nodes.nodes.model.naming import MOST, names_of, within_limit
from slinky_operator.virtual_nodes.nodes.model.node_labels import node_labels
from slinky_operator.virtual_nodes.nodes.model.node_object import (
    Availability,
    NodeSpec,
    WrittenRecord,
    body,
    record_of,
    status,
    taints,
)
from slinky_operator.virtual_nodes.nodes.model.partition_config import PartitionOverride
from slinky_operator.virtual_nodes.nodes.model.partitions import PartitionFacts
from slinky_operator.virtual_nodes.nodes.model.snapshot import Problem, Snapshot, Wanted

TOO_MANY: Final = f"a Cluster has at most {MOST} virtual Nodes"
"""Why a Node goes that exists beyond them."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a Node."""

    body: Object


@dataclass(frozen=True, slots=True)
class Patch:
    """Change a Node that has not changed since."""

    obj: Object
    main: Object
    """Merge patch of labels, annotations, taints and cordon; empty for none."""
    status: Object
    """Merge patch of the status; empty for none."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a Node, which takes no more pods, once no pod is bound to it."""

    obj: Object
    why: str


Action: TypeAlias = Create | Patch | Remove


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass does."""

    actions: tuple[Action, ...]
    problems: tuple[Problem, ...]
    """Why not every wanted partition has a Node, the worst first."""
    wanted: int
    """Nodes that there are to be."""


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Decide what to write."""
    found = {str(obj["metadata"]["name"]): obj for obj in snapshot.nodes}
    if snapshot.wanted is None:
        return Plan(tuple(_departures(found.values(), snapshot, snapshot.why_not, now)), (), 0)
    wanted, facts = snapshot.wanted, snapshot.facts
    if facts is None:
        # Nothing is known of partitions: Nodes stay, and say that Slurm is away.
        stay = _unknown(found.values(), snapshot)
        return Plan(tuple(one for obj, spec in stay for one in _patch(obj, spec, now)), snapshot.problems, len(found))
    partitions = wanted.partitions or tuple(sorted(facts))
    chosen = names_of(wanted.host, [name for name in partitions if name in facts], _standing(found))
    taken = [f"{name} ({snapshot.taken[name]})" for name in chosen.names if _is_taken(name, found, snapshot)]
    free = {name: one for name, one in chosen.names.items() if not _is_taken(name, found, snapshot)}
    limited = within_limit(free, found.keys())
    problems = [*snapshot.problems, *_missing(partitions, facts), *chosen.problems]
    actions: list[Action] = []
    for name, partition in limited.names.items():
        spec = _node_spec(name, facts[partition], wanted, snapshot)
        obj = found.get(name)
        if obj is not None:
            actions.extend(_patch(obj, spec, now, keeps_labels=wanted.overrides is None))
        elif wanted.overrides is not None:
            actions.append(Create(body(spec, WrittenRecord(frozenset(spec.labels)).to_annotation(), now)))
    if taken:
        told = "not this Cluster's, so the operator does not touch them, and makes its own when they have gone"
        there = f"Nodes of these names are there already: {joined(taken)}. They are {told}"
        problems.append((Reason.NODE_NAME_TAKEN, f"{there}; to have Nodes before, choose another host"))
    problems.extend(limited.problems)
    standing = _standing(found)
    for name in sorted(found.keys() - limited.names.keys()):
        why = TOO_MANY if name in free else _why_it_goes(standing.get(name, ""), facts)
        actions.extend(_departures([found[name]], snapshot, why, now))
    return Plan(tuple(actions), tuple(problems), len(limited.names) + len(taken))


def _is_taken(name: str, found: Mapping[str, Object], snapshot: Snapshot) -> bool:
    """Whether a Node of this name is somebody else's."""
    return name not in found and name in snapshot.taken


def _why_it_goes(partition: str, facts: Mapping[str, PartitionFacts]) -> str:
    if partition in facts:
        return f"spec.jobs.virtualNodes gives partition {partition} no Node of this name any more"
    return f"Slurm has no partition {partition} any more"


def _standing(found: Mapping[str, Object]) -> Mapping[str, str]:
    """The partitions that Nodes stand for."""
    nodes = {name: virtual_node(obj) for name, obj in found.items()}
    return {name: node.partition for name, node in nodes.items() if node is not None}


def _missing(partitions: Iterable[str], facts: Mapping[str, PartitionFacts]) -> Iterable[Problem]:
    missing = [name for name in partitions if name not in facts]
    if missing:
        told = (
            f"spec.jobs.virtualNodes.partitions: Slurm has no partition {named(missing)}; it has {named(sorted(facts))}"
        )
        yield Reason.PARTITION_NOT_FOUND, told


def _node_spec(name: str, facts: PartitionFacts, wanted: Wanted, snapshot: Snapshot) -> NodeSpec:
    override = (wanted.overrides or {}).get(facts.name, PartitionOverride())
    return NodeSpec(
        name=name,
        cluster=(*snapshot.cluster, snapshot.uid),
        facts=facts,
        labels=node_labels(
            name, override.applied_to(facts), features=override.features, site=wanted.labels, zone=wanted.zone
        ),
        address=snapshot.address,
        port=snapshot.port,
        unlimited=wanted.unlimited,
        availability=snapshot.availability,
    )


def _patch(obj: Object, spec: NodeSpec, now: datetime, *, keeps_labels: bool = False) -> Iterable[Patch]:
    """What is to change of a Node.

    Parameters
    ----------
    spec
        The Node as it is to be; one whose partition is not known keeps its labels and what it offers.
    keeps_labels
        Whether the labels stay as they are.
    """
    found, record = obj.get("spec") or {}, record_of(obj)
    keeps_labels = keeps_labels or not spec.facts.is_known
    cordoned, unschedulable = _cordon(bool(found.get("unschedulable")), record, gone=bool(spec.availability.gone))
    new = WrittenRecord(record.labels if keeps_labels else frozenset(spec.labels), cordoned)
    metadata = _metadata(obj, spec, record, new, keeps_labels=keeps_labels)
    specs: dict[str, Any] = unschedulable
    wanted_taints = taints(found.get("taints") or (), spec)
    if not _same_taints(found.get("taints") or (), wanted_taints):
        specs["taints"] = wanted_taints
    main: Object = {key: value for key, value in (("metadata", metadata), ("spec", specs)) if value}
    changed = _status_patch(obj.get("status") or {}, status(obj.get("status") or {}, spec, now), spec)
    if main or changed:
        yield Patch(obj, main, changed)


def _cordon(now: bool, record: WrittenRecord, *, gone: bool) -> tuple[bool, dict[str, Any]]:
    """Whether a cordon is the operator's from now on, and what is to change of it."""
    if gone:
        return record.cordoned or not now, {} if now else {"unschedulable": True}
    return False, {"unschedulable": None} if now and record.cordoned else {}


def _metadata(
    obj: Object, spec: NodeSpec, record: WrittenRecord, new: WrittenRecord, *, keeps_labels: bool
) -> dict[str, Any]:
    own = obj["metadata"].get("labels") or {}
    changes: dict[str, str | None] = {}
    if not keeps_labels:
        changes = {key: value for key, value in spec.labels.items() if own.get(key) != value}
        changes |= dict.fromkeys(sorted((record.labels & own.keys()) - spec.labels.keys()))
    wanted = {
        labels.ANNOTATION_VIRTUAL_NODE_CLUSTER: spec.annotation,
        labels.ANNOTATION_VIRTUAL_NODE_RECORD: new.to_annotation(),
    }
    stored = obj["metadata"].get("annotations") or {}
    annotations = {key: value for key, value in wanted.items() if stored.get(key) != value}
    return {key: value for key, value in (("labels", changes), ("annotations", annotations)) if value}


def _same_taints(found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are the same taints, in whatever order."""

    def keys(taints: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
        return sorted((str(one.get("key")), str(one.get("value") or ""), str(one.get("effect"))) for one in taints)

    return keys(found) == keys(wanted)


def _status_patch(found: Mapping[str, Any], wanted: Mapping[str, Any], spec: NodeSpec) -> Object:
    """The merge patch of the status; quantities are compared as numbers, as the API server writes them its own way."""
    patch: Object = {}
    for key in ("capacity", "allocatable") if spec.facts.is_known else ():
        old, new = found.get(key) or {}, wanted[key]
        changes = {name: new.get(name) for name in {*old, *new} if _number(old.get(name)) != _number(new.get(name))}
        if changes:
            patch[key] = dict(sorted(changes.items()))
    for key in ("addresses", "daemonEndpoints", "conditions"):
        if found.get(key) != wanted[key]:
            patch[key] = wanted[key]
    if (found.get("nodeInfo") or {}).get("kubeletVersion") != wanted["nodeInfo"]["kubeletVersion"]:
        patch["nodeInfo"] = wanted["nodeInfo"]
    return patch


def _number(value: Any) -> Any:
    return None if value is None else quantity(value)


def _unknown(found: Iterable[Object], snapshot: Snapshot, gone: str = "") -> Iterable[tuple[Object, NodeSpec]]:
    """Nodes of whose partitions nothing is known, as they are to be."""
    available = Availability(snapshot.availability.slurm, snapshot.availability.slurm_message, gone)
    for obj in found:
        node = virtual_node(obj)
        if node is not None and not obj["metadata"].get("deletionTimestamp"):
            yield (
                obj,
                NodeSpec(
                    name=node.name,
                    cluster=(*snapshot.cluster, snapshot.uid or node.cluster_uid),
                    facts=PartitionFacts(node.partition, state=""),
                    labels={},
                    address=snapshot.address,
                    port=snapshot.port,
                    availability=available,
                ),
            )


def _departures(found: Iterable[Object], snapshot: Snapshot, why: str, now: datetime) -> Iterable[Action]:
    """Nodes that are to go: first they take no more pods, then they are removed when no pod is left."""
    for obj, spec in _unknown(found, snapshot, gone=why):
        patches: list[Action] = list(_patch(obj, spec, now))
        yield from patches or [Remove(obj, why)]
