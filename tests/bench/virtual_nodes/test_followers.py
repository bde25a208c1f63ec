"""What a flood of `kubectl logs -f` in one namespace costs the operator's event loop. Prints, asserts nothing.

The kubelet API with TLS runs here, and those who follow in a process of their own, so that the CPU time of a turn is
the operator's alone. One follower after the other is the reference of the same run. Run it alone: ``pytest
tests/bench/virtual_nodes/test_followers.py --capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import httpx

from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from slinky_operator.slurm.connection.job_output import JobOutput
from tests.bench.virtual_nodes.followers import PODS
from tests.support.kubelet_callers import Api, kubelet_api, objects_of_slurm
from tests.support.turns import Turns
from tests.unit.virtual_nodes.kubelet.test_answers import PATH, Node, Reviewer

FLOODS = (1, 100, 1_000, 10_000)


async def flood(api: Api, turns: Turns, count: int) -> str:
    module = "tests.bench.virtual_nodes.followers"
    arguments = (sys.executable, "-m", module, str(api.port), str(count))
    turns.begin()
    began, cpu = time.monotonic(), time.process_time()
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    seconds, spent = time.monotonic() - began, time.process_time() - cpu
    ends = json.loads(out)
    served, refused = ends.pop("200", 0), ends.pop("500", 0)
    cells = (count, served, refused, sum(ends.values()), f"{seconds:.1f}", f"{spent:.2f}")
    return f"| {' | '.join(map(str, cells))} | {turns.longest() * 1000:.1f} |"


async def floods() -> list[str]:
    node = Node()
    node.content = b"a line\n" * 500
    output = JobOutput(transport=httpx.MockTransport(node.answer))
    relax_collector()
    async with kubelet_api(Reviewer(), objects_of_slurm("10.0.0.1"), output=output) as api:
        for number in range(PODS):
            api.table.put("team", f"p{number}", PATH)
        freeze_caches()
        turns = Turns()
        await asyncio.sleep(0)
        return [await flood(api, turns, count) for count in FLOODS]


def test_followers() -> None:
    rows = asyncio.run(floods())
    print("\n| followers | served | told to come later | not accepted | s | CPU, s | longest turn, ms of CPU |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    print("\n".join(rows))
