"""The pace of evictions, and what one namespace leaves to others."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.bridge.pods import evictions
from slinky_operator.bridge.pods.controller import GroupReconciler
from slinky_operator.bridge.pods.evictions import A_SECOND, ALL_A_SECOND, ALL_AT_ONCE, AT_ONCE, Evictions
from slinky_operator.bridge.pods.model.snapshot import Member
from slinky_operator.bridge.pods.model.steps import Evict

MANY = 100_000


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_first_go_at_once_and_the_others_at_a_pace(clock: Clock) -> None:
    budget = Evictions(clock)
    assert budget.take("a", 200) == 200
    assert budget.take("a", MANY) == AT_ONCE - 200
    assert budget.take("a", MANY) == 0
    taken = 0
    for _ in range(60):
        clock.at += 1.0
        taken += budget.take("a", MANY)
    assert taken == 60 * A_SECOND


def test_a_namespace_that_comes_later_has_what_it_wants(clock: Clock) -> None:
    """One namespace alone never takes all that there is."""
    budget = Evictions(clock)
    for _ in range(100):
        _ = budget.take("a", MANY)
        clock.at += 0.1
    assert budget.take("b", 100) == 100


def test_those_that_wait_have_the_same_share(clock: Clock) -> None:
    budget, taken = Evictions(clock), dict.fromkeys("abcdefghij", 0)
    for second in range(120):
        for name in taken:
            got = budget.take(name, MANY)
            if second >= 60:
                taken[name] += got
        clock.at += 1.0
    shares = taken.values()
    assert sum(shares) <= 60 * ALL_A_SECOND + ALL_AT_ONCE
    assert sum(shares) > 0.7 * 60 * ALL_A_SECOND
    assert min(shares) > 0.5 * max(shares)
    # A small one is not behind them for long.
    assert budget.take("small", 15) == 15


def test_what_is_remembered_goes(clock: Clock) -> None:
    budget = Evictions(clock)
    for number in range(1000):
        _ = budget.take(f"n-{number}", 1)
        clock.at += 1.0
    assert budget.kept <= AT_ONCE / A_SECOND


async def test_a_pass_evicts_as_many_as_there_are_and_comes_again(clock: Clock) -> None:
    evicted: list[str] = []

    class Kube:
        async def evict(self, _: Any, name: str, *rest: Any, **options: Any) -> None:
            evicted.append(name)

    class Recorder:
        def warning(self, *words: Any) -> None:
            pass

    def step(number: int) -> Evict:
        about = {"name": f"p-{number}", "namespace": "a", "uid": str(number)}
        return Evict(Member({"metadata": about, "spec": {}, "status": {}}, None), "it is over")

    reconciler = GroupReconciler(
        Kube(),  # type: ignore[arg-type]
        Recorder(),  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
        clock=clock,
    )
    steps = [step(number) for number in range(AT_ONCE + 44)]
    assert await reconciler._evict(steps) == evictions.AGAIN_S
    assert len(evicted) == AT_ONCE
    clock.at += 60
    assert await reconciler._evict(steps[AT_ONCE:]) is None
    assert len(evicted) == AT_ONCE + 44
