"""20,000 pending jobs that somebody wrote to make a count long: it ends, says so, and never lowers replicas.

What a count does is measured by the calls of functions in it, not by time, nor by what it says itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest

from slinky_operator.autoscaling.rules import demand
from slinky_operator.autoscaling.rules.effort import SHARES, Effort
from slinky_operator.autoscaling.rules.rooms import Shape
from slinky_operator.autoscaling.rules.view import MOST_REASONS, NodeDemand, ScaledSet, Standing, View
from slurm_client.models import Job
from tests.unit.autoscaling.worlds import START, node, pending

pytestmark = pytest.mark.thorough

JOBS = 20_000
NODES = 100
STEPS = 20_000
SHAPE = Shape(64, 256_000, frozenset({"cpu", "big"}), (("gpu", 4), ("gpu:a100", 4)))


def mems(number: int) -> dict[str, Any]:
    return {"memory_per_node_mib": 250_000 - number, "node_count": 90, "max_nodes": 95, "cpus": 2000}


def constraints(number: int) -> dict[str, Any]:
    """Each would have 512 alternatives of 200 words, written out."""
    choices = "&".join(f"(a{number}|b{one})" for one in range(9))
    return {"features": f"{choices}&{'&'.join(f'c{one}' for one in range(180))}"}


def excluded(number: int) -> dict[str, Any]:
    return {"excluded_nodes": f"cpu-[0-{number % 50},{number}0-{number}9]", "cpus": 64 * NODES}


def long_excluded(number: int) -> dict[str, Any]:
    return {"excluded_nodes": f"cpu-[{number}-{number + 990}]", "cpus": 60}


def arrays(number: int) -> dict[str, Any]:
    return {"array_job_id": number, "array_tasks": "0-4000000", "memory_per_node_mib": number}


def components(number: int) -> dict[str, Any]:
    return {"het_job_id": 1 + number // 2, "node_count": 60, "cpus": 60, "memory_per_node_mib": number}


def resources(number: int) -> dict[str, Any]:
    return {"tres_per_node": f"gres/gpu:{number % 5}", "tres_per_job": f"gres/g{number}:{number}", "cpus": 65}


def impossible(number: int) -> dict[str, Any]:
    return {"cpus": 64 * 10_000 + number, "memory_per_cpu_mib": number % 4000}


KINDS: Sequence[Callable[[int], dict[str, Any]]] = (
    mems,
    constraints,
    excluded,
    long_excluded,
    arrays,
    components,
    resources,
    impossible,
)


def view(jobs: Sequence[Job]) -> View:
    """100 nodes with room, and 100 more that may come."""
    standing = [
        Standing(node=node(f"cpu-{place}"), owner="cpu", shape=SHAPE, free=(64, 256_000 - place, SHAPE.gres))
        for place in range(NODES)
    ]
    scaled = ScaledSet(name="cpu", replicas=NODES, most=2 * NODES, shape=SHAPE, partitions=frozenset({"cpu"}))
    return View(jobs=jobs, nodes=standing, sets=[scaled], most_nodes={"cpu": None}, now=START)


def jobs_of(kind: Callable[[int], dict[str, Any]], user: str = "eve", priority: int = 2) -> list[Job]:
    return [pending(number, user=user, priority=priority, **kind(number)) for number in range(1, JOBS + 1)]


def calls_in(function: Callable[[], Any]) -> int:
    """How many functions were called, those written in C too."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_count_does_is_bounded_by_its_steps(kind: Callable[[int], dict[str, Any]]) -> None:
    seen, effort = view(jobs_of(kind)), Effort(lambda: 0.0, steps=STEPS)
    found: dict[str, NodeDemand] = {}
    done = calls_in(lambda: found.update(demand.count(seen, effort)))
    # Each job is looked at, sorted, and noted as one that was not counted; each node is looked at.
    assert done <= 60 * STEPS + 60 * (JOBS + NODES)
    assert effort.spent <= STEPS + 10_000
    wanted = found["cpu"]
    assert not wanted.complete
    assert wanted.limits == [f"the count was ended after {STEPS} steps"]
    assert len(wanted.unseen.shown) <= 10
    # Reading does not use up what placing needs.
    assert wanted.counted.count + wanted.waiting.count + wanted.impossible.count


@pytest.mark.parametrize("kind", [mems, constraints, components])
def test_one_user_does_not_keep_the_jobs_of_others_from_being_counted(kind: Callable[[int], dict[str, Any]]) -> None:
    others = [pending(JOBS + number, user=f"user{number % 5}", cpus=64) for number in range(1, 21)]
    effort = Effort(lambda: 0.0, steps=STEPS)
    wanted = demand.count(view([*jobs_of(kind), *others]), effort)["cpu"]
    assert wanted.counted.count + wanted.waiting.count >= len(others)
    assert wanted.limits == [f"jobs of user eve take more than {STEPS // SHARES} steps to count"]


def test_a_count_ends_at_its_deadline_whatever_a_step_takes() -> None:
    seconds = [0.0]

    def clock() -> float:
        seconds[0] += 1.0
        return seconds[0]

    effort = Effort(clock, seconds=5.0)
    wanted = demand.count(view(jobs_of(mems)), effort)["cpu"]
    assert wanted.limits == ["the count was ended after 5 s"]
    assert effort.spent < STEPS


def test_reasons_that_users_write_are_not_kept_without_a_limit() -> None:
    jobs = [pending(number, features=f"[a{number}|b]") for number in range(1, 1000)]
    wanted = demand.count(view(jobs), Effort(lambda: 0.0))["cpu"]
    assert len(wanted.left_out) == MOST_REASONS + 1
    assert wanted.left_out.total() == 999


def test_jobs_that_nodes_do_not_help_take_nobodys_place() -> None:
    held = [pending(number, hold=True, priority=9) for number in range(1, JOBS + 2)]
    wanted = demand.count(view([*held, pending(JOBS + 5, cpus=64)]), Effort(lambda: 0.0))["cpu"]
    assert (wanted.complete, wanted.counted.count, wanted.nodes) == (True, 1, 1)


@pytest.mark.parametrize(
    "values",
    [
        lambda number: {"memory_per_node_mib": 1000 + number * 11, "cpus": 1 + number % 8},
        lambda number: {"features": f"cpu&(big|f{number})", "memory_per_cpu_mib": 2000 + number % 50},
        lambda number: {"tres_per_node": f"gres/gpu:{1 + number % 4}", "memory_per_node_mib": number},
    ],
)
def test_honest_jobs_that_all_differ_are_counted_whole(values: Callable[[int], dict[str, Any]]) -> None:
    jobs = [pending(number, **values(number)) for number in range(1, JOBS + 1)]
    effort = Effort(lambda: 0.0)
    wanted = demand.count(view(jobs), effort)["cpu"]
    assert wanted.complete
    assert wanted.counted.count + wanted.waiting.count + wanted.impossible.count == JOBS
    # Some ten steps a job, not one for each job and node.
    assert effort.spent <= 40 * JOBS
