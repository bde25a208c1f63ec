"""What a Cluster shows of the objects of its daemons, and which Secrets those need. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.part import Part, Problem
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.daemons import Made
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.writes.due import refused
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.pod_trouble import DaemonTrouble


class WorkloadsPart(Part):
    """The objects of all daemons."""

    name = "workloads"

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterable[str]:
        return daemons.secrets(cluster)

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        return (Problem(Reason.CHILD_REFUSED, words, in_summary=True) for words in _refused(state))

    @override
    def blockers(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        return ((Reason.CHILD_REFUSED, words) for words in _refused(state))

    @override
    def stuck(self, state: PassState) -> Iterable[DaemonTrouble]:
        return () if state.snapshot.cluster.spec.external else daemons.troubles(state.snapshot, state.wall)


def _refused(state: PassState) -> tuple[str, ...]:
    """Objects that could not be built or written, and why."""
    made = state.found(Made)
    return (*made.refused, *refused(state.snapshot, made.children))


WORKLOADS: Final = WorkloadsPart()
