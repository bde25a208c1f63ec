"""What one count of 20,000 pending jobs costs, as a multiple of the count of 20,000 equal ones. Asserts nothing.

500 nodes, half of them full, in two NodeSets of two partitions that may have 300 nodes more each. CPU time of the
thread. Run it alone: ``pytest tests/bench/autoscaling --capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from slinky_operator.autoscaling.rules import demand
from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.rooms import Shape
from slinky_operator.autoscaling.rules.view import ScaledSet, Standing, View
from tests.bench.figures import Figures
from tests.unit.autoscaling.test_hostile_jobs import KINDS
from tests.unit.autoscaling.worlds import START, node, pending

JOBS, NODES, MORE = 20_000, 500, 300
SHAPES = {
    "cpu": Shape(64, 256_000, frozenset({"cpu", "big"})),
    "gpu": Shape(32, 128_000, frozenset({"gpu"}), (("gpu", 4), ("gpu:a100", 4))),
}
Asked = Callable[[int, random.Random], dict[str, Any]]

HONEST: Mapping[str, Asked] = {
    "equal": lambda _number, _luck: {"cpus": 4, "memory_per_cpu_mib": 2000},
    "each another --mem": lambda _number, luck: {
        "memory_per_node_mib": luck.randint(1000, 250_000),
        "cpus": luck.choice((1, 2, 4, 8)),
    },
    "each another --constraint": lambda number, luck: {
        "features": "|".join([luck.choice(("cpu", "gpu", "none")), *(f"f{number}-{one}" for one in range(4))]),
        "cpus": 4,
    },
    "GPUs and each another --mem": lambda _number, luck: {
        "memory_per_node_mib": luck.randint(1000, 100_000),
        "cpus": luck.randint(1, 16),
        "tres_per_node": f"gres/gpu:{luck.randint(1, 4)}",
    },
}


def view(asked: Asked) -> View:
    luck = random.Random(1)  # noqa: S311 - a simulation
    standing = []
    for place in range(NODES):
        owner = ("cpu", "gpu")[place % 2]
        shape = SHAPES[owner]
        free = (luck.randint(0, shape.cpus), luck.randint(0, shape.memory), shape.gres)
        busy = luck.random() < 1 / 2
        one = node(f"{owner}-{place}", partitions=("cpu", "gpu"))
        standing.append(Standing(node=one, owner=owner, shape=shape, free=(0, 0, ()) if busy else free, busy=busy))
    sets = [
        ScaledSet(name=name, replicas=NODES // 2, most=NODES // 2 + MORE, shape=shape, partitions=frozenset(SHAPES))
        for name, shape in SHAPES.items()
    ]
    jobs = [
        pending(number, ("cpu,gpu", "cpu")[number % 2], user=f"user{number % 3}", **asked(number, luck))
        for number in range(1, JOBS + 1)
    ]
    return View(jobs=jobs, nodes=standing, sets=sets, most_nodes={"cpu": None, "gpu": None}, now=START)


def test_counts(figures: Figures) -> None:
    kinds = {**HONEST, **{f"hostile: {one.__name__}": _without_luck(one) for one in KINDS}}
    print("\n| 20,000 jobs | CPU, s | of equal jobs | steps | not counted |")
    print("|---|---:|---:|---:|---:|")
    reference = 0.0
    for name, asked in kinds.items():
        seen, effort = view(asked), Effort(time.monotonic)
        began = time.thread_time()
        found = demand.count(seen, effort)
        took = time.thread_time() - began
        reference = reference or took
        left = max(one.unseen.count for one in found.values())
        figures.note(f"a count of autoscaling: {name}", "pending jobs", JOBS, took, "s of CPU", reference, "equal jobs")
        print(f"| {name} | {took:.2f} | {took / reference:.1f} | {effort.spent} | {left} |")


def _without_luck(kind: Callable[[int], dict[str, Any]]) -> Asked:
    return lambda number, _luck: kind(number)
