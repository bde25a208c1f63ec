"""What a Cluster shows of volumes. Pure."""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.volumes.condition import of_volumes
from slinky_operator.cluster.pass_state import PassState


class VolumesPart(Part):
    """Whether volumes have room."""

    name = "volumes"
    condition = ClusterCondition.VOLUMES_HAVE_ROOM
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        return of_volumes(state.snapshot)


VOLUMES: Final = VolumesPart()
