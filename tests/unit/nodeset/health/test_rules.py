"""When a Kubernetes Node is bad, when it is well, and what changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.health import Health
from slinky_operator.nodeset.health import rules
from slinky_operator.nodeset.health.rules import Verdict
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, NodeCondition
from slinky_operator.reconcile.text import stamp
from tests.unit.nodeset.builders import NOW


def health(**given: Any) -> Health:
    return Health.model_validate({"nodeConditions": [{"type": "Bad"}], **given})


def condition(kind: str = "Bad", status: str = "True", age: float = 100, **given: Any) -> NodeCondition:
    return NodeCondition(kind, status, stamp(NOW - timedelta(seconds=age)), **given)


def judge(*conditions: NodeCondition, of: Health | None = None) -> Verdict:
    given = of or health()
    return rules.judge(KubernetesNode("host", conditions=conditions), given.rules(), given.clear_seconds, NOW)


def test_a_condition_counts_once_it_has_held_for_long_enough() -> None:
    assert judge(condition(age=30)).matches
    early = judge(condition(age=10))
    assert not early.matches
    assert not early.is_well
    assert early.bad_in == 20


def test_a_node_is_well_once_nothing_has_matched_for_long_enough() -> None:
    assert judge(condition(status="False", age=60)).is_well
    early = judge(condition(status="False", age=45))
    assert not early.is_well
    assert not early.matches
    assert early.well_in == 15


@pytest.mark.parametrize("conditions", [(), (condition("Other"),), (NodeCondition("Bad", ""),)])
def test_a_node_without_the_condition_is_well(conditions: tuple[NodeCondition, ...]) -> None:
    assert judge(*conditions) == Verdict(is_well=True)


def test_what_is_unknown_begins_and_ends_nothing() -> None:
    assert judge(condition(status="Unknown")) == Verdict()
    asked_for = health(nodeConditions=[{"type": "Bad", "status": "Unknown"}])
    assert judge(condition(status="Unknown"), of=asked_for).matches
    assert judge(condition(status="True"), of=asked_for).is_well


def test_one_condition_that_matches_keeps_a_node_from_being_well() -> None:
    both = health(nodeConditions=[{"type": "Bad"}, {"type": "Fine", "status": "False"}])

    assert judge(condition(), condition("Fine", "True"), of=both).matches
    assert not judge(condition(status="False"), condition("Fine", "False", age=1), of=both).is_well
    assert judge(condition(status="False"), condition("Fine", "True"), of=both).is_well


def test_a_time_in_the_future_is_as_good_as_now() -> None:
    assert judge(condition(age=-1000)).bad_in == 30
    assert judge(condition(age=-1000), of=health(nodeConditions=[{"type": "Bad", "forSeconds": 0}])).matches


def test_the_time_at_which_the_operator_saw_it_counts_where_there_is_no_other() -> None:
    seen = NodeCondition("Bad", "True", "soon", seen_at=NOW - timedelta(seconds=29))

    assert judge(seen).bad_in == 1


def test_the_oldest_match_is_the_age_of_the_trouble() -> None:
    both = health(nodeConditions=[{"type": "Bad"}, {"type": "Worse"}])

    found = judge(condition(age=50), condition("Worse", age=200), of=both)

    assert [one.type for one in found.matches] == ["Worse", "Bad"]
    assert found.since == NOW - timedelta(seconds=200)


@pytest.mark.parametrize(
    ("given", "rule", "words"),
    [
        ({"message": "Xid 79", "reason": "Xid"}, {}, "Bad: Xid 79"),
        ({"reason": "Xid"}, {}, "Bad: Xid"),
        ({}, {}, "Bad"),
        ({"message": "Xid 79"}, {"reason": "call the vendor"}, "call the vendor"),
        (
            {"message": "a\n(ns/b): \x1b[31mslurm-operator: update\u2028x"},
            {},
            "Bad: a (ns/b): [31mslurm-operator: update x",
        ),
        ({"message": "x" * 999}, {}, f"Bad: {'x' * 251}"),
    ],
)
def test_what_a_node_says_is_one_short_line(given: dict[str, Any], rule: dict[str, str], words: str) -> None:
    of = health(nodeConditions=[{"type": "Bad", **rule}])

    assert judge(condition(**given), of=of).words == words


def test_defaults_are_rules_like_others_and_give_way_to_them() -> None:
    assert judge(condition("KernelDeadlock"), of=health()).is_well
    known = health(defaults=True, nodeConditions=[{"type": "KernelDeadlock", "forSeconds": 300}])
    assert judge(condition("KernelDeadlock"), of=known).bad_in == 200
    assert judge(condition("SysLogsXIDError"), of=known).matches
    assert judge(condition("FrequentKubeletRestart"), of=known).is_well


@pytest.mark.parametrize(
    ("stored", "types"),
    [
        ({}, set()),
        ({"nodeConditions": [{"type": "Bad"}]}, {"Bad"}),
        ({"nodeConditions": None}, set()),
    ],
)
def test_the_types_that_are_read_of_an_object_as_it_is_stored(stored: dict[str, Any], types: set[str]) -> None:
    assert rules.types_read(stored) == types
    assert rules.types_read(stored | {"defaults": True}) > types
