"""A virtual Node as it is to be: labels, taints, capacity, addresses and conditions. Pure.

Ready is True as long as the operator runs: controllers delete the pods of a Node that is not, and with them jobs. That
Slurm is away, or a partition starts no jobs, is a condition of its own, and a taint that keeps new pods away.

An annotation records what the operator has written on a Node: labels of others are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import VIRTUAL_NODES
from slinky_operator.reconcile.text import cut, stamp
from slinky_operator.virtual_nodes.node_names import PROVIDER, TAINT_KEY, TAINT_VALUE, extended_resource
from slinky_operator.virtual_nodes.nodes.model.partitions import PartitionFacts

Taint = Mapping[str, str]

NO_SCHEDULE: Final = "NoSchedule"

SLURM_REACHABLE: Final = "SlurmReachable"
PARTITION_UP: Final = "PartitionUp"
"""Condition types of a virtual Node, beside those of kubelets."""

PLENTY: Final = 1_000_000
"""CPUs, pods and units of each GRES that a Node offers where waiting is left to Slurm."""

PLENTY_MEMORY: Final = f"{PLENTY}Gi"
"""The same of memory."""

VERSION: Final = "v1.34.0-slurm"
"""Version of the kubelet; tools that upgrade a cluster want to compare it."""

LONGEST_MESSAGE: Final = 500
"""Characters of the message of a condition."""

_TAINT: Final[Taint] = {"key": TAINT_KEY, "value": TAINT_VALUE, "effect": NO_SCHEDULE}

Unavailable = Literal["SlurmUnreachable", "PartitionNotUp", "PartitionGone"]
"""Why a Node takes no new pods: the value of the taint."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a Node takes new pods."""

    slurm: bool | None = True
    """Whether Slurm answers; None while that is not known, and what the Node says stays."""
    slurm_message: str = ""
    gone: str = ""
    """Why the Node is to go; empty if it is not."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A Node as it is to be."""

    name: str
    cluster: tuple[str, str, str]
    """Namespace, name and uid of the Cluster."""
    facts: PartitionFacts
    labels: Mapping[str, str]
    address: str
    port: int
    unlimited: bool = True
    """Whether the Node offers more than the partition has."""
    availability: Availability = field(default_factory=Availability)

    @property
    def annotation(self) -> str:
        """The value of the annotation that names the Cluster."""
        return "/".join(self.cluster)

    def capacity(self) -> dict[str, str]:
        """What the partition has."""
        facts = self.facts
        return {
            "cpu": str(facts.cpus),
            "memory": f"{facts.memory_mib}Mi",
            "pods": str(PLENTY),
            **{extended_resource(name): str(count) for name, count in facts.gres.items()},
        }

    def allocatable(self) -> dict[str, str]:
        """What kube-scheduler may give to pods."""
        if not self.unlimited:
            return self.capacity()
        plenty = dict.fromkeys(self.capacity(), str(PLENTY))
        return {**plenty, "memory": PLENTY_MEMORY}

    def unavailable(self) -> Unavailable | None:
        """Why it takes no new pods, as far as that is known."""
        if self.availability.gone:
            return "PartitionGone"
        if self.availability.slurm is False:
            return "SlurmUnreachable"
        return None if self.facts.is_up or not self.facts.is_known else "PartitionNotUp"

    def conditions(self) -> list[dict[str, str]]:
        """Conditions without times."""
        found = [
            _condition("Ready", "True", "OperatorRuns", "the operator serves this Node"),
            *(
                _condition(f"{kind}Pressure", "False", "Virtual", "a virtual Node has none")
                for kind in ("Memory", "Disk", "PID")
            ),
        ]
        available = self.availability
        if available.slurm is not None:
            away = "SlurmUnreachable", available.slurm_message
            status, (reason, message) = ("True", ("SlurmAnswers", "")) if available.slurm else ("False", away)
            found.append(_condition(SLURM_REACHABLE, status, reason, message))
        if available.gone:
            found.append(_condition(PARTITION_UP, "False", "PartitionGone", available.gone))
        elif available.slurm is not False and self.facts.is_known:
            state = self.facts.state
            message = f"the partition is {state}"
            found.append(_condition(PARTITION_UP, "True" if self.facts.is_up else "False", _word(state), message))
        return found


