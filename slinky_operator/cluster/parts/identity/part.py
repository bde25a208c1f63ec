"""What a Cluster shows of the source of its users, and which Secrets that needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.part import Part, Problem, Shown
from slinky_operator.cluster.parts.identity.condition import UserSource, of_directory
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.identity import users
from slinky_operator.kube.objects import Object


class IdentityPart(Part):
    """The users whom daemons resolve, and their directory."""

    name = "identity"
    condition = ClusterCondition.DIRECTORY_REACHABLE

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterable[str]:
        return () if cluster.spec.external else users.secrets(cluster.spec.identity)

    @override
    def shown(self, state: PassState) -> Shown | None:
        return of_directory(state.snapshot)

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        trouble = state.found(UserSource).trouble
        if trouble is not None:
            yield Problem(trouble.reason, trouble.message)


IDENTITY: Final = IdentityPart()
