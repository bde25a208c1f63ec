"""A day of a site in accelerated time, and what is used up first beyond it. Prints, asserts nothing of it.

Each state is a process of its own (`day`): some minutes of the model, at rest and with the flow of jobs of a day, of
which the day is a multiple. What the model has and has not: `model`. ``BENCH_ALL=1`` for 5,000 nodes and 100,000 jobs a
day, and for what is beyond; else a fifth of that. Alone: ``pytest tests/bench/site --capture=no
--override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.bench.figures import Figures

pytestmark = pytest.mark.timeout(7200)

ALL = bool(os.environ.get("BENCH_ALL"))
NODES, JOBS = (5_000, 100_000) if ALL else (1_000, 20_000)
SECONDS = int(os.environ.get("BENCH_SECONDS", "60" if ALL else "30"))
DAY = 86_400
FACTORS = [int(one) for one in os.environ.get("BENCH_FACTORS", "2,4,8" if ALL else "4").split(",")]
SETS = [int(one) for one in os.environ.get("BENCH_SETS", "10,50" if ALL else "10").split(",")]
BEGIN = (
    "from tests.bench.site import virtual_time; virtual_time.install(); from tests.bench.site import day; day.main()"
)
OF = "a day of a site, by its nodes"


@dataclass(frozen=True, slots=True)
class Budget:
    """What there is of something, in a second."""

    what: str
    key: str
    most: float


BUDGETS = (
    Budget("one core", "cpu", 1.0),
    Budget("one thread of slurmrestd", "slurm", 1.0),
    Budget("5 s from one list of nodes to the next", "nodes_every", 5.0),
    Budget("15 s from one list of jobs to the next", "jobs_every", 15.0),
    Budget("50 requests a second of the API server", "api", 50.0),
)


def state(nodes: int, nodesets: int, jobs: int) -> dict[str, Any]:
    """What a second costs."""
    arguments = map(str, (nodes, nodesets, jobs, SECONDS))
    done = subprocess.run([sys.executable, "-c", BEGIN, *arguments], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    flow = found["flow"]
    for what in ("nodes", "jobs"):
        lists = flow["calls_by_kind"].get(f"get_{what}", 0.0)
        flow[f"{what}_every"] = 1 / lists if lists else 0.0
    return found


def test_day(figures: Figures) -> None:
    found = state(NODES, 1, JOBS)
    flow, rest = found["flow"], found["rest"]
    print(json.dumps(found, indent=1))
    for what, key, unit, factor in (
        ("Slurm calls", "calls", "thousand a day", DAY / 1e3),
        ("bytes of Slurm's answers", "bytes", "GB a day", DAY / 1e9),
        ("slurmrestd answers", "slurm", "% of the time", 100),
        ("API requests", "api", "thousand a day", DAY / 1e3),
        ("bytes of the API server", "api_bytes", "MB a day", DAY / 1e6),
        ("decisions (passes)", "passes", "thousand a day", DAY / 1e3),
        ("CPU of the operator, without HTTP and TLS", "cpu", "% of a core", 100),
    ):
        figures.note(what, OF, NODES, flow[key] * factor, unit, rest[key] * factor, "the same site without jobs")
    for what in ("nodes", "jobs"):
        share = flow["bytes_by_kind"].get(f"get_{what}", 0.0)
        figures.note(f"bytes of lists of {what}", OF, NODES, share * DAY / 1e9, "GB a day")
        figures.note(f"from one list of {what} to the next", OF, NODES, flow[f"{what}_every"], "s")
    out = found["out"]
    figures.note("all nodes are made: API requests each", OF, NODES, out["api"] * out["seconds"] / NODES, "requests")
    figures.note("all nodes are made: CPU each", OF, NODES, out["cpu"] * out["seconds"] / NODES * 1e3, "ms")


@pytest.mark.parametrize("factor", FACTORS)
def test_more_jobs(figures: Figures, factor: int) -> None:
    _beyond(figures, f"jobs a day, {NODES:,} nodes", JOBS * factor, state(NODES, 1, JOBS * factor))


@pytest.mark.parametrize("factor", FACTORS)
def test_more_nodes(figures: Figures, factor: int) -> None:
    _beyond(figures, f"nodes, {JOBS:,} jobs a day", NODES * factor, state(NODES * factor, 1, JOBS))


@pytest.mark.parametrize("many", SETS)
def test_more_nodesets(figures: Figures, many: int) -> None:
    _beyond(figures, f"NodeSets, {NODES:,} nodes, {JOBS:,} jobs a day", many, state(NODES, many, JOBS))


def _beyond(figures: Figures, of: str, size: int, found: dict[str, Any]) -> None:
    for budget in BUDGETS:
        figures.note(f"used of {budget.what}", of, size, found["flow"][budget.key] / budget.most * 100, "%")
