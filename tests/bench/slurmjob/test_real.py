"""SlurmJobs on a real Slurm: how soon they are submitted and seen to end, and 1,000 at once, which then run. Prints.

Run it alone: ``pytest tests/bench/slurmjob/test_real.py --capture=no --override-ini=testpaths=tests/bench``. The
operator's own loop works here, with an API server in memory; the reference is ``sbatch`` in a loop.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest

from hack.images.rootfs import ensure
from tests.support.slurm_host import SlurmHost
from tests.support.slurm_jobs import JobWorld, until

MANY: Final = int(os.environ.get("BENCH_JOBS", "1000"))
ONE_BY_ONE: Final = 20
AT_REST_S: Final = float(os.environ.get("BENCH_AT_REST", "60"))
USER: Final = "daemon"


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    with SlurmHost(ensure(request.param)) as host:
        host.add_node("w-0", cpus=max(16, MANY))
        (host.shared / "ends").mkdir(mode=0o777)
        (host.shared / "ends").chmod(0o777)
        yield host


def told(words: str, times: list[float]) -> None:
    print(f"{words}: median {statistics.median(times):.2f} s, at most {max(times):.2f} s")


def run(world: JobWorld, name: str, script: str) -> None:
    world.job(name, script=f"#!/bin/sh\n{script}\n", output="/dev/null", workingDirectory="/")


def has_number(world: JobWorld, name: str) -> bool:
    return bool(world.status(name).get("jobId"))


def has_succeeded(world: JobWorld, name: str) -> bool:
    return world.status(name).get("state") == "Succeeded"


async def seen(holds: Callable[[], Any]) -> float:
    await until(holds)
    return time.time()


async def calls(slurm: SlurmHost) -> str:
    text = (await asyncio.to_thread(slurm.run, "sdiag")).stdout
    by_type = text.split("statistics by message type")[1].split("statistics by user")[0]
    found = re.findall(r"(REQUEST_\w+)\s+\(\s*\d+\) count:(\d+)", by_type)
    return ", ".join(f"{count} {name}" for name, count in found)


async def at_rest(slurm: SlurmHost, do: str) -> None:
    """Print what jobs cost that do nothing but wait, or run."""
    _ = await asyncio.to_thread(slurm.run, "sdiag", "--reset")
    cpu = time.process_time()
    await asyncio.sleep(AT_REST_S)
    share = (time.process_time() - cpu) / AT_REST_S
    print(
        f"while {MANY} {do}: in {AT_REST_S:.0f} s slurmctld has counted {await calls(slurm)}; CPU {share:.1%} of a core"
    )


@pytest.mark.timeout(1800)
async def test_one_by_one_and_many_at_once(slurm: SlurmHost) -> None:
    print()
    world = JobWorld(slurm.url, slurm.jwt_key, USER, poll_interval=1.0)
    world.cluster()
    await world.start()
    try:
        async with world.working(8):
            submitted, ended = [], []
            for number in range(ONE_BY_ONE):
                name = f"one-{number}"
                begun = time.time()
                run(world, name, f"sleep 0.5; touch /var/spool/ends/{name}")
                submitted.append(await seen(partial(has_number, world, name)) - begun)
                done = await seen(partial(has_succeeded, world, name))
                ended.append(done - (slurm.shared / "ends" / name).stat().st_mtime)
            told("applied to submitted", submitted)
            told("last line of the script to status", ended)

            begun = time.time()
            for _ in range(MANY):
                _ = await asyncio.to_thread(slurm.sbatch, "true", "--hold")
            loop = time.time() - begun
            _ = await asyncio.to_thread(slurm.run, "scancel", "--user=root")
            names = [f"many-{number}" for number in range(MANY)]
            begun, cpu = time.time(), time.process_time()
            for name in names:
                run(world, name, "#SBATCH --hold\nexec sleep 7200")
            at_once = await seen(lambda: all(has_number(world, name) for name in names)) - begun
            cpu = time.process_time() - cpu
            print(
                f"{MANY} at once submitted: {at_once:.1f} s; sbatch in a loop {loop:.1f} s, {loop / at_once:.1f} times"
                f"; CPU of operator and API server {cpu:.1f} s"
            )
            await at_rest(slurm, "wait")
            numbers = ",".join(str(world.status(name)["jobId"]) for name in names)
            begun = time.time()
            _ = await asyncio.to_thread(slurm.run, "scontrol", "release", numbers)
            shown = await seen(lambda: all(world.status(name).get("state") == "Running" for name in names)) - begun
            print(f"{MANY} released and shown as running: {shown:.1f} s")
            await at_rest(slurm, "run")
            begun = time.time()
            for name in names:
                world.delete(name)
            gone = await seen(lambda: not any(world.exists(name) for name in names)) - begun
            print(f"{MANY} at once deleted, each job cancelled: {gone:.1f} s")
    finally:
        await world.clients.close_all()
