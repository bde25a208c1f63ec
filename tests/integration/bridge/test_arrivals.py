"""Pods, groups and jobs at random, on machines that Kubernetes and a real slurmctld share: each core is given once.

Slurm is 26.05 with slurmds for its batch jobs; the operator runs with its own loops; the API server, the scheduler and
the kubelets are models that judge room by themselves. ``BRIDGE_ARRIVALS=10000 pytest --log-cli-level=WARNING
tests/integration/bridge/test_arrivals.py`` is the long run, of some minutes; ``BRIDGE_SEED`` chooses other arrivals.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from hack.images.rootfs import ensure
from slurm_client import MintedToken, SlurmClient
from tests.support.bridged.arrivals import ZONES, Traffic, arrivals
from tests.support.bridged.ledger import Ledger
from tests.support.bridged.machines import Work
from tests.support.bridged.site import CONF, BridgedSite
from tests.support.slurm_host import SlurmHost
from tests.support.slurm_jobs import until

logger = logging.getLogger(__name__)

COUNT = int(os.environ.get("BRIDGE_ARRIVALS", "60"))
SEED = int(os.environ.get("BRIDGE_SEED", "1"))
IS_LONG = COUNT >= 1000
AT_ONCE = 300 if IS_LONG else 100
MACHINES, CPUS = (24 if IS_LONG else 6), 16
SHARED, SLURMD_CPUS = 2, 6
"""Machines that have a slurmd, too, and the cores that its pod requests."""
LOOK_S, POLL_S = (2.0, 0.5) if IS_LONG else (0.5, 0.25)
PATIENCE_S = 60 + COUNT

pytestmark = pytest.mark.timeout(120 + 2 * COUNT)


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmHost]:
    with SlurmHost(ensure("26.05"), extra_conf=CONF) as host:
        for number in range(SHARED):
            host.add_node(f"w-{number}", cpus=SLURMD_CPUS, features=("slurmd",))
        yield host


async def test_no_core_is_given_twice_and_no_pod_is_refused(slurm: SlurmHost) -> None:
    site = BridgedSite(slurm.url, slurm.jwt_key, poll_interval=POLL_S)
    for number in range(MACHINES):
        site.machines.add(f"k{number}", CPUS, bridge="yes", zone=ZONES[number % len(ZONES)])
    for number in range(SHARED):
        site.ordinary_pod(f"slurmd-{number}", f"k{number}", str(SLURMD_CPUS), Work(1e6))
    ledger = Ledger(site, slurm.run)
    async with site.running(), SlurmClient(slurm.url, MintedToken(slurm.jwt_key, "root")) as client:
        traffic = Traffic(site, client, AT_ONCE)
        async with asyncio.timeout(PATIENCE_S):
            await until(lambda: len(site.nodes()) == MACHINES + SHARED)
            began, looking = time.monotonic(), asyncio.create_task(watch(ledger))
            try:
                await traffic.run(arrivals(SEED, COUNT))
                seconds = time.monotonic() - began
                await until(lambda: not ledger.left and not list(site.jobs))
            finally:
                _ = looking.cancel()
                told = {"came": traffic.came, "ended": traffic.ended, "calls": site.kube.calls}
                for name, found in told.items():
                    logger.warning("%s: %s", name, dict(Counter(found)))
    machines = site.machines
    logger.warning(
        "seed %d: %d in %.0f s; %d looks at Slurm, %d cores busy at most; pods bound %d, %d without room at first; "
        "pod and job apart for %.1f s at most",
        *(SEED, COUNT, seconds, ledger.looks, ledger.most_busy, machines.bound, machines.waited, ledger.longest),
    )
    assert (ledger.twice, ledger.strays) == ([], [])
    assert (machines.refused, machines.overfull, machines.unfit) == ([], [], [])
    assert sum(traffic.came.values()) == COUNT


async def watch(ledger: Ledger) -> None:
    while True:
        await ledger.look()
        await asyncio.sleep(LOOK_S)
