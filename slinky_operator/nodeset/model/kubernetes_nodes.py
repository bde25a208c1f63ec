"""The facts about a Kubernetes Node that matter to slurmd pods, read once and frozen.

A fact that rules need is a field of `KubernetesNode`, filled by `read`, from what
`reconcile.cached.indexes.prune_node` leaves of a Node.

In this code a *node* is Slurm's and a *host* is a Kubernetes Node. Two hosts that compare equal mean the same to every
NodeSet: a heartbeat makes no difference, and triggers no pass. Conditions are apart from that: they concern only
NodeSets that have rules for them (`health.rules`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from slinky_api import labels
from slinky_operator.kube.node_taints import leaving
from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.model import machines
from slinky_operator.nodeset.model.machines import Mark
from slinky_operator.reconcile.text import moment

MOST_CONDITIONS: Final = 128
"""Conditions of a Node that are read; any beyond are not."""

LONGEST_REASON: Final = 256
"""Characters of a Node's own reason in the reason of a Slurm node."""

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"

_FEATURE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:=/@+-]*")
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a Node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition of a Node; equal to another of the same status since the same time, whatever the two say."""

    type: str
    status: str
    """True, False or Unknown; empty if the Node had the condition and has it no more."""
    changed: str = ""
    """`lastTransitionTime`, as written."""
    seen_at: datetime | None = field(default=None, compare=False)
    """When the operator first saw this status, if `changed` is no time, or was in the future then."""
    reason: str = field(default="", compare=False)
    message: str = field(default="", compare=False)

    @property
    def since(self) -> datetime | None:
        """Since when it has this status; None if neither the Node nor the operator knows."""
        return self.seen_at if self.seen_at is not None else _time(self.changed)


@dataclass(frozen=True, slots=True)
class KubernetesNode:
    """One Kubernetes Node."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    node_name: str = ""
    """Name of a Slurm node there, if the Node sets it."""
    weight: int = 0
    """Nodes with a lower weight are used first."""
    features: tuple[str, ...] = ()
    """Features of the Slurm nodes there, without their prefix."""
    topology: str = ""
    """Their place in Slurm's topology; empty if the Node sets none."""
    disk_pressure: bool = False
    """Whether its kubelet is short of disk, and may evict pods."""
    cordoned: bool = False
    """Whether it takes no more pods: by hand, or because a machine autoscaler is taking it away, or its machine may
    reboot at any moment."""
    why_cordoned: str = ""
    """Its reason annotation, else the autoscaler's taint, else the bad conditions; empty if nothing says why."""
    mark: Mark | None = None
    """What the operator does about its machine."""
    conditions: tuple[NodeCondition, ...] = field(default=(), compare=False)
    """Its conditions, and those that it had while this process ran."""
    boot_id: str = field(default="", compare=False)
    """Of its machine, another one after each start."""
    booted_at: datetime | None = field(default=None, compare=False)
    """When this process saw another boot id, and None while it has seen one only."""
    booted_before: datetime | None = field(default=None, compare=False)
    """The time before that."""


@dataclass(frozen=True, slots=True)
class HostChange:
    """A change of a Node that may matter to NodeSets."""

    host: KubernetesNode
    """The Node as it is; one that is gone as it was."""
    conditions: frozenset[str] = frozenset()
    """Types of the conditions that changed, if nothing else did: only those with rules for them need to know."""


class Hosts:
    """All Kubernetes Nodes, kept by a handler of their informer.

    Parameters
    ----------
    now
        The wall clock, for conditions that do not say since when they have their status.
    """

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._all: dict[str, KubernetesNode] = {}
        self._given = False
        """Whether a caller holds the current mapping."""

    def observe(self, old: Object | None, new: Object | None) -> HostChange | None:
        """Apply a change; returns it if it matters to a NodeSet."""
        obj = new if new is not None else old
        if obj is None:
            return None
        name = obj["metadata"]["name"]
        before, after = self._all.get(name), read(new) if new is not None else None
        if before is not None and after is not None:
            is_other = old is not None and old["metadata"].get("uid") != obj["metadata"].get("uid")
            after = replace(after, conditions=self._since(() if is_other else before.conditions, after.conditions))
            after = after if is_other else self._booted(before, after)
            changed = frozenset(one.type for one in {*before.conditions} ^ {*after.conditions})
            if before == after and not changed and _says_the_same(before, after) and before.boot_id == after.boot_id:
                return None
        elif after is not None:
            after, changed = replace(after, conditions=self._since((), after.conditions)), frozenset()
        elif before is None:
            return None
        else:
            changed = frozenset()
        if self._given:
            self._all, self._given = dict(self._all), False
        if after is None:
            del self._all[name]
            return HostChange(before) if before is not None else None
        self._all[name] = after
        if before is None or before != after or before.booted_at != after.booted_at:
            return HostChange(after)
        return HostChange(after, changed) if changed else None

    def _since(self, before: tuple[NodeCondition, ...], after: tuple[NodeCondition, ...]) -> tuple[NodeCondition, ...]:
        """Conditions with the time at which they were first seen as they are, where their own time is of no use."""
        known = {one.type: one for one in before}
        now = self._now()
        found = [_dated(one, known.get(one.type), now) for one in after]
        gone = known.keys() - {one.type for one in after}
        left = [
            known[kind] if not known[kind].status else NodeCondition(kind, "", seen_at=now) for kind in sorted(gone)
        ]
        return (*found, *left)[:MOST_CONDITIONS]

    def _booted(self, before: KubernetesNode, after: KubernetesNode) -> KubernetesNode:
        """A Node with the times at which its machine was seen to have started."""
        if not before.boot_id or not after.boot_id or before.boot_id == after.boot_id:
            kept = after.boot_id or before.boot_id
            return replace(after, boot_id=kept, booted_at=before.booted_at, booted_before=before.booted_before)
        return replace(after, booted_at=self._now(), booted_before=before.booted_at)

    def picture(self) -> Mapping[str, KubernetesNode]:
        """The current Nodes by name; the returned mapping does not change."""
        self._given = True
        return self._all


