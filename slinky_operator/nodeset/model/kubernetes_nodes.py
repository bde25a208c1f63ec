"""The facts about a Kubernetes Node that matter to slurmd pods, read once and frozen.

A fact that rules need is a field of `KubernetesNode`, filled by `read`, from what
`reconcile.cached.indexes.prune_node` leaves of a Node.

In this code a *node* is Slurm's and a *host* is a Kubernetes Node. Two hosts that compare equal mean the same to every
NodeSet: a heartbeat makes no difference, and triggers no pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from slinky_api import labels
from slinky_operator.kube.objects import Object

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
    why_cordoned: str = ""
    """Its reason annotation, else the bad conditions; empty if it is not cordoned or nothing says why."""


class Hosts:
    """All Kubernetes Nodes, kept by a handler of their informer."""

    def __init__(self) -> None:
        self._all: dict[str, KubernetesNode] = {}
        self._given = False
        """Whether a caller holds the current mapping."""

    def observe(self, old: Object | None, new: Object | None) -> KubernetesNode | None:
        """Apply a change; returns the old or new Node if the change matters to a NodeSet."""
        obj = new if new is not None else old
        if obj is None:
            return None
        name = obj["metadata"]["name"]
        before, after = self._all.get(name), read(new) if new is not None else None
        if before == after:
            return None
        if self._given:
            self._all, self._given = dict(self._all), False
        if after is not None:
            self._all[name] = after
        else:
            del self._all[name]
        return after if after is not None else before

    def picture(self) -> Mapping[str, KubernetesNode]:
        """The current Nodes by name; the returned mapping does not change."""
        self._given = True
        return self._all


def read(obj: Mapping[str, Any]) -> KubernetesNode:
    """Read a Node, complete or pruned."""
    metadata = obj["metadata"]
    spec: Mapping[str, Any] = obj.get("spec") or {}
    cordoned = bool(spec.get("unschedulable"))
    annotations = metadata.get("annotations") or {}
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
        topology=_one_line(str(annotations.get(labels.ANNOTATION_TOPOLOGY_SPEC) or "")),
        disk_pressure=any(
            condition.get("type") == "DiskPressure" and condition.get("status") == "True"
            for condition in (obj.get("status") or {}).get("conditions") or ()
        ),
        cordoned=cordoned,
        why_cordoned=_why_cordoned(obj) if cordoned else "",
    )


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
    return _one_line(given or "; ".join(_bad_conditions(obj.get("status") or {})))


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


def _one_line(text: str) -> str:
    """A text that Slurm can show on one line: printable, single spaces, not too long."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return _SPACE.sub(" ", printable).strip()[:LONGEST_REASON]
