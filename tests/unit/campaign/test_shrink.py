"""Shrinking leaves out what is not needed, and never asks more often than it may."""

from __future__ import annotations

import pytest

from tests.campaign.plan import Plan, make
from tests.campaign.shrink import shrink


@pytest.mark.parametrize("needed", [{4}, {2, 17}, {1, 2, 3}, {3, 11, 19}])
def test_what_is_needed_is_left(needed: set[int]) -> None:
    plan = make(4, 60)
    assert max(needed) <= len(plan.steps)
    less = shrink(plan, lambda one: needed <= {step.number for step in one.steps}, trials=1000)
    assert {step.number for step in less.steps} == needed


def test_it_tries_no_more_often_than_it_may_and_returns_what_failed_last() -> None:
    tried: list[Plan] = []

    def fails(plan: Plan) -> bool:
        tried.append(plan)
        return len(tried) % 2 == 0

    less = shrink(make(4, 60), fails, trials=7)
    assert len(tried) == 7
    assert less in tried[1::2]


def test_a_plan_that_needs_all_its_steps_stays() -> None:
    plan = make(4, 30)
    assert shrink(plan, lambda one: one == plan, trials=1000) == plan
