"""NVSentinel's requests to drain a Kubernetes Node, read once and frozen.

The kind is `DrainRequest` of `nvsentinel.nvidia.com/v1alpha1`; what it means is NVSentinel's. Read are the Node, the
reason, and whether the condition `DrainComplete` is True. `podsToDrain` is not: the nodes of all slurmd pods on the
Node are drained, whatever it lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, one_line

COMPLETE: Final = "DrainComplete"
"""Type of the condition that NVSentinel waits for."""

STATE_LABEL: Final = "dgxc.nvidia.com/nvsentinel-state"
"""Label of a Node that NVSentinel is working on."""

PREFIX: Final = "[NVSentinel]"

ENTITIES_TOLD: Final = 3
"""Entities named in a reason."""


@dataclass(frozen=True, slots=True)
class DrainRequest:
    """One request."""

    namespace: str
    name: str
    uid: str
    host: str
    """The Kubernetes Node."""
    words: str
    """What it says, on one line, for the reason in Slurm."""
    is_complete: bool = False

    def is_in_force(self, host: KubernetesNode | None) -> bool:
        """Whether it keeps nodes drained: until it is complete, and then as long as NVSentinel works on the Node."""
        return not self.is_complete or (host is not None and STATE_LABEL in host.labels)


def read(obj: Object) -> DrainRequest | None:
    """Read a request; None for one that is being deleted, or names no Node."""
    metadata, spec = obj["metadata"], _mapping(obj.get("spec"))
    host = spec.get("nodeName")
    if not isinstance(host, str) or not host or metadata.get("deletionTimestamp"):
        return None
    conditions = _mapping(obj.get("status")).get("conditions")
    done = [one for one in _listed(conditions) if one.get("type") == COMPLETE and one.get("status") == "True"]
    return DrainRequest(
        str(metadata.get("namespace") or ""), metadata["name"], metadata["uid"], host, _words(spec), bool(done)
    )


def by_host(found: Iterable[DrainRequest]) -> dict[str, DrainRequest]:
    """One request for each Node: one that is not complete before one that is, then by name."""
    ordered = sorted(found, key=lambda one: (one.is_complete, one.namespace, one.name))
    chosen: dict[str, DrainRequest] = {}
    for one in ordered:
        _ = chosen.setdefault(one.host, one)
    return chosen


def _words(spec: Mapping[str, Any]) -> str:
    codes = ",".join(str(one) for one in spec.get("errorCode") or () if isinstance(one, str))
    entities = [f"{one.get('type', '')}:{one.get('value', '')}" for one in _listed(spec.get("entitiesImpacted"))]
    more = [f"+{len(entities) - ENTITIES_TOLD} more"] if len(entities) > ENTITIES_TOLD else []
    what = " ".join(filter(None, (PREFIX, codes, ",".join([*entities[:ENTITIES_TOLD], *more]))))
    return one_line(f"{what} - {spec.get('reason') or spec.get('checkName') or 'health check failed'}")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
