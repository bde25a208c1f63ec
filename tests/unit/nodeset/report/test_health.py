"""What a NodeSet shows of nodes that the budget for health does not let drain."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.common import Condition
from slinky_api.v1alpha1.nodeset.health import Replace, ReplacePolicy
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.status import Replacement
from slinky_operator.nodeset.health.choice import HealthChoice, WaitingNode
from slinky_operator.nodeset.health.replacement import GivenUp, ReplacementChoice
from slinky_operator.nodeset.health.rules import Match, Verdict
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model.pod_state import Drained, Ready
from slinky_operator.nodeset.model.snapshot import SlurmFacts, Snapshot
from slinky_operator.nodeset.placement.layout import Layout
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.report import status, trouble_events
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from tests.unit.nodeset.report.test_status import NOW, a_pod, nodeset, seen

KIND = "HealthBudgetReached"
REPLACED = "ReplacementFailed"


def waiting(number: int, *kinds: str) -> WaitingNode:
    since = NOW - timedelta(hours=1)
    matches = tuple(Match(kind, since, f"{kind}: changes all the time") for kind in kinds)
    return WaitingNode(f"a-{number}", f"a-{number}", f"m-{number}", Verdict(matches))


def snapshot(**given: Any) -> Snapshot:
    owner = nodeset(health={"defaults": True, "maxUnhealthy": 1})
    return replace(seen(*(a_pod(number) for number in range(3)), owner=owner), **given)


def report(of: Snapshot, *left: WaitingNode, held: int = 1, **found: Any) -> status.Report:
    states = {pod.name: Ready() for pod in of.pods}
    choice = HealthChoice(waiting=left, held=held, budget=1)
    return status.report(of, Decisions(Layout(3), health=choice, **{"states": states, **found}), NOW)


def conditions(of: status.Report) -> dict[str, Condition]:
    return {one.type: one for one in of.status.conditions}


def test_within_the_budget_the_condition_has_the_numbers() -> None:
    found = conditions(report(snapshot()))

    assert (found[KIND].status, found[KIND].reason) == ("False", "AsExpected")
    assert found[KIND].message == "spec.health keeps 1 node drained, and 1 at most (maxUnhealthy)"
    assert found["Degraded"].status == "False"


def test_beyond_it_nodes_hosts_and_conditions_are_named_and_the_nodeset_is_ready() -> None:
    found = conditions(report(snapshot(), waiting(1, "KernelDeadlock", "SysLogsXIDError"), waiting(2, "XfsShutdown")))

    assert found[KIND].status == "True"
    assert found[KIND].message == (
        "2 nodes are not drained although the Kubernetes Node is bad: "
        "a-1 (Node m-1: KernelDeadlock since 2026-01-01T11:00:00Z, SysLogsXIDError since 2026-01-01T11:00:00Z); "
        "a-2 (Node m-2: XfsShutdown since 2026-01-01T11:00:00Z). "
        "spec.health keeps 1 node drained, and 1 at most (maxUnhealthy). "
        "If the check is right, mend the Nodes, cordon them, or raise spec.health.maxUnhealthy"
    )
    assert (found["Degraded"].reason, found["Degraded"].message) == (KIND, found[KIND].message)
    assert found["Ready"].status == "True"


def test_many_that_wait_are_named_in_part() -> None:
    message = conditions(report(snapshot(), *(waiting(number, "XfsShutdown") for number in range(500))))[KIND].message

    assert "500 nodes are not drained" in message
    assert "and 495 more" in message
    assert len(message) < 1000


def test_an_event_is_due_once_and_again_for_further_nodes() -> None:
    memory, of = Memory(), snapshot()

    def due(*left: WaitingNode) -> list[Reason]:
        found = report(of, *left)
        return [one.reason for one in trouble_events.due(memory, of.nodeset.status, found.troubles)]

    assert due(waiting(1, "XfsShutdown")) == [Reason.HEALTH_BUDGET_REACHED]
    assert due(waiting(1, "XfsShutdown")) == []
    assert due(waiting(1, "XfsShutdown"), waiting(2, "XfsShutdown")) == [Reason.HEALTH_BUDGET_REACHED]
    assert due() == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"hosts": None}, Reason.NODES_NOT_WATCHED),
        ({"slurm": SlurmFacts(readable=False, reason=Reason.UNAUTHORIZED, why="no")}, Reason.UNAUTHORIZED),
    ],
)
def test_where_nothing_can_be_known_the_condition_says_why(given: dict[str, Any], reason: Reason) -> None:
    found = conditions(report(snapshot(**given)))

    assert (found[KIND].status, found[KIND].reason) == ("Unknown", reason)
    assert (found["Degraded"].status, found["Degraded"].reason) == ("True", reason)


def test_conditions_of_pods_need_no_kubernetes_nodes() -> None:
    shown = replace(snapshot(hosts=None), nodeset=nodeset(health={"podConditions": "All"}))
    found = conditions(report(shown))

    assert (found[KIND].status, found["Degraded"].status) == ("False", "False")


def test_without_rules_there_is_no_condition() -> None:
    assert KIND not in conditions(report(replace(snapshot(), nodeset=nodeset())))


def test_the_status_text_calls_such_a_drain_by_its_cause() -> None:
    states = {"a-0": Drained(frozenset({Cause.HEALTH})), "a-1": Ready(), "a-2": Ready()}

    found = report(snapshot(), waiting(1, "XfsShutdown"), states=states)

    assert "draining 1 of 3 for health" in found.status.summary
    assert "health: 1 of 2 bad nodes not drained: a-1" in found.status.summary


def test_a_node_that_is_not_replaced_any_more_is_told_with_what_to_do_and_one_event() -> None:
    record = Replacement(host="m-1", tries=3, last="2026-01-01T00:00:00Z", pod="a-1", pod_uid="u")
    choice = ReplacementChoice((record,), given_up=(GivenUp("a-1", record),))
    found = report(snapshot(), replacement=choice)

    degraded = conditions(found)["Degraded"]
    assert (degraded.status, degraded.reason) == ("True", "ReplacementFailed")
    assert degraded.message == (
        "a-1 stays drained, and is not replaced any more: Node m-1 is bad after 3 tries, the last one at "
        "2026-01-01T00:00:00Z. Mend its machine, or raise spec.health.replace.maxTries"
    )
    assert conditions(found)["Ready"].status == "True"
    assert found.status.replacements == (record,)
    memory = Memory()
    assert [one.reason for one in trouble_events.due(memory, snapshot().nodeset.status, found.troubles)] == [
        Reason.REPLACEMENT_FAILED
    ]
    assert trouble_events.due(memory, found.status, found.troubles) == []


def test_a_full_list_of_tries_is_told() -> None:
    found = report(snapshot(), replacement=ReplacementChoice(is_full=True))

    assert "status.replacements has 128 Nodes" in conditions(found)["Degraded"].message


def test_what_machines_wait_for_is_told_of_a_few_and_is_no_failure() -> None:
    waits = {f"m-{number}": f"Node m-{number}: waits for pods of others" for number in range(7)}
    found = conditions(report(with_replacement(), replacement=ReplacementChoice(waits=waits)))

    assert (found[REPLACED].status, found[REPLACED].reason) == ("False", "ReplacementWaits")
    assert found[REPLACED].message.startswith("Node m-0: waits for pods of others")
    assert found[REPLACED].message.endswith("; and 2 more Nodes")
    assert found["Degraded"].status == "False"


def test_a_policy_that_is_not_allowed_is_told_with_why() -> None:
    found = report(with_replacement(), replacement=ReplacementChoice(refused="no effect"))

    told = conditions(found)
    assert (told[REPLACED].status, told[REPLACED].reason) == ("True", "ReplacementRefused")
    assert (told["Degraded"].reason, told["Degraded"].message) == ("ReplacementRefused", "no effect")


@pytest.mark.parametrize("owner", [nodeset(), nodeset(health={"defaults": True})])
def test_a_request_of_a_policy_that_is_gone_is_told(owner: NodeSet) -> None:
    waits = {"m-1": "Node m-1 stays cordoned: …"}
    unreadable = SlurmFacts(readable=False, reason=Reason.UNAUTHORIZED, why="no")
    for given in ({}, {"slurm": unreadable}):
        of = replace(snapshot(**given), nodeset=owner)
        found = conditions(report(of, replacement=ReplacementChoice(waits=waits)))[REPLACED]
        assert (found.status, found.reason, found.message) == ("False", "ReplacementWaits", waits["m-1"])
    refused = ReplacementChoice(refused="no effect", waits=waits)
    assert conditions(report(with_replacement(), replacement=refused))[REPLACED].message == f"no effect. {waits['m-1']}"


def test_the_condition_of_replacements_is_there_with_a_policy_only() -> None:
    record = Replacement(host="m-1", tries=3, last="2026-01-01T00:00:00Z", pod="a-1", pod_uid="u")
    given_up = ReplacementChoice((record,), given_up=(GivenUp("a-1", record),))

    assert REPLACED not in conditions(report(snapshot()))
    assert conditions(report(with_replacement(), replacement=ReplacementChoice()))[REPLACED].status == "False"
    assert conditions(report(with_replacement()))[REPLACED].status == "Unknown"
    assert conditions(report(with_replacement(), replacement=given_up))[REPLACED].status == "True"


def with_replacement() -> Snapshot:
    """A NodeSet with a policy."""
    of = snapshot()
    health = of.nodeset.spec.health
    assert health is not None
    changed = health.model_copy(update={"replace": Replace(policy=ReplacePolicy.RECREATE_POD)})
    spec = of.nodeset.spec.model_copy(update={"health": changed})
    return replace(of, nodeset=of.nodeset.model_copy(update={"spec": spec}))
