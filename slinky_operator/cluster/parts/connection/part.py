"""What a Cluster shows of the connection to Slurm, and which Secret that reads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts import daemons
from slinky_operator.cluster.parts.connection.contact import CONTACT, contact
from slinky_operator.cluster.parts.connection.slurm_connection import Connection
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object


class ContactPart(Part):
    """One of the conditions that show whether Slurm answers."""

    name = "connection"

    def __init__(self, condition: ClusterCondition) -> None:
        self.condition = condition
        self._condition = condition

    @override
    def shown(self, state: PassState) -> Shown:
        return contact(state.snapshot, state.found(Connection).missing)[self._condition]

    @override
    def because(self, state: PassState) -> Iterator[str]:
        """What is known of the daemon's pod, unless there is no connection."""
        if state.snapshot.cluster.spec.external or state.found(Connection).missing is not None:
            return
        names = {one.daemon for one in daemons.DAEMONS if one.condition == self._condition}
        yield from (str(one) for one in daemons.troubles(state.snapshot, state.wall) if one.daemon in names)


class ConnectionPart(Part):
    """The connection itself."""

    name = "connection"

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterator[str]:
        if cluster.spec.token is not None:
            yield cluster.spec.token.secret_name

    @override
    def blockers(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        missing = state.found(Connection).missing
        if missing is not None:
            too_many = missing.reason is Reason.TOO_MANY_CLUSTERS
            kind = ClusterCondition.API_REACHABLE if too_many else ClusterCondition.TOKEN_VALID
            yield missing.reason, f"{kind}: {missing.message}"


CONNECTION: Final = (ConnectionPart(), *map(ContactPart, CONTACT))
