"""How long the one SlurmJob of a namespace waits behind thousands of another. Prints, asserts nothing of it.

Run it alone: ``pytest tests/bench/slurmjob/test_fair.py --capture=no --override-ini=testpaths=tests/bench``. As in
`test_scale`, the operator's own loop and triggers work, with an API server in memory and a fake of Slurm.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from slinky_operator.kube.cache.store import Key
from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.threaded import running
from tests.support.slurm_jobs import JobWorld, until

MANY: Final = int(os.environ.get("BENCH_JOBS_OF_ANOTHER", "5000"))
ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "5"))
WORKERS: Final = 8
KEY: Final = b"k" * 32


@pytest.fixture
def slurm() -> Iterator[FakeSlurmrestd]:
    with running(key=KEY) as fake:
        _ = fake.add_node("w-0", cpus=64)
        yield fake


async def submitted(world: JobWorld, name: str) -> float:
    """Seconds until the SlurmJob of namespace `other` that is created now has its number."""
    began = time.monotonic()
    world.job(name, "other")
    await until(lambda: world.status(name, "other").get("jobId"))
    return time.monotonic() - began


async def behind(slurm: FakeSlurmrestd, lane: Callable[[Key], str | None]) -> tuple[float, float, int]:
    """Seconds alone and behind the others (the medians), and how many of the others came before the first one."""
    world = JobWorld(slurm.url, KEY, "alice", poll_interval=1.0)
    world.tenants.append({"namespaces": ["other"], "user": "bob"})
    world.cluster()
    await world.start()
    try:
        async with world.working(WORKERS, lane):
            freeze_caches()
            alone = sorted([await submitted(world, f"alone-{number}") for number in range(ROUNDS)])
            for number in range(MANY):
                world.job(f"job-{number}")
                if not number % 100:
                    await asyncio.sleep(0)
            taken = len(world.kube.statuses)
            crowded = [await submitted(world, "crowded-0")]
            others = len(world.kube.statuses) - taken
            left = sum(not world.status(f"job-{number}").get("jobId") for number in range(MANY))
            if left > MANY // 2:
                crowded += [await submitted(world, f"crowded-{number}") for number in range(1, ROUNDS)]
            return alone[len(alone) // 2], sorted(crowded)[len(crowded) // 2], others
    finally:
        await world.clients.close_all()


@pytest.mark.timeout(1800)
async def test_one_namespace_behind_another(slurm: FakeSlurmrestd) -> None:
    relax_collector()
    print()
    for name, lane in (("namespaces in turn", lambda key: key[0]), ("one queue for all", lambda _: None)):
        alone, crowded, written = await behind(slurm, lane)
        print(
            f"{name}: alone {alone * 1e3:.0f} ms, behind {MANY} of another namespace {crowded * 1e3:.0f} ms, ratio "
            f"{crowded / alone:.1f}; statuses written meanwhile: {written}"
        )
