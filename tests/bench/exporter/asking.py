"""
One exporter's way of asking, in a process of its own: ``python asking.py WAY URL SECONDS`` prints one JSON object.

``here`` is the exporter as it is, with its defaults and one scrape in 15 seconds; ``there`` asks as slurm-exporter 0.3
does: all jobs, nodes, partitions and counters each five seconds. It counts nothing, so its costs are a lower bound.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time

import httpx

from slurm_client import Intake, SlurmClient, StaticToken
from slurm_exporter.counting import Budgets
from slurm_exporter.exporter import Exporter, pace
from slurm_exporter.sources.collector import Cadence

INTERVAL_THERE = 5.0
SCRAPES = 15.0
ROOM = 512 * 2**20


async def here(url: str, seconds: float) -> SlurmClient:
    """Run the exporter."""
    cadence = Cadence()
    async with (
        SlurmClient(url, StaticToken("token"), pace=pace(cadence), intake=Intake(ROOM), timeout=300) as client,
        Exporter(client, cadence, Budgets(), accounting=False, host="127.0.0.1", port=0) as exporter,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(min(SCRAPES, max(0.0, end - time.monotonic())))
            (await http.get(f"http://127.0.0.1:{exporter.port}/metrics")).raise_for_status()
        return client


async def there(url: str, seconds: float) -> SlurmClient:
    """Ask for whole lists at a fixed interval."""
    async with SlurmClient(url, StaticToken("token"), intake=Intake(ROOM), timeout=300) as client:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            for ask in (client.jobs, client.nodes, client.partitions, client.diag):
                await ask()
            await asyncio.sleep(max(0.0, INTERVAL_THERE - (time.monotonic() - began)))
        return client


def main(way: str, url: str, seconds: float) -> None:
    """Measure one way; the imports, which both need, are not counted."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    client = asyncio.run({"here": here, "there": there}[way](url, seconds))
    after = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "calls": client.calls,
        "megabytes": client.bytes_received / 1e6,
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "rss_mib": after.ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
