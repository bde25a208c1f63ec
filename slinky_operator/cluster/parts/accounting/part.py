"""What a Cluster shows of accounting, and which Secrets that reads. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.accounting import slurmctld_addresses, stored
from slinky_operator.cluster.parts.accounting.condition import SlurmdbdTrial, of_accounting
from slinky_operator.cluster.parts.accounting.mariadb import MARIADB
from slinky_operator.cluster.parts.accounting.slurmdbd import SLURMDBD
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.kube.objects import Object


class AccountingPart(Part):
    """slurmdbd and its database."""

    name = "accounting"
    condition = ClusterCondition.ACCOUNTING_READY
    degrades = True

    @override
    def secrets(self, cluster: Cluster, node_sets: Iterable[Object]) -> Iterable[str]:
        return stored.names(cluster)

    @override
    def shown(self, state: PassState) -> Shown | None:
        snapshot = state.snapshot
        daemons = [one for one in (MARIADB, SLURMDBD) if one.is_wanted(snapshot.cluster)]
        stuck = dict.fromkeys(trouble for one in daemons for trouble in one.troubles(snapshot, state.wall))
        return of_accounting(snapshot, stuck, state.found(SlurmdbdTrial).trial)

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        return {"slurmctld_addresses": slurmctld_addresses.kept(state.snapshot)}


ACCOUNTING: Final = AccountingPart()
