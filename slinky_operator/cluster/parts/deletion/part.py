"""What a Cluster shows of its deletion. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason, find
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.part import Part, Shown
from slinky_operator.cluster.parts.deletion.step import slurmd_pods_left
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.reconcile.text import named


class DeletionPart(Part):
    """The deletion of a Cluster."""

    name = "deletion"
    condition = ClusterCondition.DELETING

    @override
    def shown(self, state: PassState) -> Shown | None:
        cluster = state.snapshot.cluster
        if not cluster.deleting:
            return None
        if not is_applied_while_deleting(state.snapshot):
            return "True", Reason.DELETING, _waits_for(state)
        wait = f"kubectl wait --for=delete clusters.slinky.slurm.net/{cluster.name} --namespace {cluster.namespace}"
        words = (
            f"{_waits_for(state)}. The Cluster was changed after its deletion, and goes with that change. Wait until "
            f"it has gone ({wait}), then apply it again"
        )
        return "True", Reason.APPLIED_WHILE_DELETING, words

    @override
    def ongoing(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        if state.snapshot.cluster.deleting:
            yield Reason.DELETING, _waits_for(state)


def is_applied_while_deleting(snapshot: Snapshot) -> bool:
    """Whether a Cluster that is being deleted was changed after that: the change goes with it."""
    before = find(snapshot.cluster.status.conditions, ClusterCondition.DELETING)
    if not snapshot.cluster.deleting or before is None:
        return False
    was_changed = (before.observed_generation or 0) < snapshot.cluster.metadata.generation
    return was_changed or before.reason == Reason.APPLIED_WHILE_DELETING


def _waits_for(state: PassState) -> str:
    return f"slurmd pods are left: {named(slurmd_pods_left(state.snapshot, state.now))}"


DELETION: Final = DeletionPart()
