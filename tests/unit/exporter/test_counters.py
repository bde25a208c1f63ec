"""Counters never go back, whatever slurmctld's do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from slurm_client.models.service import Diag, PendingRpcs, RpcStats
from slurm_exporter.families import calls, scheduler
from slurm_exporter.samples.budget import OTHERS
from slurm_exporter.samples.monotone import Monotone
from tests.unit.exporter.builders import NOW, by_family


def test_increases_are_added_up_over_midnight() -> None:
    counter = Monotone()
    counter.update({(): 100}, NOW)
    counter.update({(): 130}, NOW)
    counter.update({(): 5}, NOW + timedelta(hours=12))
    counter.update({(): 7}, NOW + timedelta(hours=12))
    assert counter.totals == {(): 37}


def test_a_reset_that_counted_beyond_the_old_value_is_noticed() -> None:
    counter = Monotone()
    counter.update({(): 10}, NOW)
    counter.update({(): 50}, NOW + timedelta(seconds=1))
    assert counter.totals == {(): 50}


def test_what_is_new_since_the_last_look_began_at_zero() -> None:
    counter = Monotone()
    counter.update({("a",): 10}, NOW)
    counter.update({("a",): 10, ("b",): 3}, NOW)
    assert counter.totals == {("a",): 0, ("b",): 3}


def test_labels_beyond_the_limit_are_not_remembered() -> None:
    counter = Monotone(limit=1)
    counter.update({("a",): 0, ("b",): 0}, NOW)
    assert list(counter.totals) == [("a",)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100)), max_size=30))
def test_a_counter_never_goes_back(steps: list[tuple[int, int]]) -> None:
    counter, last = Monotone(), 0.0
    for since, value in steps:
        counter.update({(): value}, NOW + timedelta(hours=since))
        assert counter.totals[()] >= last
        last = counter.totals[()]


def test_times_of_the_scheduler_are_in_seconds() -> None:
    counters = scheduler.Counters()
    diag = Diag(since=NOW, schedule_cycles=10, schedule_cycle_sum_us=1_000_000, schedule_exit=(("end_job_queue", 4),))
    counters.update(diag)
    counters.update(
        replace(diag, schedule_cycles=12, schedule_cycle_sum_us=3_500_000, schedule_exit=(("end_job_queue", 6),))
    )
    samples = by_family(counters.samples())
    assert samples[scheduler.CYCLES] == {(): 2}
    assert samples[scheduler.CYCLE_SECONDS] == {(): 2.5}
    assert samples[scheduler.EXITS] == {("end_job_queue",): 2}
    assert by_family(scheduler.gauges(replace(diag, backfill_cycle_last_us=250_000)))[scheduler.BACKFILL_LAST] == {
        (): 0.25
    }


def stats(name: str, count: int) -> RpcStats:
    return RpcStats(name, 1, count, count * 1_000_000, dropped=count)


def test_users_of_calls_are_chosen_once_so_that_no_counter_goes_back() -> None:
    found = calls.Calls(users=1)
    found.update(Diag(since=NOW, rpcs_by_user=(stats("alice", 0), stats("bob", 0))))
    found.update(Diag(since=NOW, rpcs_by_user=(stats("alice", 5), stats("bob", 1))))
    assert by_family(found.samples())[calls.USER_CALLS] == {("alice",): 5, (OTHERS,): 1}
    found.update(Diag(since=NOW, rpcs_by_user=(stats("alice", 5), stats("bob", 9))))
    assert by_family(found.samples())[calls.USER_CALLS] == {("alice",): 5, (OTHERS,): 9}


def test_calls_by_type_with_those_that_wait() -> None:
    found = calls.Calls(users=0)
    found.update(Diag(since=NOW, rpcs_by_message=(stats("REQUEST_PING", 0),), rpcs_by_user=(stats("root", 1),)))
    found.update(
        Diag(since=NOW, rpcs_by_message=(stats("REQUEST_PING", 2),), pending_rpcs=(PendingRpcs("REQUEST_PING", 1, 7),))
    )
    samples = by_family(found.samples())
    assert samples[calls.CALLS] == samples[calls.CALL_SECONDS] == samples[calls.DROPPED] == {("REQUEST_PING",): 2}
    assert samples[calls.PENDING] == {("REQUEST_PING",): 7}
    assert not samples[calls.USER_CALLS]
