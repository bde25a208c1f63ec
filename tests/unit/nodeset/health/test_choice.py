"""Which nodes are drained for their health: never more than the budget, and none that somebody else has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from slinky_operator.nodeset.health import choice
from slinky_operator.nodeset.health.choice import HealthChoice
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, NodeCondition
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.model.revisions.revision_records import Revision
from slinky_operator.nodeset.model.snapshot import ClusterFacts, SlurmFacts, Snapshot
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.reconcile.text import stamp
from slurm_client.models import Node
from tests.unit.nodeset.builders import NOW, OWNER, a_pod, node, nodeset

OURS = drains.reason({Cause.HEALTH}, OWNER, "Bad")
"""Reason of a drain that is there already."""


def host(number: int, age: float | None = 100, **given: Any) -> KubernetesNode:
    """A Kubernetes Node, bad for so many seconds; None: well for an hour."""
    since = stamp(NOW - timedelta(seconds=3600 if age is None else age))
    bad = NodeCondition("Bad", "False" if age is None else "True", since, message=f"m{number}")
    return KubernetesNode(f"host-{number}", conditions=(bad,), **given)


def seen(hosts: Sequence[KubernetesNode], *, reasons: dict[int, str] | None = None, **health: Any) -> Snapshot:
    """A NodeSet with a pod on each Node; and the reasons for which nodes are drained already."""
    of = nodeset(health={"nodeConditions": [{"type": "Bad"}], **health}, replicas=len(hosts))
    pods, records = [], {}
    for number, one in enumerate(hosts):
        pods.append(a_pod(name=f"a-{number}", ordinal=number, uid=f"u{number}", host=one.name))
        reason = (reasons or {}).get(number, "")
        words = "IDLE+DRAIN+DYNAMIC_NORM" if reason else "IDLE+DYNAMIC_NORM"
        records[f"a-{number}"] = node(words, name=f"a-{number}", instance_id=f"u{number}", reason=reason)
    return Snapshot(
        of,
        ClusterFacts("c", listed=True),
        SlurmFacts(readable=True, nodes=records),
        Revision(revision.of(of)),
        pods=tuple(pods),
        hosts={one.name: one for one in hosts},
    )


def chosen(snapshot: Snapshot, *leaving: str) -> HealthChoice:
    return choice.choose(snapshot, snapshot.members, len(snapshot.pods), leaving, (), NOW)


def names(found: HealthChoice) -> tuple[list[str], list[str]]:
    """Pods that are drained, and those that wait."""
    return sorted(found.drained), [one.pod for one in found.waiting]


def test_without_rules_nothing_is_chosen() -> None:
    snapshot = replace(seen([host(0)]), nodeset=nodeset())

    assert chosen(snapshot) == HealthChoice()


def test_a_node_on_a_bad_host_is_drained_with_what_the_host_says() -> None:
    found = chosen(seen([host(0), host(1, None), host(2, None)]))

    assert found.drained == {"a-0": "Bad: m0"}
    assert found.budget == 1


@pytest.mark.parametrize(
    ("given", "of", "budget"),
    [
        ("10%", 4, 1),
        ("10%", 40, 4),
        ("10%", 49, 4),
        ("50%", 3, 1),
        ("0%", 40, 0),
        (0, 40, 0),
        (3, 40, 3),
        ("100%", 7, 7),
    ],
)
def test_a_rule_that_matches_every_node_drains_no_more_than_the_budget(given: int | str, of: int, budget: int) -> None:
    found = chosen(seen([host(number, 100 + number) for number in range(of)], maxUnhealthy=given))

    assert len(found.drained) == found.budget == budget
    assert len(found.waiting) == of - budget


def test_those_that_are_drained_stay_and_then_the_longest_trouble_comes_first() -> None:
    hosts = [host(0, 900), host(1, 100), host(2, 500), host(3, 500)]

    assert names(chosen(seen(hosts, reasons={1: OURS}, maxUnhealthy=2))) == (["a-0", "a-1"], ["a-2", "a-3"])


def test_a_smaller_budget_gives_no_bad_node_back() -> None:
    found = chosen(seen([host(0), host(1), host(2)], reasons={0: OURS, 1: OURS}, maxUnhealthy=0))

    assert names(found) == (["a-0", "a-1"], ["a-2"])


def test_a_node_counts_until_it_is_given_back() -> None:
    """Its drain may take another pass to end."""
    found = chosen(seen([host(0, None), host(1)], reasons={0: OURS}, maxUnhealthy=1))

    assert names(found) == ([], ["a-1"])


def test_what_others_drain_or_cordon_needs_no_drain_and_counts_for_nothing() -> None:
    hosts = [host(0, 900), host(1, 800, cordoned=True), host(2, 700), host(3, 600), host(4, 500)]
    reasons = {0: "mine", 2: drains.reason({Cause.UPDATE}, OWNER)}

    assert names(chosen(seen(hosts, reasons=reasons, maxUnhealthy=1), "a-3")) == (["a-4"], [])


def test_a_cordon_does_not_end_a_drain_for_health() -> None:
    found = chosen(seen([host(0, cordoned=True), host(1)], reasons={0: OURS}, maxUnhealthy=1))

    assert names(found) == (["a-0"], ["a-1"])


def test_a_node_that_was_cordoned_is_drained_for_its_health_afterwards() -> None:
    found = chosen(seen([host(0)], reasons={0: drains.reason({Cause.NODE_CORDON}, OWNER)}))

    assert names(found) == (["a-0"], [])


def test_while_a_host_is_not_known_its_drain_stands() -> None:
    snapshot = seen([host(0), host(1)], reasons={0: OURS}, maxUnhealthy=5)

    nobody: dict[str, KubernetesNode] = {}
    for hosts in (None, nobody):
        assert chosen(replace(snapshot, hosts=hosts)).drained == {"a-0": ""}


def test_a_pod_that_has_moved_is_judged_by_its_new_host() -> None:
    snapshot = seen([host(0), host(1, None)])
    moved = replace(snapshot.pods[0], host="host-1")

    assert chosen(replace(snapshot, pods=(moved, snapshot.pods[1]))).drained == {}


def test_a_node_that_has_yet_to_register_is_not_drained() -> None:
    """There is nothing to drain; and the record of its predecessor is not its own."""
    snapshot = seen([host(0)])
    earlier = {"a-0": replace(snapshot.slurm.nodes["a-0"], instance_id="earlier")}

    for records in ({}, earlier):
        of: dict[str, Node] = records
        assert chosen(replace(snapshot, slurm=replace(snapshot.slurm, nodes=of))).drained == {}


def test_while_slurm_does_not_answer_nothing_is_chosen() -> None:
    assert chosen(replace(seen([host(0)]), slurm=SlurmFacts(readable=False))) == HealthChoice()


def test_the_next_look_is_when_a_trouble_has_lasted_and_when_a_node_has_been_well() -> None:
    well = NodeCondition("Bad", "False", stamp(NOW - timedelta(seconds=50)))
    hosts = [host(0, 10), KubernetesNode("host-1", conditions=(well,))]

    assert chosen(seen(hosts)).wake_up == 20
    assert chosen(seen(hosts, reasons={1: OURS})).wake_up == 10
    assert chosen(seen([host(0, 100), host(1, 100)])).wake_up is None


@pytest.mark.parametrize(
    ("drained_ago", "booted_ago", "before_ago", "is_well"),
    [(600, 300, None, True), (200, 300, None, False), (600, 300, 3000, False), (600, 300, 3900, True)],
    ids=["booted since", "booted before", "boots again and again", "booted long ago, too"],
)
def test_a_machine_that_has_started_since_is_judged_by_what_it_says_now(
    drained_ago: float, booted_ago: float, before_ago: float | None, is_well: bool
) -> None:
    """Nobody waits for clearSeconds; one that starts again and again has no such credit."""

    def ago(seconds: float | None) -> datetime | None:
        return None if seconds is None else NOW - timedelta(seconds=seconds)

    well = NodeCondition("Bad", "False", stamp(NOW - timedelta(seconds=5)))
    one = KubernetesNode("host-0", conditions=(well,), booted_at=ago(booted_ago), booted_before=ago(before_ago))
    snapshot = seen([one], reasons={0: OURS})
    records = {"a-0": replace(snapshot.slurm.nodes["a-0"], reason_changed_at=ago(drained_ago))}
    snapshot = replace(snapshot, slurm=replace(snapshot.slurm, nodes=records))

    assert (names(chosen(snapshot)) == ([], [])) is is_well
    still = replace(one, conditions=(NodeCondition("Bad", "True", stamp(NOW - timedelta(seconds=1000))),))
    assert names(chosen(replace(snapshot, hosts={"host-0": still}))) == (["a-0"], [])
