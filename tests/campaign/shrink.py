"""Fewer steps that show the same: halves are left out first, then single ones. Pure but for the trial that is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.campaign.plan import Plan


def shrink(plan: Plan, still_fails: Callable[[Plan], bool], trials: int) -> Plan:
    """Return a plan with fewer steps for which `still_fails` holds.

    Parameters
    ----------
    plan
        One for which it holds.
    still_fails
        Tries a plan; each call may take minutes.
    trials
        How many calls are made at most.
    """
    size = max(len(plan.steps) // 2, 1)
    while trials > 0 and len(plan.steps) > 1:
        for smaller in _without_parts(plan, size):
            if trials <= 0:
                return plan
            trials -= 1
            if still_fails(smaller):
                plan = smaller
                break
        else:
            if size == 1:
                return plan
            size = max(size // 2, 1)
            continue
        size = max(min(size, len(plan.steps) // 2), 1)
    return plan


def _without_parts(plan: Plan, size: int) -> Iterator[Plan]:
    numbers = [one.number for one in plan.steps]
    for begin in range(0, len(numbers), size):
        kept = numbers[:begin] + numbers[begin + size :]
        if kept:
            yield plan.only(kept)
