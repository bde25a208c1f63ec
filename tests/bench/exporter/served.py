"""
A fake slurmrestd for two exporters, in a process of its own: ``python served.py NODES JOBS CHANGES`` prints its URL.

Each second CHANGES jobs end and as many begin, as on a cluster at work; with 0 nothing ever changes.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque

from slurm_client.testing import FakeSlurmrestd


def start(fake: FakeSlurmrestd, number: int, nodes: int) -> int:
    """Start a job on one of the nodes."""
    name = f"node-{number % nodes:05d}"
    return fake.add_job(name=f"job-{number:06d}", user=f"user-{number % 97}", nodes=[name]).id


async def serve(nodes: int, jobs: int, changes: int) -> None:
    """Run until the process is ended."""
    fake = FakeSlurmrestd()
    for number in range(nodes):
        fake.add_node(f"node-{number:05d}", cpus=64, memory=256_000)
    with fake.world.many_jobs():
        running = deque(start(fake, number, nodes) for number in range(jobs))
    # An old cluster: what is not changed below has not changed for a while.
    fake.world.nodes_changed = fake.world.partitions_changed = fake.world.jobs_changed = 1_000_000_000
    started = jobs
    async with fake:
        sys.stdout.write(f"{fake.url}\n")
        sys.stdout.flush()
        while True:
            await asyncio.sleep(1)
            if not changes:
                continue
            with fake.world.many_jobs():
                for _ in range(changes):
                    ended = running.popleft()
                    fake.finish_job(ended)
                    fake.forget_job(ended)
                    running.append(start(fake, started, nodes))
                    started += 1


if __name__ == "__main__":
    asyncio.run(serve(*map(int, sys.argv[1:])))
