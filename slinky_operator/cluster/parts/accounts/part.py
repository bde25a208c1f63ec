"""What a Cluster shows of the accounts in slurmdbd. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.accounts.condition import counts, of_accounts
from slinky_operator.cluster.pass_state import PassState


class AccountsPart(Part):
    """The accounts, users and limits of `spec.accounting.tree`."""

    name = "accounts"
    condition = ClusterCondition.ACCOUNTS_APPLIED
    degrades = True

    @override
    def shown(self, state: PassState) -> Shown | None:
        return of_accounts(state.snapshot)

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        return {"accounting": counts(state.snapshot)}


ACCOUNTS: Final = AccountsPart()
