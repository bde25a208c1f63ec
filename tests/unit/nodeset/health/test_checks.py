"""What health checks say of a node, and that the budget holds whatever they say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slinky_operator.nodeset.health import choice
from slinky_operator.nodeset.health.choice import HealthChoice
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, NodeCondition
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.nodeset.slurm_nodes.drains import Cause
from slinky_operator.reconcile.text import stamp
from tests.unit.nodeset.builders import NOW, OWNER
from tests.unit.nodeset.health.checked import SINCE, own, seen, stored, told

DISK = [own("disk")]
OURS = drains.reason({Cause.HEALTH}, OWNER, "check disk: full")
GOOD, BAD = told(DISK), told(DISK, "disk failed full")


def chosen(snapshot: Snapshot) -> HealthChoice:
    return choice.choose(snapshot, snapshot.members, len(snapshot.pods), (), (), NOW)


def test_a_node_whose_check_fails_is_drained_with_what_it_says() -> None:
    assert chosen(seen(DISK, [GOOD, BAD, ""], known=stored(DISK))).drained == {"a-1": "check disk: full"}


@pytest.mark.parametrize(("given", "budget"), [("10%", 4), (0, 0), (3, 3), ("100%", 40)])
def test_a_check_that_fails_everywhere_at_the_same_second_drains_no_more_than_the_budget(
    given: int | str, budget: int
) -> None:
    found = chosen(seen(DISK, [BAD] * 40, known=stored(DISK), maxUnhealthy=given))

    assert (len(found.drained), len(found.waiting)) == (budget, 40 - budget)


def test_checks_and_conditions_of_nodes_share_the_budget_and_the_oldest_trouble_comes_first() -> None:
    rules: dict[str, Any] = {"nodeConditions": [{"type": "Bad"}], "maxUnhealthy": 1}
    snapshot = seen(DISK, [BAD, GOOD], known=stored(DISK), **rules)
    hosts = {}
    for number, age in ((0, "False"), (1, "True")):
        since = stamp(NOW.fromtimestamp(SINCE - 1000, NOW.tzinfo))
        hosts[f"h-{number}"] = KubernetesNode(f"h-{number}", conditions=(NodeCondition("Bad", age, since),))
    found = chosen(replace(snapshot, hosts=hosts))

    assert found.drained == {"a-1": "Bad"}
    assert [one.node for one in found.waiting] == ["a-0"]


def test_a_drain_ends_when_the_check_has_passed_for_a_while() -> None:
    def drained(comment: str) -> dict[str, str]:
        return dict(chosen(seen(DISK, [comment], known=stored(DISK), reasons={0: OURS})).drained)

    now = int(NOW.timestamp())
    assert drained(BAD) == {"a-0": "check disk: full"}
    assert drained(told(DISK, since=now - 59)) == {"a-0": ""}
    assert drained(told(DISK, since=now - 60)) == {}
    # A clock that is ahead makes no drain eternal.
    assert drained(told(DISK, since=now + 5000)) == {}


@pytest.mark.parametrize(
    "comment", ["", "somebody else's", told(DISK, "disk unknown exit code 127"), told(DISK, "disk pending")]
)
def test_a_drain_stands_while_nothing_proves_that_its_check_passes(comment: str) -> None:
    assert chosen(seen(DISK, [comment], known=stored(DISK), reasons={0: OURS})).drained == {"a-0": ""}


def test_a_drain_for_another_cause_of_health_does_not_wait_for_reports() -> None:
    reason = drains.reason({Cause.HEALTH}, OWNER, "KernelDeadlock: hung")

    assert chosen(seen(DISK, [""], known=stored(DISK), reasons={0: reason})).drained == {}


def test_a_check_that_could_not_be_run_drains_nothing() -> None:
    found = chosen(seen(DISK, [told(DISK, "disk unknown did not end within 20 s")], known=stored(DISK)))

    assert (found.drained, found.waiting) == ({}, ())


def test_one_that_only_tells_drains_nothing_and_ends_the_drain_that_it_began() -> None:
    quiet = [own("disk", onFail="Nothing")]

    assert chosen(seen(quiet, [told(quiet, "disk failed full")], known=stored(quiet), reasons={0: OURS})).drained == {}


def test_before_it_is_known_who_runs_what_no_drain_begins_and_none_ends() -> None:
    assert chosen(seen(DISK, [BAD], known=None)).drained == {}
    assert chosen(seen(DISK, [GOOD], known=None, reasons={0: OURS})).drained == {"a-0": ""}


def test_a_check_that_is_tried_drains_nothing_and_those_that_have_been_tried_do() -> None:
    both = [*DISK, own("new")]
    comment = told(both, "disk failed full", "new failed wrong everywhere")
    tried = stored(DISK, both, "a-0")

    assert chosen(seen(both, [comment], known=tried)).drained == {"a-0": "check disk: full"}
    changed = [own("disk", "exit 1")]
    comment = told(changed, "disk failed wrong everywhere")
    assert chosen(seen(changed, [comment], known=stored(DISK, changed, "a-0"))).drained == {}


def test_a_late_report_of_a_trial_that_was_given_up_drains_nothing_and_gives_nothing_back() -> None:
    late = told([own("disk", "exit 1")], "disk failed wrong everywhere")

    assert chosen(seen(DISK, [late], known=stored(DISK))).drained == {}
    assert chosen(seen(DISK, [late], known=stored(DISK), reasons={0: OURS})).drained == {"a-0": ""}


def test_a_check_that_is_not_wanted_any_more_drains_nothing() -> None:
    other = [own("other")]

    assert chosen(seen(other, [BAD], known=stored(DISK), reasons={0: OURS})).drained == {}


def test_a_drain_by_somebody_else_stays() -> None:
    found = chosen(seen(DISK, [GOOD, BAD], known=stored(DISK), reasons={0: "mine", 1: "mine"}))

    assert (found.drained, found.waiting) == ({}, ())


def test_checks_need_nobody_to_watch_nodes() -> None:
    snapshot = replace(seen(DISK, [BAD], known=stored(DISK)), hosts=None)

    assert chosen(snapshot).drained == {"a-0": "check disk: full"}


COMMENTS = st.sampled_from(
    [
        GOOD,
        BAD,
        "",
        "somebody else's",
        told(DISK, "disk unknown hangs"),
        told(DISK, "disk pending"),
        told(DISK, since=int(NOW.timestamp()) - 5),
        told([own("disk", "exit 1")], "disk failed wrong everywhere"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(COMMENTS, min_size=6, max_size=6), min_size=1, max_size=6),
    st.sampled_from([0, 1, 2, "50%"]),
    st.sets(st.integers(0, 5)),
    st.booleans(),
)
def test_whatever_nodes_report_in_any_order_the_budget_holds_and_drains_of_others_stay(
    rounds: list[list[str]], budget: int | str, foreign: set[int], is_tried: bool
) -> None:
    changed = [own("disk", "exit 1")]
    known = stored(DISK, changed, "a-0") if is_tried else stored(DISK)
    reasons = dict.fromkeys(foreign, "mine")
    most = {0: 0, 1: 1, 2: 2, "50%": 3}[budget]
    for comments in rounds:
        found = chosen(seen(DISK, comments, known=known, reasons=reasons, maxUnhealthy=budget))
        assert not {f"a-{number}" for number in foreign} & found.drained.keys()
        for number, comment in enumerate(comments):
            if number in foreign:
                continue
            is_held = number in reasons
            if f"a-{number}" not in found.drained:
                reasons.pop(number, None)
                assert not (is_held and comment != GOOD)
            elif not is_held:
                assert comment == BAD
                reasons[number] = drains.reason({Cause.HEALTH}, OWNER, found.drained[f"a-{number}"])
        assert len(reasons) - len(foreign) <= most
