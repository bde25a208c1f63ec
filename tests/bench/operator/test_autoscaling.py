"""How long a job waits for nodes that autoscaling makes for it, and nodes for nobody until they go.

Prints, asserts nothing about times. All images are on the Nodes already; times include the polling of the observer
(0.2 s). The operator looks at the jobs every three seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from hack.installing.operator import Installation
from hack.localkube.kubectl import wait_for
from tests.support.slurm_in_kubernetes import NEWEST, SlurmInKubernetes, fresh_namespace

pytestmark = pytest.mark.timeout(1800)
LONGEST = 900.0
ROUNDS = 3
IDLE = 5.0


def test_from_zero_and_back(installed: Installation) -> None:
    slurm = SlurmInKubernetes(installed.cluster.kubectl, fresh_namespace("bench"), NEWEST)
    slurm.create()
    slurm.nodeset("submit", 1)
    scaled = {"maxReplicas": 4, "idleTime": f"{IDLE:.0f}s", "scaleDownDelay": "1s"}
    slurm.nodeset("burst", None, autoscaling=scaled)
    slurm.wait_ready()
    slurm.wait_idle(["submit-0"])
    print()
    for nodes in (1, 4):
        for _ in range(ROUNDS):
            begun = time.monotonic()
            job = slurm.submit("--partition=burst", f"--nodes={nodes}", "--exclusive", seconds=0, pod="submit-0")
            rows = [("submitted", time.monotonic() - begun)]

            def reached(what: str, seen: Callable[[], bool], rows: list[tuple[str, float]], begun: float) -> None:
                wait_for(what, seen, LONGEST, poll=0.2)
                rows.append((what, time.monotonic() - begun))

            def pods() -> int:
                return sum(name.startswith("burst-") for name in slurm.slurmd_pods())

            def joined(nodes: int = nodes) -> bool:
                return sum(name.startswith("burst-") for name in slurm.states()) == nodes

            reached("pods", lambda nodes=nodes: pods() == nodes, rows, begun)  # type: ignore[misc]
            reached("nodes in Slurm", joined, rows, begun)
            reached("job done", lambda job=job: slurm.job_state(job) == "COMPLETED", rows, begun)  # type: ignore[misc]
            done = time.monotonic()
            reached("no pods", lambda: pods() == 0, rows, done)
            print(f"{nodes} nodes: " + ", ".join(f"{what} {seconds:.1f} s" for what, seconds in rows))
    print(f"(the last is from the end of the job, with idleTime {IDLE:.0f} s)")
    slurm.abandon()
