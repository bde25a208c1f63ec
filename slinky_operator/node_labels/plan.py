"""From what is wanted of a Node and what it has to one patch, and what is somebody else's. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.node_labels.model import Found, Record, WantedLabels
from slinky_operator.reconcile.writes.children import quantity


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pass does about a Node."""

    labels: Mapping[str, str | None] = field(default_factory=dict)
    """Labels to write; None removes one."""
    resources: Mapping[str, str | None] = field(default_factory=dict)
    """The same of extended resources."""
    record: Record = field(default_factory=Record)
    """What the operator has written, after this."""
    rewrites_record: bool = False
    foreign: tuple[str, ...] = ()
    """Labels and resources that are wanted otherwise, and somebody else's."""

    def patch(self) -> Object | None:
        """A merge patch of the Node through its status, labels and record in one; None if nothing changes."""
        metadata: Object = {}
        if self.labels:
            metadata["labels"] = _prefixed(self.labels)
        if self.rewrites_record:
            metadata["annotations"] = {labels.ANNOTATION_NODE_RECORD: self.record.to_annotation()}
        status = {"status": {"capacity": _prefixed(self.resources)}} if self.resources else {}
        return {**({"metadata": metadata} if metadata else {}), **status} or None


def plan(wanted: WantedLabels, found: Found, *, keeps: bool) -> Plan:
    """Decide what to write.

    Parameters
    ----------
    wanted
        What the Node is to have, as far as that is known.
    found
        What it has.
    keeps
        Whether what the operator has written, and is not wanted, stays: a source could not be read.
    """
    new_labels, own_labels, foreign_labels = _changes(
        wanted.labels, found.labels, found.record.labels, keeps=keeps, same=str.__eq__
    )
    counts = {name: str(count) for name, count in wanted.resources.items()}
    new_resources, own_resources, foreign_resources = _changes(
        counts, found.resources, found.record.resources, keeps=keeps, same=_same_quantity
    )
    record = Record(own_labels, own_resources)
    return Plan(
        labels=new_labels,
        resources=new_resources,
        record=record,
        rewrites_record=record != found.record,
        foreign=(
            *(f"label {labels.KUBERNETES_NODE_PREFIX}{name}" for name in foreign_labels),
            *(f"resource {labels.KUBERNETES_NODE_PREFIX}{name}" for name in foreign_resources),
        ),
    )


def _changes(
    wanted: Mapping[str, str],
    found: Mapping[str, str],
    ours: frozenset[str],
    *,
    keeps: bool,
    same: Callable[[str, str], bool],
) -> tuple[dict[str, str | None], frozenset[str], list[str]]:
    """What to write, the names that are the operator's after that, and those that somebody else's value keeps."""
    changes: dict[str, str | None] = {}
    own, foreign = set(), []
    for name, value in wanted.items():
        there = found.get(name)
        is_ours = there is None or name in ours
        if is_ours:
            own.add(name)
        if there is not None and same(there, value):
            continue
        if is_ours:
            changes[name] = value
        else:
            foreign.append(name)
    left = (ours & found.keys()) - wanted.keys()
    if keeps:
        own |= left
    else:
        changes |= dict.fromkeys(sorted(left))
    return changes, frozenset(own), sorted(foreign)


def _same_quantity(one: str, other: str) -> bool:
    return quantity(one) == quantity(other) is not None


def _prefixed(values: Mapping[str, str | None]) -> Object:
    return {labels.KUBERNETES_NODE_PREFIX + name: value for name, value in values.items()}
