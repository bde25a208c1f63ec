"""SlurmJobs (`tests.support.slurm_jobs`) with a fake slurmrestd on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from slurm_client.testing import FakeSlurmrestd
from tests.support import slurm_jobs

KEY = b"k" * 32


class JobWorld(slurm_jobs.JobWorld):
    """The Cluster with a fake Slurm, whose tenant is alice."""

    def __init__(self, slurm: FakeSlurmrestd) -> None:
        super().__init__(slurm.url, KEY, "alice")
        self.slurm = slurm

    def in_slurm(self) -> list[Any]:
        """All jobs that Slurm has, in their order."""
        return sorted(self.slurm.world.jobs.values(), key=lambda job: job.id)


@asynccontextmanager
async def job_world(release: str = "26.05.5") -> AsyncIterator[JobWorld]:
    async with FakeSlurmrestd(key=KEY, release=release) as slurm:
        for number in range(4):
            slurm.add_node(f"w-{number}")
        slurm.world.add_partition("main")
        world = JobWorld(slurm)
        await world.start()
        try:
            yield world
        finally:
            await world.clients.close_all()
