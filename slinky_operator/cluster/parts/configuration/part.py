"""What is known of the configuration, and what a Cluster shows of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import ClusterCondition, Reason
from slinky_api.v1alpha1.cluster.status import ConfigStatus
from slinky_operator.cluster.part import ON_ITS_WAY, Part, Problem, Shown
from slinky_operator.cluster.parts.keys.part import trouble
from slinky_operator.cluster.pass_state import PassState
from slinky_operator.cluster.rollout.config.outcome import Rollout
from slinky_operator.reconcile.text import named


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is known of the configuration."""

    rollout: Rollout | None = None
    """Its state; `None` before its step, and for an external Cluster."""


class ConfigurationPart(Part):
    """The rollout of slurm.conf."""

    name = "configuration"
    condition = ClusterCondition.CONFIG_APPLIED

    @override
    def shown(self, state: PassState) -> Shown | None:
        rollout = state.found(Configuration).rollout
        if rollout is None:
            return None
        return "True" if rollout.applied else "False", rollout.reason, rollout.message

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        rollout = state.found(Configuration).rollout
        if rollout is not None and not rollout.applied and rollout.reason not in ON_ITS_WAY:
            yield Problem(rollout.reason, rollout.message, in_summary=True)

    @override
    def ongoing(self, state: PassState) -> Iterator[tuple[Reason, str]]:
        rollout = state.found(Configuration).rollout
        if rollout is not None and not rollout.applied and rollout.reason in ON_ITS_WAY:
            yield rollout.reason, rollout.message

    @override
    def fields(self, state: PassState) -> Mapping[str, Any]:
        return {"config": _status(state)}


class LeftOut(Part):
    """NodeSets and nodes that the configuration leaves out."""

    name = "configuration"

    @override
    def problems(self, state: PassState) -> Iterator[Problem]:
        rollout = state.found(Configuration).rollout
        if rollout is None:
            return
        refused = rollout.rendered.refused
        local = f"configuration of NodeSet {named([one.node_set for one in refused])} refused"
        for one in refused:
            yield Problem(Reason.CONFIG_REFUSED, f"NodeSet {one.node_set}: {one.problem}", local=local)
        for untried in rollout.untried:
            yield Problem(Reason.CONFIG_UNTRIED, str(untried))
        if rollout.unaddressed:
            yield Problem(Reason.NODES_WITHOUT_ADDRESS, rollout.unaddressed, local="nodes without an address")


def _status(state: PassState) -> ConfigStatus:
    rollout = state.found(Configuration).rollout
    if rollout is not None:
        return rollout.status
    if trouble(state) is not None:
        # New pods would get a key that is not meant for them.
        return ConfigStatus(node_sets=())
    # slurm.conf is not the operator's there, and its content is not known: every NodeSet may have pods.
    return ConfigStatus(node_sets=tuple(one.name for one, _ in state.snapshot.node_sets if not one.deleting))


CONFIGURATION: Final = ConfigurationPart()
LEFT_OUT: Final = LeftOut()
