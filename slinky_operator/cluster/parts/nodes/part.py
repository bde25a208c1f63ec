"""What a Cluster shows of Slurm's nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.nodes.counting import count_nodes
from slinky_operator.cluster.parts.nodes.out_of_service import brief, message, out_of_service
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.slurm.connection.contact import ContactState
from slurm_client.models import Node


@dataclass(frozen=True, slots=True)
class Nodes:
    """What is known of nodes."""

    bad: Mapping[Reason, Sequence[Node]] | None = None
    """Those that are out of service; `None` if Slurm does not answer, or nobody has looked yet."""


class NodesPart(Part):
    """Slurm's nodes."""

    name = "nodes"
    condition = ClusterCondition.NODES_OUT_OF_SERVICE

    @override
    def shown(self, state: PassState) -> Shown:
        snapshot, bad = state.snapshot, _bad(state)
        if bad is not None:
            return ("True", next(iter(bad)), message(bad)) if bad else ("False", Reason.AS_EXPECTED, "")
        slurm = snapshot.slurm
        known = find(snapshot.cluster.status.conditions, ClusterCondition.NODES_OUT_OF_SERVICE)
        connecting = slurm is None or slurm.contact.state is ContactState.CONNECTING
        if known is not None and known.status != "Unknown" and connecting:
            return known.status, Reason(known.reason), known.message
        return "Unknown", Reason.SLURM_UNREACHABLE, "Slurm cannot be asked for its nodes"

    @override
    def remark(self, state: PassState) -> str:
        bad = _bad(state) or {}
        return brief({reason: some for reason, some in bad.items() if reason is not Reason.FOREIGN_DRAIN})

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        slurm, before = state.snapshot.slurm, state.snapshot.cluster.status.nodes
        return {"nodes": before if slurm is None or _bad(state) is None else count_nodes(slurm.nodes.values())}


def _bad(state: PassState) -> Mapping[Reason, Sequence[Node]] | None:
    """Nodes that are out of service, looked for once in a pass: there are thousands of them."""
    slurm = state.snapshot.slurm
    if slurm is None or not state.snapshot.slurm_answers:
        return None
    if state.found(Nodes).bad is None:
        state.note(Nodes(out_of_service(slurm.nodes.values())))
    return state.found(Nodes).bad


NODES: Final = NodesPart()
