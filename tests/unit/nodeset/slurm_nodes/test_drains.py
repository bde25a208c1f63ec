"""Who owns a drain, what it is for, and when a node is empty."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from slinky_operator.nodeset.placement import claim_retention
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from tests.unit.nodeset.builders import OURS, OWNER, job, node

UNTIMED: Final = {
    Cause.REPAIR: "the pod is deleted once its node is drained, and jobs have no deadline",
    Cause.NO_POD: "there is no pod to delete",
}
"""Causes that no spec gives a time, and that no administrator reverts."""

KEEPING_CLAIMS: Final = {
    Cause.UPDATE: "the next pod of the ordinal uses them",
    Cause.REPAIR: "the next pod of the ordinal uses them",
    Cause.DELETION: "whenDeleted decides, after the last pod",
    Cause.CLUSTER_DELETION: "the NodeSet stays",
}
"""Causes for which a pod is deleted and its claims stay, and why."""


def test_each_cause_is_timed_or_a_cordon_or_neither_for_a_reason() -> None:
    assert Counter([*drains.TIMED, *drains.CORDONS, *UNTIMED]) == Counter(Cause)


def test_claims_go_or_stay_with_each_pod_that_is_deleted() -> None:
    assert Counter([*claim_retention.GONE_FOR_GOOD, *KEEPING_CLAIMS]) == Counter(drains.REMOVAL)


@pytest.mark.parametrize("words", ["ALLOCATED", "MIXED", "IDLE+COMPLETING", "DOWN+COMPLETING", "MIXED+COMPLETING"])
def test_a_busy_node_is_not_drained(words: str) -> None:
    assert not drains.is_drained(node(f"{words}+DRAIN+DYNAMIC_NORM"), [])


@pytest.mark.parametrize("words", ["IDLE", "DOWN", "DOWN+NOT_RESPONDING", "IDLE+INVALID_REG"])
def test_an_empty_drained_node_is_drained(words: str) -> None:
    assert drains.is_drained(node(f"{words}+DRAIN+DYNAMIC_NORM"), [])
    assert not drains.is_drained(node(f"{words}+DYNAMIC_NORM"), [])


@pytest.mark.parametrize(
    "words",
    ["RUNNING", "SUSPENDED", "CANCELLED+COMPLETING", "COMPLETED+STAGE_OUT", "RUNNING+CONFIGURING", "TELEPORTING"],
)
def test_these_jobs_hold_their_nodes(words: str) -> None:
    held = drains.jobs_by_node([job(words)])

    assert held["a-0"]
    assert not drains.is_drained(node("IDLE+DRAIN+DYNAMIC_NORM"), held["a-0"])


@pytest.mark.parametrize("words", ["PENDING", "COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT", "CANCELLED"])
def test_these_jobs_hold_nothing(words: str) -> None:
    assert drains.jobs_by_node([job(words)]) == {}


def test_causes_are_read_back_from_the_reason() -> None:
    reason = drains.reason({Cause.UPDATE, Cause.SCALE_IN}, OWNER)

    assert reason == "slurm-operator: scale-in, update (ns/a)"
    drained = node("IDLE+DRAIN+DYNAMIC_NORM", reason=reason)
    assert drains.causes_in(drained) == {Cause.UPDATE, Cause.SCALE_IN}
    # 24.11 leaves the reason standing after an undrain.
    assert drains.causes_in(node(reason=reason)) == frozenset()


def test_the_words_of_a_cordoned_node_do_not_hide_the_causes() -> None:
    reason = drains.reason({Cause.NODE_CORDON, Cause.SCALE_IN}, OWNER, "disk (sda) is full: replace")

    assert reason == "slurm-operator: node-cordon, scale-in (ns/a): disk (sda) is full: replace"
    drained = node("IDLE+DRAIN+DYNAMIC_NORM", reason=reason)
    assert drains.causes_in(drained) == {Cause.NODE_CORDON, Cause.SCALE_IN}


def test_drains_are_written_only_where_nobody_drains() -> None:
    fresh = {
        "free": node(name="free"),
        "mine": node("IDLE+DRAIN+DYNAMIC_NORM", name="mine", reason="mine"),
        "ours": node("IDLE+DRAIN+DYNAMIC_NORM", name="ours", reason=OURS),
        "neighbour": node(name="neighbour", extra="ns/a-b"),
        "static": node("IDLE", name="static"),
        "unknown": None,
    }

    assert drains.to_drain(fresh, fresh, OWNER, {Cause.SCALE_IN}) == ["free"]
    assert drains.to_drain(fresh, fresh, OWNER, {Cause.CORDON}) == ["free", "ours"]
    assert drains.to_undrain(fresh, fresh, OWNER) == ["ours"]


def test_a_request_is_written_into_a_drain_of_the_operators_once() -> None:
    """The request may be gone before the cordon is, and its drain outlives it."""
    causes = {Cause.NODE_CORDON, Cause.DRAIN_REQUEST}
    for before in ({Cause.NODE_CORDON}, {Cause.HEALTH}):
        held = node("IDLE+DRAIN+DYNAMIC_NORM", reason=drains.reason(before, "ns/a"))
        assert drains.needs_write(held, causes | before)
    both = node("IDLE+DRAIN+DYNAMIC_NORM", reason=drains.reason(causes, "ns/a", "[NVSentinel] 79"))
    assert not drains.needs_write(both, causes)
    assert not drains.needs_write(both, {Cause.NODE_CORDON})
    assert not drains.needs_write(node("IDLE+DRAIN+DYNAMIC_NORM", reason="disk"), causes)
