"""Decisions over time: no flapping under a stream of jobs, and nothing lower too early."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.autoscaling.rules.decision import History, Limits, Move, decide

LIMITS = Limits(least=0, most=8, idle_time=60.0, scale_down_delay=120.0)


def test_a_stream_of_short_jobs_keeps_its_nodes() -> None:
    needs = random.Random(7)  # noqa: S311 - a simulation
    replicas, history, changes = 0, History(), []
    for second in range(0, 7200, 3):
        # Four nodes are needed for a moment, more often than the idle time is long.
        needed = 4 if second % 45 == 0 else needs.randint(0, 3)
        decision = decide(LIMITS, replicas, replicas, needed, history, float(second))
        history = decision.history
        if decision.move is Move.SET:
            changes.append(decision.replicas)
            replicas = decision.replicas
        assert replicas >= needed
    assert changes == [4]


def test_nodes_beyond_the_stream_go() -> None:
    replicas, history = 8, History()
    for second in range(0, 600, 3):
        decision = decide(LIMITS, replicas, replicas, 1 + second % 2, history, float(second))
        history, replicas = decision.history, decision.replicas
    assert replicas == 2


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 40)), max_size=60))
def test_replicas_stay_within_limits_and_never_below_what_is_needed(looks: list[tuple[int, int]]) -> None:
    limits = Limits(least=1, most=8, headroom=1, idle_time=30.0, scale_down_delay=45.0)
    replicas: int | None = None
    history, now, last = History(), 0.0, 0.0
    for needed, seconds in looks:
        now += seconds
        decision = decide(limits, replicas, replicas, needed, history, now)
        history = decision.history
        if decision.move is Move.SET:
            if replicas is not None and decision.replicas < replicas:
                assert now - last >= limits.scale_down_delay
            if replicas is None or decision.replicas > replicas:
                last = now
            replicas = decision.replicas
        assert replicas is not None
        assert 1 <= replicas <= 8
        assert replicas >= min(8, needed + 1)


def test_a_lower_maximum_holds_at_once() -> None:
    decision = decide(LIMITS, 12, 12, 12, History(seen=12), 0.0)
    assert (decision.move, decision.replicas) == (Move.SET, 8)


def test_after_a_restart_what_others_have_set_still_stays() -> None:
    decision = decide(LIMITS, 5, 2, 0, History(), 0.0)
    assert (decision.move, decision.again_in) == (Move.HOLD, 120.0)
    later = decide(LIMITS, 5, 2, 0, decision.history, 121.0)
    assert (later.move, later.replicas) == (Move.ADOPT, 5)


def test_what_others_set_before_autoscaling_ever_did_stays_too() -> None:
    first = decide(LIMITS, 2, None, 2, History(), 0.0)
    assert first.move is Move.STAY
    second = decide(LIMITS, 0, None, 2, first.history, 3.0)
    third = decide(LIMITS, 0, None, 2, second.history, 6.0)
    assert (second.move, third.move) == (Move.HOLD, Move.HOLD)
    assert decide(LIMITS, 0, None, 2, third.history, 124.0).move is Move.ADOPT


@given(st.integers(0, 12), st.integers(0, 20), st.integers(0, 2000))
def test_an_incomplete_count_raises_and_never_lowers(replicas: int, needed: int, second: int) -> None:
    long_idle = History(surplus_since=(-10_000.0,) * 12, raised_at=-10_000.0, seen=replicas)
    decision = decide(LIMITS, replicas, replicas, needed, long_idle, float(second), complete=False)
    assert decision.replicas >= min(replicas, LIMITS.most)
    assert (decision.move is Move.SET) == (decision.wanted > replicas or replicas > LIMITS.most)
    # Nodes that may have been needed meanwhile have not been too many all the time.
    assert decision.history.surplus_since == ()
