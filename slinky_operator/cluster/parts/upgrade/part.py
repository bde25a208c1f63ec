"""What a Cluster shows of an upgrade. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_operator.cluster.part import Part, Problem
from slinky_operator.cluster.parts.upgrade.order import Upgrade
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.rollout.preflight.replacement import Replacement, Stage


class UpgradePart(Part):
    """In which order daemons get other images."""

    name = "upgrade"

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        refused = state.found(Upgrade).refused
        if refused:
            yield Problem(Reason.UPGRADE_REFUSED, refused, in_summary=True)

    @override
    def ongoing(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        words, swap = state.found(Upgrade).message, state.found(Replacement)
        if words and swap.stage is not Stage.HELD:
            trying = swap.message if swap.stage is Stage.TRYING else ""
            yield Reason.UPGRADING, "; ".join(filter(None, (words, trying)))


UPGRADE: Final = UpgradePart()
