"""What a Cluster shows of Kubernetes Nodes that are nodes of its Slurm: here it becomes a condition. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason
from slinky_operator.cluster.part import Part, Shown, Word
from slinky_operator.cluster.pass_state import PassState


@dataclass(frozen=True, slots=True)
class BridgeSwitch:
    """Whether the operator's settings let any Cluster have a bridge."""

    is_on: bool = True


class BridgePart(Part):
    """Kubernetes Nodes as nodes of Slurm."""

    name = "bridge"
    condition = ClusterCondition.BRIDGE_READY
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        cluster = state.snapshot.cluster
        decided = cluster.status.bridge if state.found(BridgeSwitch).is_on else None
        if decided is None or cluster.spec.jobs.bridge is None:
            return None
        word: Word = "Unknown" if decided.ready is None else "True" if decided.ready else "False"
        return word, Reason(decided.reason or Reason.CONNECTING), decided.message

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        # Also without spec.jobs.bridge: its controller removes the field when the last node has gone.
        return {"bridge": state.snapshot.cluster.status.bridge if state.found(BridgeSwitch).is_on else None}


BRIDGE_PART: Final = BridgePart()
