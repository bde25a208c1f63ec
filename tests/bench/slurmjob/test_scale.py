"""The cost of many SlurmJobs. Prints, asserts nothing but that all of them came and went.

Run it alone: ``pytest tests/bench/slurmjob --capture=no --override-ini=testpaths=tests/bench``. The operator's own loop
and triggers work here, with an API server in memory; Slurm is a fake on loopback in another thread. CPU and turns are
those of the event loop's thread, the API server in memory included.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from typing_extensions import override

from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from slurm_client import MintedToken, SlurmClient
from slurm_client.models import JobSpec
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.threaded import running
from tests.bench.figures import Figures
from tests.support.slurm_jobs import JobWorld, until
from tests.support.turns import Turns

ALL: Final = "100,1000,10000" if os.environ.get("BENCH_ALL") else "100,1000"
SIZES: Final = [int(size) for size in os.environ.get("BENCH_JOBS", ALL).split(",")]
WORKERS: Final = 8
AT_REST_S: Final = float(os.environ.get("BENCH_AT_REST", "20"))
KEY: Final = b"k" * 32
USER: Final = "alice"
CPUS: Final = 64
OF: Final = "SlurmJobs"
CLIENT: Final = "as many submissions by a client in a loop"


@pytest.fixture
def slurm(jobs: int) -> Iterator[FakeSlurmrestd]:
    with running(key=KEY) as fake:
        for number in range(-(-jobs // CPUS)):
            _ = fake.add_node(f"w-{number}", cpus=CPUS)
        yield fake


class Measured:
    """Clock, CPU, calls and writes since it was made."""

    def __init__(self, slurm: FakeSlurmrestd, turns: Turns, world: JobWorld | None = None) -> None:
        self._slurm, self._turns, self._world = slurm, turns, world
        self._asked = len(slurm.requests)
        self._written = len(world.kube.statuses) if world is not None else 0
        turns.begin()
        self._clock, self._cpu = time.monotonic(), time.thread_time()

    def seconds(self) -> float:
        """By the clock."""
        return time.monotonic() - self._clock

    def cpu(self) -> float:
        """Seconds of CPU of this thread."""
        return time.thread_time() - self._cpu

    def calls(self) -> int:
        """Calls to Slurm."""
        return len(self._slurm.requests) - self._asked

    def turns(self, figures: Figures, what: str, jobs: int) -> None:
        """Note the turns of the event loop."""
        figures.note(f"{what}: turn of the loop, p99", OF, jobs, self._turns.most_of(99) * 1e3, "ms of CPU")
        figures.note(f"{what}: longest turn of the loop", OF, jobs, self._turns.longest() * 1e3, "ms of CPU")

    @override
    def __str__(self) -> str:
        clock, cpu = self.seconds(), self.cpu()
        calls = Counter(one.operation for one in self._slurm.requests[self._asked :])
        counted = ", ".join(f"{number} {name}" for name, number in calls.most_common())
        written = len(self._world.kube.statuses) - self._written if self._world is not None else 0
        return (
            f"{clock:.1f} s, CPU {cpu:.2f} s, turn {self._turns.longest() * 1e3:.0f} ms, {written} statuses; {counted}"
        )


async def reference(slurm: FakeSlurmrestd, jobs: int) -> None:
    """The same submissions by one client in a loop."""
    async with SlurmClient(slurm.url, MintedToken(KEY, "slurm")) as client:
        _ = await client.connect()
        user = client.as_user(USER, MintedToken(KEY, USER))
        for _ in range(jobs):
            _ = await user.submit_job(JobSpec(script="#!/bin/sh\nsleep 1\n", hold=True))


@pytest.mark.parametrize("jobs", SIZES)
@pytest.mark.timeout(1800)
async def test_many_jobs(slurm: FakeSlurmrestd, figures: Figures, jobs: int) -> None:
    turns = Turns()
    relax_collector()
    names = [f"job-{number}" for number in range(jobs)]
    print()
    measured = Measured(slurm, turns)
    await reference(slurm, jobs)
    print(f"{jobs} submissions by a client: {measured}")
    alone, alone_cpu = measured.seconds(), measured.cpu()
    world = JobWorld(slurm.url, KEY, USER, poll_interval=1.0)
    await world.start()

    def all_are(holds: Callable[[dict[str, Any]], Any]) -> Callable[[], bool]:
        left = list(names)

        def check() -> bool:
            # Only until the first that is not there yet: looking is not to cost what is measured.
            while left and holds(world.status(left[-1])):
                _ = left.pop()
            return not left

        return check

    try:
        async with world.working(WORKERS):
            freeze_caches()
            measured = Measured(slurm, turns, world)
            for name in names:
                world.job(name)
                # Objects come one by one, in events of their own.
                await asyncio.sleep(0)
            await until(all_are(lambda status: status.get("jobId")))
            print(f"{jobs} SlurmJobs submitted:      {measured}")
            figures.note("all submitted", OF, jobs, measured.seconds(), "s", alone, CLIENT)
            figures.note(
                "submitted: CPU each", OF, jobs, measured.cpu() / jobs * 1e3, "ms", alone_cpu / jobs * 1e3, CLIENT
            )
            await until(all_are(lambda status: status.get("state") == "Running"))
            print(f"{jobs} SlurmJobs running:        {measured}")
            figures.note("all running", OF, jobs, measured.seconds(), "s", alone, CLIENT)
            figures.note("running: Slurm calls each", OF, jobs, measured.calls() / jobs, "calls")
            measured.turns(figures, "running", jobs)
            measured = Measured(slurm, turns, world)
            await asyncio.sleep(AT_REST_S)
            print(f"at rest:                  {measured}")
            share = measured.cpu() / measured.seconds() * 100
            figures.note("at rest, all running: CPU", OF, jobs, share, "% of a core")
            measured = Measured(slurm, turns, world)
            for name in names:
                world.delete(name)
                await asyncio.sleep(0)
            await until(lambda: not len(world.jobs))
            print(f"{jobs} SlurmJobs deleted:        {measured}")
            figures.note("all deleted, their jobs cancelled", OF, jobs, measured.seconds(), "s", alone, CLIENT)
            measured.turns(figures, "deleted", jobs)
    finally:
        await world.clients.close_all()
    assert {job.state.base for job in slurm.world.jobs.values() if job.extra} == {"CANCELLED"}
