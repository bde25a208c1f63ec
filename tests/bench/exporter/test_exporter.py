"""What the exporter costs: a page of 5,000 nodes and 20,000 jobs, and how often Slurm is asked for 1 and 10 scrapers.

Prints, asserts nothing about times. The page is counted and written from a snapshot in memory: what a list costs to
fetch and to read is in `tests/bench/slurm_client`. Calls are counted by a fake slurmrestd over HTTP, within seconds in
which the interval is a second; per minute they are scaled to the default of ten. Beside the way in which slurm-exporter
0.3 asks, both have a process of their own and the same fake (`served`, `asking`), one after the other.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from slurm_client import SlurmClient, StaticToken
from slurm_client.models import Job, JobState, Node, NodeState, Partition
from slurm_client.testing import FakeSlurmrestd
from slurm_exporter.counting import Budgets, Counted, Counting
from slurm_exporter.exporter import Exporter, pace
from slurm_exporter.page import server
from slurm_exporter.sources.collector import Cadence
from slurm_exporter.sources.snapshot import Snapshot
from tests.bench.exporter import asking
from tests.bench.figures import Figures

pytestmark = pytest.mark.timeout(600)

NOW = datetime(2026, 11, 23, tzinfo=UTC)
ROUNDS = 5
SECONDS = 20.0
BESIDE_SECONDS = float(os.environ.get("BENCH_SECONDS", "120"))
PROJECT = Path(__file__).parents[3]


def snapshot(nodes: int, jobs: int, users: int) -> Snapshot:
    """A cluster of 20 partitions, half of whose jobs wait."""
    partitions = [f"part-{number}" for number in range(20)]
    return Snapshot(
        NOW,
        nodes={
            f"n-{number}": Node(
                name=f"n-{number}",
                state=NodeState("ALLOCATED" if number % 3 else "IDLE"),
                cpus=128,
                effective_cpus=128,
                alloc_cpus=128 if number % 3 else 0,
                real_memory_mib=512_000,
                gres="gpu:h100:8",
                gres_used="gpu:h100:8" if number % 3 else "",
                partitions=(partitions[number % 20], "part-0"),
            )
            for number in range(nodes)
        },
        jobs={
            str(number): Job(
                id=number,
                user=f"user-{number % users}",
                account=f"account-{number % 50}",
                qos="normal",
                partition=partitions[number % 20],
                state=JobState("RUNNING" if number % 2 else "PENDING"),
                state_reason="None" if number % 2 else "Priority",
                cpus=64,
                node_count=1,
                tres_allocated="cpu=64,mem=256000M,node=1,gres/gpu=4" if number % 2 else "",
                submit_time=NOW - timedelta(seconds=number),
                eligible_time=NOW - timedelta(seconds=number),
            )
            for number in range(jobs)
        },
        partitions={name: Partition(name=name) for name in partitions},
    )


async def best(what: Callable[[], Awaitable[object]]) -> float:
    """The best time of some rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        gc.collect()
        began = time.perf_counter()
        await what()
        times.append(time.perf_counter() - began)
    return min(times)


async def test_page() -> None:
    print()
    for nodes, jobs, users, budgets, what in (
        (5_000, 20_000, 500, Budgets(), "as it is"),
        (5_000, 20_000, 500, Budgets(nodes=0), "sums only"),
        (5_000, 20_000, 500, Budgets(users=50, accounts=50), "50 users and accounts"),
        (
            5_000,
            20_000,
            500,
            Budgets(names=frozenset({"slurm-exporter", "slurmctld"})),
            "with both other sets of names",
        ),
        (100, 10_000, 500, Budgets(nodes=0, users=20, accounts=20), "10,000 jobs of 500 users, 20 users and accounts"),
    ):
        seen, counting = snapshot(nodes, jobs, users), Counting(budgets)
        counted: list[Counted] = []

        async def count(counting: Counting = counting, seen: Snapshot = seen, counted: list[Counted] = counted) -> None:
            counted[:] = [await counting.count(seen)]

        counting_takes = await best(count)
        began = time.perf_counter()
        page = b"".join(server.written(samples, {}) for samples in counted[0].samples)
        writing_takes = time.perf_counter() - began
        print(
            f"{nodes:6} nodes {jobs:6} jobs, {what:48} {server.series(counted[0].samples):7} series "
            f"{len(page) / 1e6:6.2f} MB, counted in {counting_takes:5.2f} s, written in {writing_takes:5.2f} s"
        )
    print(f"most memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


async def test_calls(figures: Figures) -> None:
    print()
    found = {}
    for scrapers in (1, 10):
        async with FakeSlurmrestd() as fake:
            fake.add_node("node-0")
            cadence = Cadence(interval=1.0, slow_interval=6.0)
            async with (
                SlurmClient(fake.url, StaticToken("token"), pace=pace(cadence)) as client,
                Exporter(client, cadence, Budgets(), host="127.0.0.1", port=0) as exporter,
                httpx.AsyncClient(trust_env=False) as http,
            ):
                url, scrapes = f"http://127.0.0.1:{exporter.port}/metrics", 0
                end = time.monotonic() + SECONDS
                while time.monotonic() < end:
                    pages = await asyncio.gather(*(http.get(url) for _ in range(scrapers)))
                    scrapes += sum(page.status_code == httpx.codes.OK for page in pages)
                    await asyncio.sleep(0.5)
                found[scrapers] = client.calls
                print(f"{scrapers:3} scrapers, {scrapes:4} scrapes: {client.calls / SECONDS * 6:5.1f} calls a minute")
    for scrapers, calls in found.items():
        each = calls / SECONDS * 60
        figures.note(
            "calls in a minute", "scrapers of the exporter", scrapers, each, "calls", found[1] / SECONDS * 60, "one"
        )
    print(f"ratio of 10 scrapers to 1: {found[10] / found[1]:.2f}")


@contextmanager
def served(nodes: int, jobs: int, changes: int) -> Iterator[str]:
    """A fake in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.exporter.served", *map(str, (nodes, jobs, changes))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def asked(way: str, url: str) -> dict[str, float]:
    """What one way has cost."""
    command = [sys.executable, "-m", "tests.bench.exporter.asking", way, url, str(BESIDE_SECONDS)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=PROJECT).stdout)
    return found


@pytest.mark.timeout(1800)
def test_beside_the_way_of_slurm_exporter(figures: Figures) -> None:
    print()
    for nodes, jobs, changes in ((500, 5_000, 0), (500, 5_000, 10)):
        with served(nodes, jobs, changes) as url:
            # The fake writes each object when it is first asked for.
            asyncio.run(asking.there(url, 1))
            found = {way: asked(way, url) for way in ("here", "there")}
        print(f"{nodes} nodes, {jobs} jobs, {changes} jobs end and begin each second, {BESIDE_SECONDS:.0f} s:")
        for what, value in found["here"].items():
            other = found["there"][what]
            of = f"changed jobs a second, {nodes} nodes, {jobs:,} jobs"
            figures.note(f"exporter: {what}", of, changes, value, "in all", other, "the way of slurm-exporter")
            print(f"  {what:12} here {value:8.1f}, there {other:8.1f}, there / here {other / value:6.1f}")
