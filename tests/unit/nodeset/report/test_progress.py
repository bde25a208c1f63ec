"""Why nodes of a NodeSet drain: the condition `Draining` has the reason of their causes."""

from __future__ import annotations

import pytest

from slinky_api.conditions import Reason
from slinky_operator.nodeset.model.pod_state import Drained, Draining, State
from slinky_operator.nodeset.report import progress
from slinky_operator.nodeset.slurm_nodes.drains import CORDONS, Cause
from tests.unit.nodeset.report.test_troubles import a_node, a_pod, condition, report, seen


def drained(*causes: Cause) -> State:
    return Drained(frozenset(causes))


def shown(*states: State) -> Reason:
    pods = [a_pod(number) for number in range(len(states))]
    nodes = tuple(a_node(number, "IDLE+DRAIN") for number in range(len(states)))
    told = report(seen(*pods, nodes=nodes), {pod.name: state for pod, state in zip(pods, states, strict=True)})
    return Reason(condition(told, "Draining").reason)


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_a_reason_and_only_cordons_are_called_so(cause: Cause) -> None:
    assert (shown(drained(cause)) is Reason.CORDONED) == (cause in CORDONS - {Cause.HEALTH})


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (Cause.UPDATE, Reason.UPDATING),
        (Cause.REPAIR, Reason.REPAIRING),
        (Cause.HEALTH, Reason.UNHEALTHY),
        (Cause.SCALE_IN, Reason.SCALING_IN),
        (Cause.CLUSTER_DELETION, Reason.DELETING),
    ],
)
def test_a_drain_is_named_after_its_cause(cause: Cause, reason: Reason) -> None:
    assert shown(drained(cause)) is reason
    assert shown(drained(cause, Cause.CORDON), drained(Cause.NODE_CORDON)) is reason


def test_of_several_the_one_that_takes_most_pods_is_shown() -> None:
    assert shown(drained(Cause.UPDATE), drained(Cause.SCALE_IN)) is Reason.SCALING_IN
    assert shown(drained(Cause.REPAIR), drained(Cause.UPDATE)) is Reason.UPDATING
    assert shown(drained(Cause.SCALE_IN), drained(Cause.DELETION)) is Reason.DELETING


def test_a_node_that_is_no_longer_wanted_scales_in() -> None:
    assert shown(Draining(frozenset(), None, ()), drained(Cause.CORDON)) is Reason.SCALING_IN


def test_every_reason_has_a_place_in_the_order() -> None:
    assert set(progress.DRAIN_REASONS) == set(Cause)
    assert set(progress.DRAIN_REASONS.values()) == set(progress.DRAIN_ORDER)
