"""What a Cluster shows of slurmctld: the pod that will replace its own, and why it hung. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason
from slinky_operator.cluster.part import Part, Problem, Shown
from slinky_operator.cluster.parts.slurmctld import hang
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.rollout.preflight.replacement import Replacement, Stage


class SlurmctldPart(Part):
    """slurmctld."""

    name = "slurmctld"
    condition = ClusterCondition.CONTROLLER_HUNG

    @override
    def shown(self, state: PassState) -> Shown | None:
        if state.snapshot.cluster.spec.external:
            return None
        words = hang.words(state.snapshot.pods.controller, state.wall)
        return ("True", Reason.WAITED_FOR_ITSELF, words) if words else None

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        swap = state.found(Replacement)
        if swap.stage is Stage.HELD:
            yield Problem(Reason.REPLACEMENT_HELD_BACK, swap.message, in_summary=True)

    @override
    def ongoing(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        swap = state.found(Replacement)
        if swap.stage is Stage.TRYING and swap.message:
            yield Reason.DAEMONS_STARTING, swap.message


SLURMCTLD_PART: Final = SlurmctldPart()