def body(wanted: NodeSpec, record: str, now: datetime) -> Object:
    """The object of a new Node, with its status: one call registers all of it."""
    return {
        "apiVersion": VIRTUAL_NODES.api_version,
        "kind": VIRTUAL_NODES.kind,
        "metadata": {
            "name": wanted.name,
            "labels": dict(wanted.labels),
            "annotations": {
                labels.ANNOTATION_VIRTUAL_NODE_CLUSTER: wanted.annotation,
                labels.ANNOTATION_VIRTUAL_NODE_RECORD: record,
            },
        },
        "spec": {"providerID": PROVIDER + wanted.name, "taints": taints((), wanted)},
        "status": status({}, wanted, now),
    }


def taints(found: Sequence[Mapping[str, Any]], wanted: NodeSpec) -> list[dict[str, Any]]:
    """The taints of a Node: those of others as they are, then the operator's."""
    others = [dict(one) for one in found if one.get("key") not in {TAINT_KEY, labels.TAINT_VIRTUAL_NODE_UNAVAILABLE}]
    kept = [dict(one) for one in found if one.get("key") == labels.TAINT_VIRTUAL_NODE_UNAVAILABLE]
    why = wanted.unavailable()
    if why is not None:
        own = [{"key": labels.TAINT_VIRTUAL_NODE_UNAVAILABLE, "value": why, "effect": NO_SCHEDULE}]
    else:
        own = kept if wanted.availability.slurm is None or not wanted.facts.is_known else []
    return [*others, dict(_TAINT), *own]


def status(found: Mapping[str, Any], wanted: NodeSpec, now: datetime) -> dict[str, Any]:
    """The status of a Node, as far as the operator writes it; conditions of others stay.

    Parameters
    ----------
    found
        The status that it has.
    wanted
        The Node as it is to be.
    now
        The time, for conditions that change.
    """
    return {
        "capacity": wanted.capacity(),
        "allocatable": wanted.allocatable(),
        "addresses": [{"type": "InternalIP", "address": wanted.address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": wanted.port}},
        "nodeInfo": _NODE_INFO,
        "conditions": _merged(found.get("conditions") or (), wanted.conditions(), now),
    }


_NODE_INFO: Final = {
    **dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "containerRuntimeVersion"), ""),
    "kubeletVersion": VERSION,
    "kubeProxyVersion": "",
    "osImage": "Slurm",
    "operatingSystem": "linux",
    "architecture": "amd64",
}


def _merged(
    found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, str]], now: datetime
) -> list[dict[str, Any]]:
    """All conditions, each of the operator's with its times: those that it has, unless it changes."""
    known = {str(one.get("type")): one for one in found}
    merged = {kind: dict(one) for kind, one in known.items()}
    for one in wanted:
        old = known.get(one["type"], {})
        if all((old.get(key) or "") == value for key, value in one.items()):
            continue
        changed = old.get("status") != one["status"] or "lastTransitionTime" not in old
        time = stamp(now) if changed else str(old["lastTransitionTime"])
        merged[one["type"]] = {**one, "lastHeartbeatTime": stamp(now), "lastTransitionTime": time}
    return list(merged.values())


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": cut(message, LONGEST_MESSAGE)}


def _word(state: str) -> str:
    """A known state of a partition as a reason."""
    return f"Partition{state.capitalize()}"


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """What the operator has written."""

    labels: frozenset[str] = frozenset()
    cordoned: bool = False
    """Whether it has cordoned the Node, since its partition has gone: only then it ends the cordon."""

    def to_annotation(self) -> str:
        """The value of the annotation."""
        return json.dumps({"labels": sorted(self.labels), **({"cordoned": True} if self.cordoned else {})})


def record_of(obj: Object) -> WrittenRecord:
    """Read the record; one that somebody has made unreadable claims nothing, so that nothing is removed by it."""
    annotations = obj["metadata"].get("annotations") or {}
    try:
        stored = json.loads(annotations.get(labels.ANNOTATION_VIRTUAL_NODE_RECORD) or "{}")
        names = frozenset(one for one in stored.get("labels") or () if isinstance(one, str))
        return WrittenRecord(names, stored.get("cordoned") is True)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return WrittenRecord()
