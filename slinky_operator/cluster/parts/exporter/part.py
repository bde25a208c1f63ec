"""What a Cluster shows of its exporter, and which Secret that reads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.exporter.condition import Workload, of_exporter
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object


class ExporterPart(Part):
    """The exporter of metrics."""

    name = "exporter"
    condition = ClusterCondition.EXPORTER_READY
    degrades = True

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterator[str]:
        exporter = cluster.spec.metrics.exporter
        if exporter.enabled and exporter.token_ref is not None:
            yield exporter.token_ref.name

    @override
    def shown(self, state: PassState) -> Shown | None:
        return of_exporter(state.snapshot, state.found(Workload))


EXPORTER_PART: Final = ExporterPart()
