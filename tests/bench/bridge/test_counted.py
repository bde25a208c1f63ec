"""Calls that pods cost which Slurm places, and turns of the event loop. Prints, asserts nothing.

The operator's own loops work, for SlurmJobs, groups and Nodes; the API server, the scheduler and the kubelets are
models in memory, and Slurm is a fake on loopback in a thread of the same process, which starts a job as soon as there
is room. The reference of the same run are as many SlurmJobs without a script, which nobody places. CPU and turns are
those of the event loop's thread, all models but Slurm included: upper limits. Run it alone: ``pytest
tests/bench/bridge/test_counted.py --capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import BATCH_JOBS
from slinky_operator.runtime.garbage_collection import freeze_caches, relax_collector
from slurm_client.testing import FakeSlurmrestd
from tests.bench.bridge.conftest import KEY
from tests.support.bridged.machines import Work
from tests.support.bridged.site import TEAM, BridgedSite
from tests.support.slurm_jobs import until
from tests.support.turns import Turns

MANY: Final = int(os.environ.get("BENCH_PODS", "500"))
CPUS: Final = 64
FOR_EVER: Final = Work(1e6)


class Bench:
    """One site, and what happens in it."""

    def __init__(self, site: BridgedSite, slurm: FakeSlurmrestd, turns: Turns) -> None:
        self._site, self._slurm, self._turns = site, slurm, turns
        self._began: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        site.kube.pod_changed.append(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            name = new["metadata"]["name"]
            if old is None:
                self._began[name] = time.monotonic()
            if new["spec"].get("nodeName") and name not in self.bound:
                self.bound[name] = time.monotonic() - self._began[name]

    async def measured(self, make: Callable[[], None], holds: Callable[[], Any]) -> list[str]:
        """Cells of a row."""
        kube = self._site.kube
        known, written, read, asked = set(self.bound), len(kube.calls), kube.reads, len(self._slurm.requests)
        self._turns.begin()
        began, cpu = time.monotonic(), time.thread_time()
        make()
        await until(holds)
        seconds, cpu = time.monotonic() - began, time.thread_time() - cpu
        times = [one for name, one in self.bound.items() if name not in known]
        shares = [statistics.median(times), statistics.quantiles(times, n=20)[18]] if times else []
        calls = Counter(one.operation for one in self._slurm.requests[asked:])
        writes = Counter(kube.calls[written:])
        print(f"\n{seconds:.1f} s; {dict(writes)}; {dict(calls)}")
        counts = (writes.total(), kube.reads - read, calls.total())
        return [
            f"{calls['post_job_submit'] / seconds:.0f}",
            *([f"{one:.1f}" for one in shares] or ["–", "–"]),
            *(f"{one / MANY:.2f}" for one in counts),
            f"{1000 * cpu / MANY:.1f}",
            f"{1000 * self._turns.longest():.0f}",
        ]


@pytest.mark.timeout(1200)
async def test_calls(slurm: FakeSlurmrestd) -> None:
    relax_collector()
    site = BridgedSite(slurm.url, KEY, poll_interval=1.0)
    for number in range(3 * MANY // CPUS + 1):
        site.machines.add(f"k{number}", CPUS, bridge="yes")
    cells: dict[str, list[str]] = {}
    async with site.running():
        await until(lambda: len(site.nodes()) == len(site.machines.all))
        freeze_caches()
        bench = Bench(site, slurm, Turns())

        def pods() -> None:
            for number in range(MANY):
                site.pod(f"pod-{number}", "1", FOR_EVER)

        def group() -> None:
            annotations = {labels.BRIDGE_PREFIX + "partition": "pods"}
            spec = {"completions": MANY, "parallelism": MANY, "completionMode": "Indexed"}
            about = {"name": "gang", "namespace": TEAM, "annotations": annotations}
            job = site.kube.put(BATCH_JOBS, {"metadata": about, "spec": spec, "status": {}})
            for index in range(MANY):
                site.pod(f"gang-{index}", "1", FOR_EVER, job, index)

        def jobs() -> None:
            given: dict[str, Any] = {
                "external": {},
                "script": None,
                "partition": "pods",
                "features": "bridge",
                "cpusPerTask": 1,
            }
            given |= {"cpusPerTask": 1, "parameters": {"memory_per_cpu": 64}}
            for number in range(MANY):
                site.job(f"job-{number}", **given)

        def are_running() -> bool:
            found = [one for one in site.jobs if one["metadata"]["name"].startswith("job-")]
            return len([one for one in found if (one.get("status") or {}).get("state") == "Running"]) == MANY

        cells["single pods"] = await bench.measured(pods, lambda: len(bench.bound) == MANY)
        cells["one group"] = await bench.measured(group, lambda: len(bench.bound) == 2 * MANY)
        cells["SlurmJobs without a script (reference)"] = await bench.measured(jobs, are_running)
    times = ("submissions a second", "created to bound, median, s", "95 %, s", "writes each", "reads each")
    print(f"\n| {MANY} at once | {' | '.join((*times, 'Slurm calls each', 'CPU each, ms', 'longest turn, ms'))} |")
    print(f"|---{'|---:' * 8}|")
    for name, row in cells.items():
        print(f"| {name} | {' | '.join(row)} |")
