"""What a real slurmrestd keeps in memory after lists of many jobs: with one heap, as in its pod, and by itself.

Run it alone: ``pytest tests/bench/slurm_client/test_slurmrestd_memory.py --capture=no
--override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx
import pytest

from hack.images.rootfs import ensure
from tests.support.slurm_host import SlurmHost

JOBS: Final = int(os.environ.get("BENCH_JOBS", "800"))
LISTS: Final = 40
PATHS: Final = {"24.11": "/slurm/v0.0.42/jobs/", "26.05": "/slurm/v0.0.45/jobs/"}


def kept(port: int) -> int:
    """Memory of the slurmrestd on a port, in MB."""
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # no process, or one that has just ended
            continue
        if command[0] == b"slurmrestd" and f"127.0.0.1:{port}".encode() in command:
            pages = int((folder / "statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
    raise AssertionError(f"no slurmrestd on port {port}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", PATHS)
def test_memory_after_lists(version: str) -> None:
    for environment in ({}, {"MALLOC_ARENA_MAX": "1"}):
        print(f"\n{version}, {JOBS} jobs, {environment or 'by itself'}: {measured(version, environment)}")


def measured(version: str, environment: Mapping[str, str]) -> str:
    with SlurmHost(ensure(version), slurmrestd_environment=environment) as host:
        for _ in range(JOBS):
            host.sbatch("true", "--hold")
        after, size = [kept(host.rest_port)], 0.0
        headers = {"X-SLURM-USER-TOKEN": host.token("root")}
        with httpx.Client(headers=headers, timeout=60) as client:
            begun = time.time()
            for number in range(1, LISTS + 1):
                size = len(client.get(f"{host.url}{PATHS[version]}").raise_for_status().content) / 2**20
                if number in {1, LISTS // 2, LISTS}:
                    after.append(kept(host.rest_port))
            times = (time.time() - begun) / LISTS
        words = ", ".join(f"{each} MB" for each in after)
        return f"before, after 1, {LISTS // 2} and {LISTS} lists of {size:.1f} MB: {words}; {times:.2f} s each"
