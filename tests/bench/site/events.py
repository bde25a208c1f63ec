"""What one event costs in the model of a site, by its size: CPU of all passes and answers that follow from it, in ms.

``PYTHONPATH=.:api python -m tests.bench.site.events NODES KIND`` - `pod` is a status of a pod that says nothing new,
`load` a node that gets a job or loses it, `drain` one that somebody drains or undrains. Nothing is asserted about time.
"""

from __future__ import annotations

from tests.bench.site import virtual_time

if __name__ == "__main__":
    virtual_time.install()

import asyncio
import gc
import sys

from slinky_operator.kube.resources import PODS
from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from tests.bench.site.model import Site
from tests.bench.site.virtual_time import Clock

EVENTS = 20
SETTLING = 40.0
"""Seconds of the model until nothing happens any more."""
PACE = 3.0
"""Seconds of the model between two events: a list of 5,000 nodes is asked for as often as that."""


def change(site: Site, kind: str, number: int) -> None:
    """Let something happen to a node or its pod."""
    name, is_even = f"a0-{number * 3 % site.nodes}", number % 2 == 0
    match kind:
        case "pod":
            pod = site.kube.find(PODS, name, "ns") or {}
            conditions = [{**one, "lastProbeTime": str(number)} for one in pod["status"]["conditions"]]
            site.kube.put(PODS, {**pod, "status": {**pod["status"], "conditions": conditions}})
        case "load":
            site.slurm.update_node(name, state="MIXED+DYNAMIC_NORM" if is_even else "IDLE+DYNAMIC_NORM")
        case _:
            site.slurm.update_node(name, state=f"IDLE+DYNAMIC_NORM{'+DRAIN' if is_even else ''}", reason="by hand")


async def cost(nodes: int, kind: str) -> str:
    """What an event costs, as a line of a table."""
    site = Site(nodes, 1, 0)
    async with site.operating():
        site.meter.begin()
        site.scale("a0", nodes)
        while site.ready() < nodes:
            await asyncio.sleep(1.0)
            assert Clock.passed < 3_600, site.told()
        await asyncio.sleep(SETTLING)
        freeze_caches()
        gc.disable()
        site.meter.begin()
        for number in range(EVENTS):
            change(site, kind, number)
            await asyncio.sleep(PACE)
        found = site.meter.read()
        each = found["seconds"] / EVENTS
        figures = (
            f"{found['cpu'] * each * 1000:.1f} | {found['passes'] * each:.2f} | {found['bytes'] * each / 1000:.0f}"
        )
        return f"| {kind} | {nodes} | {figures} |"
    raise AssertionError("never")


def main() -> None:
    """Print the costs of one kind of event: CPU in ms, passes, kB of Slurm's answers."""
    virtual_time.install_dates()
    relax_collector()
    with asyncio.Runner(loop_factory=virtual_time.Loop) as runner:
        print(runner.run(cost(int(sys.argv[1]), sys.argv[2])))


if __name__ == "__main__":
    main()
