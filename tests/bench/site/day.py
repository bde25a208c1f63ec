"""One state of a site in the model, as a program: prints what a second of it costs, as JSON.

``python -c 'from tests.bench.site import virtual_time; virtual_time.install(); from tests.bench.site import day;
day.main()' NODES NODESETS JOBS SECONDS`` - `test_day` starts it, each state in a process of its own.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path
from typing import Any

from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from tests.bench.site import virtual_time
from tests.bench.site.model import Site
from tests.bench.site.virtual_time import Clock

SETTLING = 30.0
"""Seconds of the model until it is as it stays."""


def resident() -> float:
    """MB of this process now."""
    (line,) = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


async def state(nodes: int, nodesets: int, jobs: int, seconds: float) -> dict[str, Any]:
    """What a second costs, at rest and with jobs, and what one of each change costs."""
    site = Site(nodes, nodesets, jobs)
    async with site.operating():
        site.meter.begin()
        for name in site.names:
            site.scale(name, nodes // nodesets)
        began = Clock.passed
        while site.ready() < nodes:
            await asyncio.sleep(1.0)
            assert Clock.passed - began < 3_600, site.told()
        out = {**site.meter.read(), "took": Clock.passed - began}
        freeze_caches()
        await asyncio.sleep(SETTLING)
        site.meter.begin()
        await asyncio.sleep(seconds)
        rest = site.meter.read()
        with site.meter.apart():
            first = site.flow.begin()
        for name in first:
            site.job(name)
        await asyncio.sleep(SETTLING * 2)
        gc.collect()
        site.meter.begin()
        await asyncio.sleep(seconds)
        flow = {**site.meter.read(), "jobs": len(site.slurm.jobs)}
        return {"out": out, "rest": rest, "flow": flow, "resident": resident()}
    raise AssertionError("never")


def main() -> None:
    """Print one state."""
    virtual_time.install_dates()
    relax_collector()
    nodes, nodesets, jobs, seconds = map(int, sys.argv[1:5])
    with asyncio.Runner(loop_factory=virtual_time.Loop) as runner:
        print(json.dumps(runner.run(state(nodes, nodesets, jobs, float(seconds)))))


if __name__ == "__main__":
    main()
