"""What the operator asks for is counted over restarts, and a loop is known from a burst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.campaign.calls import CALLS, MOST, MOST_OF_ONE, READS, WRITES, Calls, Counters, SlurmCalls, counters_of

PAGE = """\
# HELP slurm_operator_slurm_requests_total Requests
slurm_operator_slurm_requests_total{code="200",operation="get_nodes",result="ok"} 7.0
slurm_operator_slurm_requests_total{code="",operation="get_nodes",result="timeout"} 2.0
slurm_operator_slurm_requests_total{code="200",operation="get_ping",result="ok"} 1e+03
process_start_time_seconds 1.5e+03
slurm_operator_slurm_requests_created{code="200",operation="get_nodes",result="ok"} 1.7e+09
"""


def test_calls_are_summed_over_their_outcomes() -> None:
    assert counters_of(PAGE) == (1500.0, {"get_nodes": 9.0, "get_ping": 1000.0})


def test_a_process_that_begins_counts_from_zero_and_one_that_was_there_from_what_it_had() -> None:
    begun = 100.0
    pages: list[Mapping[int, Counters]] = [
        {1: (90.0, {"a": 5})},
        {1: (90.0, {"a": 7, "b": 1})},
        # The first was killed; the third is older than the count, and did not answer before.
        {2: (110.0, {"a": 3}), 3: (95.0, {"a": 900})},
        {2: (110.0, {"a": 3}), 3: (95.0, {"a": 901})},
    ]
    looked = SlurmCalls(lambda: pages.pop(0), begun)
    assert [looked.since()[0] for _ in range(3)] == [{"a": 2, "b": 1}, {"a": 3}, {"a": 1}]


def test_reads_and_writes_are_distinguished() -> None:
    found = Calls()
    asked = Counter({"GET /api/v1/pods": 3, "WATCH /api/v1/pods": 1, "PATCH /api/v1/pods/a-0": 2})
    found.add_requests([asked, Counter({"GET /api/v1/pods": 1})])
    assert found.totals == {READS: 5, WRITES: 2}
    assert found.peaks[f"{READS}: GET /api/v1/pods"] == 3
    assert found.peaks[READS] == 4
    assert str(found).startswith(
        "5 reads of the API server, 2 writes to the API server, 0 calls to Slurm; most in 10 s:"
    )


@pytest.mark.parametrize(
    ("count", "seconds", "expected"),
    [
        (MOST_OF_ONE + 1, 10.0, [f"operator: {MOST_OF_ONE + 1:.0f} times in 10 s {CALLS}: get_ping"]),
        (MOST_OF_ONE, 10.0, []),
        # A burst.
        (MOST_OF_ONE, 1.0, []),
        # A process was frozen, and has not been looked at.
        (3 * MOST_OF_ONE, 30.0, []),
    ],
)
def test_more_than_so_many_of_one_kind_are_a_loop(count: float, seconds: float, expected: list[str]) -> None:
    found = Calls()
    found.add(CALLS, {"get_ping": count}, seconds)
    assert [*found.complaints()] == expected


def test_many_different_ones_are_a_loop_too() -> None:
    found = Calls()
    found.add(WRITES, {f"POST /api/v1/pods/{number}": 1.0 for number in range(int(MOST) + 1)})
    assert [*found.complaints()] == [f"operator: {MOST + 1:.0f} times in 10 s {WRITES}"]
