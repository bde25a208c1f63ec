"""What a Cluster shows of its virtual Nodes: their own controller writes it, here it becomes a condition. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.v1alpha1.cluster.status import KubeletApiStatus, VirtualNodesStatus
from slinky_operator.cluster.part import Part, Shown, Word
from slinky_operator.cluster.pass_state import PassState


@dataclass(frozen=True, slots=True)
class VirtualNodesSwitch:
    """Whether the operator's settings let any Cluster have virtual Nodes."""

    is_on: bool = True


class VirtualNodesPart(Part):
    """Partitions as Kubernetes Nodes."""

    name = "virtual_nodes"
    condition = ClusterCondition.VIRTUAL_NODES_READY
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        decided = _decided(state)
        if decided is None:
            return None
        return _word(decided.ready), Reason(decided.reason or Reason.CONNECTING), decided.message

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        decided = _decided(state)
        partitions = () if decided is None else state.snapshot.cluster.status.partitions
        return {"virtual_nodes": decided, "partitions": partitions}


class KubeletApiPart(Part):
    """Whether the API server reaches what answers `kubectl logs` of pods on these Nodes."""

    name = "virtual_nodes"
    condition = ClusterCondition.KUBELET_API_REACHABLE
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        decided = _decided(state)
        found: KubeletApiStatus | None = None if decided is None else decided.kubelet_api
        if found is None:
            return None
        return _word(found.reachable), Reason(found.reason), found.message


def _word(holds: bool | None) -> Word:
    return "Unknown" if holds is None else "True" if holds else "False"


def _decided(state: PassState) -> VirtualNodesStatus | None:
    """What their controller has decided; nothing where it does not run, or nothing is wanted of it."""
    cluster = state.snapshot.cluster
    wanted = cluster.spec.jobs.virtual_nodes is not None and state.found(VirtualNodesSwitch).is_on
    return cluster.status.virtual_nodes if wanted else None


VIRTUAL_NODES: Final[tuple[Part, ...]] = (VirtualNodesPart(), KubeletApiPart())
