"""What partitions in the status of a Cluster and settled virtual Nodes cost. Prints, asserts nothing.

5,000 Slurm nodes, 20 partitions, 100,000 pending jobs. The longest turn is CPU time of the event loop's thread; the
reference of the same run is a walk over the same list that does nothing. Run it alone: ``pytest
tests/bench/virtual_nodes/test_partitions.py --capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from slinky_operator.slurm.jobs.job_facts import JobCounter
from slurm_client.models import Job, JobState
from slurm_client.slices import sliced
from tests.bench.figures import Figures
from tests.support.turns import Turns
from tests.unit.virtual_nodes.nodes.worlds import World, cluster, partition, slurm_node

NODES, PARTITIONS, PENDING, RUNNING = 5_000, 20, 100_000, 5_000
OF = "nodes, 100,000 pending jobs in 20 partitions"
ROUNDS = 10
REASONS = ("Priority", "Resources", "QOSMaxJobsPerUserLimit", "Dependency")


def jobs() -> list[Job]:
    """Each tenth waits for one of two partitions, each twentieth for a reason of its own."""
    found = []
    for number in range(PENDING + RUNNING):
        name = f"p{number % PARTITIONS}"
        found.append(
            Job(
                id=number,
                partition=name if number % 10 else f"{name},p{(number + 1) % PARTITIONS}",
                state=JobState("PENDING" if number < PENDING else "RUNNING"),
                state_reason=REASONS[number % 4] if number % 20 else f"uid {number} not in group permitted",
            )
        )
    return found


async def measured(work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """CPU of the process, and of the longest turn, in milliseconds."""
    turns = Turns()
    await asyncio.sleep(0)
    turns.begin()
    began = time.process_time()
    await work()
    await asyncio.sleep(0)
    return (time.process_time() - began) * 1000, turns.longest() * 1000


async def counted() -> list[tuple[str, float, float]]:
    every = jobs()

    async def walk() -> None:
        async for _ in sliced(every):
            continue

    async def count() -> None:
        counter = JobCounter()
        async for job in sliced(every):
            counter.add(job)
        found = counter.partitions(whole=True)
        assert sum(found.of(f"p{number}").running for number in range(PARTITIONS)) >= RUNNING

    return [
        ("a walk over the list (reference)", *await measured(walk)),
        ("jobs counted by partition and reason", *await measured(count)),
    ]


async def settled() -> tuple[str, float, float]:
    """Passes over a Cluster in which nothing changes."""
    world = World(cluster())
    world.slurm.all = [partition(f"p{number}") for number in range(PARTITIONS)]
    names = [f"n{number}" for number in range(NODES)]
    world.slurm.nodes = {
        name: slurm_node(name, f"p{number % PARTITIONS}", gres="gpu:a100:4") for number, name in enumerate(names)
    }
    for _ in range(3):
        _ = await world.step(seconds=60)
    written = len(world.kube.statuses)

    async def passes() -> None:
        for _ in range(ROUNDS):
            _ = await world.step(seconds=1)

    whole, turn = await measured(passes)
    return f"a pass that changes nothing: {len(world.kube.statuses) - written} writes", whole / ROUNDS, turn


def test_partitions(figures: Figures) -> None:
    rows = [*asyncio.run(counted()), asyncio.run(settled())]
    print("\n| what | CPU, ms | against the reference | longest turn of the loop, ms of CPU |")
    print("|---|---:|---:|---:|")
    for what, whole, turn in rows:
        figures.note(what, OF, NODES, whole, "ms of CPU", rows[0][1], "a walk over the list of jobs")
        print(f"| {what} | {whole:.0f} | {whole / rows[0][1]:.1f} | {turn:.1f} |")
