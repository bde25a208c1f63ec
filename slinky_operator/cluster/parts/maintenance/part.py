"""What a Cluster shows of maintenance windows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.maintenance.condition import in_maintenance, reserved, status_of
from slinky_operator.cluster.parts.maintenance.windows import WantedReservations
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.reconcile import maintenance


class WindowsPart(Part):
    """Maintenance windows: which one is on or next."""

    name = "maintenance"
    condition = ClusterCondition.IN_MAINTENANCE

    @override
    def shown(self, state: PassState) -> Shown | None:
        return in_maintenance(state.snapshot, state.wall)

    @override
    def remark(self, state: PassState) -> str:
        found = in_maintenance(state.snapshot, state.wall)
        if found is None or found[0] != "True":
            return ""
        return f"maintenance {maintenance.shown(state.snapshot.cluster.spec.maintenance, state.wall)}"

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        return {"maintenance": status_of(state.snapshot, state.wall)}


class ReservationsPart(Part):
    """Their reservations in Slurm."""

    name = "maintenance"
    condition = ClusterCondition.MAINTENANCE_RESERVED
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        return reserved(state.snapshot, state.found(WantedReservations).known)


MAINTENANCE: Final = (WindowsPart(), ReservationsPart())
