"""What 500 pods on one virtual Node cost, from `kubectl apply` to their ends. Prints, asserts nothing.

A real API server with Kubernetes' controllers, the operator as its charts run it, and a fake of Slurm that starts each
job at once. The reference of the same run are as many SlurmJobs without pods. Run it alone: ``pytest
tests/bench/virtual_nodes/test_many_pods.py --capture=no --override-ini=testpaths=tests/bench``.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import virtual_site
from tests.support.virtual_site import TEAM, VirtualSite, pod_body

MANY: Final = int(os.environ.get("BENCH_PODS", "500"))
CPUS: Final = 64
PODS: Final = [pod_body(f"pod-{number}") for number in range(MANY)]
SLURM_JOBS: Final = [
    {
        "apiVersion": "slinky.slurm.net/v1alpha1",
        "kind": "SlurmJob",
        "metadata": {"name": f"job-{number}", "namespace": TEAM},
        "spec": {"clusterName": "slurm", "script": "#!/bin/sh\nsleep 600\n"},
    }
    for number in range(MANY)
]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[VirtualSite]:
    with virtual_site.running(tmp_path) as made:
        for number in range(2 * MANY // CPUS + 1):
            _ = made.slurm.add_node(f"large-{number}", cpus=CPUS)
        yield made


def states(site: VirtualSite, kind: str, field: str) -> Counter[str]:
    """How many objects of a kind are in each state."""
    path = f"jsonpath={{range .items[*]}}{{.status.{field}}}{{'\\n'}}{{end}}"
    return Counter(site.kubectl("get", kind, "-n", TEAM, "-o", path).split())


def measured(site: VirtualSite, kind: str, field: str, running: str, bodies: list[dict[str, Any]]) -> list[str]:
    """Cells of a row: seconds until they are accepted, run and have ended, and calls for each."""

    def seconds(holds: Callable[[], object]) -> float:
        site.until(f"{MANY} of {kind}", holds)
        return time.monotonic() - began

    written, asked, before = len(site.writes()), len(site.slurm.requests), {*site.slurm.world.jobs}
    began = time.monotonic()
    site.kubectl.apply(bodies)
    accepted = time.monotonic() - began
    run = seconds(lambda: states(site, kind, field)[running] >= MANY)
    mine = [number for number in site.slurm.world.jobs if number not in before]
    for number in mine:
        _ = site.slurm.world.finish_job(number)
    began = time.monotonic()
    ended = seconds(lambda: not states(site, kind, field)[running])
    writes = Counter(resource for _, resource, _ in site.writes()[written:])
    calls = Counter(one.operation for one in site.slurm.requests[asked:])
    times = [f"{one:.1f}" for one in (accepted, run, ended)]
    print(f"\n{kind}: {len(mine)} jobs; writes {dict(writes)}; calls {dict(calls)}")
    return [*times, f"{writes.total() / MANY:.2f}", f"{calls.total() / MANY:.2f}"]


@pytest.mark.timeout(1800)
def test_many_pods(site: VirtualSite) -> None:
    rows = {
        "SlurmJobs (reference)": measured(site, "slurmjobs", "state", "Running", SLURM_JOBS),
        "pods": measured(site, "pods", "phase", "Running", PODS),
    }
    print(f"\n| {MANY} at once | accepted, s | all run, s | ended after Slurm, s | writes each | Slurm calls each |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |")