def read(obj: Mapping[str, Any]) -> KubernetesNode:
    """Read a Node, complete or pruned."""
    metadata = obj["metadata"]
    spec: Mapping[str, Any] = obj.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    mark = machines.read(annotations)
    cordoned = bool(spec.get("unschedulable") or leaving(obj) or (mark is not None and mark.is_sent))
    return KubernetesNode(
        name=metadata["name"],
        node_name=_node_name(metadata),
        weight=_integer(labels.read(annotations, labels.ANNOTATION_NODE_WEIGHT)),
        labels=metadata.get("labels") or {},
        taints=tuple(
            Taint(str(taint.get("key") or ""), str(taint.get("value") or ""), str(taint.get("effect") or ""))
            for taint in spec.get("taints") or ()
        ),
        features=_features(annotations),
        topology=one_line(str(annotations.get(labels.ANNOTATION_TOPOLOGY_SPEC) or "")),
        disk_pressure=any(
            condition.get("type") == "DiskPressure" and condition.get("status") == "True"
            for condition in (obj.get("status") or {}).get("conditions") or ()
        ),
        cordoned=cordoned,
        why_cordoned=_why_cordoned(obj) if cordoned else "",
        mark=mark,
        conditions=_conditions(obj.get("status") or {}),
        boot_id=str(((obj.get("status") or {}).get("nodeInfo") or {}).get("bootID") or ""),
    )


def _conditions(status: Mapping[str, Any]) -> tuple[NodeCondition, ...]:
    """The conditions, one for each type; texts are those of the cached Node, which cost nothing more."""
    found = {
        kind: NodeCondition(
            kind,
            str(condition.get("status") or ""),
            str(condition.get("lastTransitionTime") or ""),
            reason=str(condition.get("reason") or ""),
            message=str(condition.get("message") or ""),
        )
        for condition in (status.get("conditions") or ())[:MOST_CONDITIONS]
        if (kind := str(condition.get("type") or ""))
    }
    return tuple(found.values())


def _dated(one: NodeCondition, before: NodeCondition | None, now: datetime) -> NodeCondition:
    """A condition with the time at which it was first seen, if its own is none, or later than that."""
    if before == one and before is not None:
        return one if before.seen_at is None else replace(one, seen_at=before.seen_at)
    changed = _time(one.changed)
    return one if changed is not None and changed <= now else replace(one, seen_at=now)


def _time(text: str) -> datetime | None:
    """A time with its zone, as the API server writes it; None if it is none."""
    found = moment(text)
    return found if found is not None and found.tzinfo is not None else None


def _says_the_same(before: KubernetesNode, after: KubernetesNode) -> bool:
    """Whether all conditions have the same texts; others are kept for the next drain, and trigger nothing."""
    return [(one.reason, one.message) for one in before.conditions] == [
        (one.reason, one.message) for one in after.conditions
    ]


def _node_name(metadata: Mapping[str, Any]) -> str:
    """The override from an annotation or a label, else the host name without its domain."""
    annotations, own = metadata.get("annotations") or {}, metadata.get("labels") or {}
    override = labels.read(annotations, labels.NODE_HOSTNAME_OVERRIDE) or own.get(labels.NODE_HOSTNAME_OVERRIDE)
    return str(override or (own.get(HOSTNAME_LABEL) or metadata["name"]).partition(".")[0])


def _features(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The words of the annotation, sorted; what Slurm would not accept as one word is left out."""
    words = str(annotations.get(labels.ANNOTATION_FEATURES_SPEC) or "").split(",")
    return tuple(sorted({word for one in words if _FEATURE.fullmatch(word := one.strip())}))


def _integer(text: str | None) -> int:
    try:
        return int(text) if text is not None else 0
    except ValueError:
        return 0


def _why_cordoned(obj: Mapping[str, Any]) -> str:
    given = labels.read(obj["metadata"].get("annotations"), labels.ANNOTATION_NODE_CORDON_REASON)
    taint = leaving(obj)
    return one_line(given or (f"taint {taint}" if taint else "; ".join(_bad_conditions(obj.get("status") or {}))))


def _bad_conditions(status: Mapping[str, Any]) -> list[str]:
    """Conditions that are True, and Ready if it is not; with the messages of the component that set them."""
    found = []
    for condition in status.get("conditions") or ():
        kind, holds = str(condition.get("type") or ""), condition.get("status") == "True"
        is_wanted = kind == "Ready"
        if holds == is_wanted:
            continue
        name = f"not {kind}" if is_wanted else kind
        words = condition.get("message") or condition.get("reason") or ""
        found.append(f"{name}: {words}" if words else name)
    return found


def one_line(text: str) -> str:
    """A text that Slurm can show on one line: printable, single spaces, not too long."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return _SPACE.sub(" ", printable).strip()[:LONGEST_REASON]
