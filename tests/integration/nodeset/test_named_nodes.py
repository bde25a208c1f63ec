"""Jobs and reservations that name nodes live through a scale-in and a reconfigure, with real daemons of both releases.

The API server is real as well; the operator's pods are played, and in each runs a real slurmd.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hack.images.rootfs import ensure
from tests.integration.nodeset.conftest import Site, up
from tests.integration.nodeset.real_slurm import Host, real_site
from tests.support.control_plane import ControlPlane
from tests.support.slurm_host import SlurmHost
from tests.support.slurm_series import OLDER_IN_FULL

pytestmark = pytest.mark.timeout(600)

LATER = "--begin=now+1hour"
NAMES = ("a-0", "a-1", "a-2", "a-3")


@pytest.fixture(params=OLDER_IN_FULL)
async def host(request: pytest.FixtureRequest) -> AsyncIterator[Host]:
    with Host(ensure(request.param)) as host:
        yield host


@pytest.fixture
async def real(control_plane: ControlPlane, crds: None, host: Host) -> AsyncIterator[Site]:
    """A NodeSet of four nodes over a real Slurm."""
    async with real_site(control_plane, host) as site:
        await up(site, 4)
        yield site


def shown(host: SlurmHost, node: str) -> str:
    """A node's record; empty if there is none."""
    told = host.run("scontrol", "--oneliner", "show", "node", node, check=False).stdout
    return told if told.startswith(f"NodeName={node} ") else ""


async def kept(site: Site, node: str, *words: str, left: int = 3) -> bool:
    """Whether a node has no pod, so many others have one, and the condition says why its record is still there."""
    told = (await site.condition("RecordsKept")).get("message", "")
    names = await site.names()
    return node not in names and len(names) == left and all(word in told for word in (node, *words))


async def is_told_no_more(site: Site) -> bool:
    return await site.condition("RecordsKept") == {}


async def test_jobs_that_name_a_node_live_on_without_its_pod(real: Site, host: Host) -> None:
    running = host.sbatch("sleep 1000", "-N2", "-n2", "-w", "a-[0-3]")
    await real.until(lambda: host.job_state(running) == "RUNNING", "the job runs on two of its four nodes")
    busy = [name for name in NAMES if "State=IDLE" not in shown(host, name)]
    (_, last) = idle = [name for name in NAMES if name not in busy]
    assert len(busy) == len(idle) == 2
    excludes = host.sbatch("sleep 1000", "-N1", "-n1", "-w", busy[0], "-x", last)
    pending = host.sbatch("true", "-w", last, LATER)
    array = host.sbatch("true", "-w", last, "--hold", "--array=0-3")
    mixed = host.run(
        *("sbatch", "--parsable", "-o", "/dev/null", LATER, "-N1", "-w", busy[0], ":", "-N1", "-w", last),
        stdin="#!/bin/sh\ntrue\n",
    )
    both = int(mixed.stdout.strip())
    unfinished = {running: "RUNNING", excludes: "RUNNING", pending: "PENDING", array: "PENDING", both: "PENDING"}
    await real.until(lambda: host.job_state(excludes) == "RUNNING", "the other job runs")

    await real.scale(3)
    # The other idle node is named by one job as well: of equals the last one goes.
    await real.until(lambda: kept(real, last, f"(required by job {running}, "), "the pod is gone, the record stays")
    assert "DRAIN" in shown(host, last)
    assert "Reason=slurm-operator: scale-in" in shown(host, last)

    await asyncio.to_thread(host.reconfigure)
    assert {job: host.job_state(job).splitlines()[0] for job in unfinished} == unfinished
    host.run("scontrol", "update", f"jobid={excludes}", "timelimit=100")

    # Its name is used again, under the same record, and then no more.
    await real.scale(4)
    await real.until(lambda: real.ready(4), "a pod of that name registers again")
    await real.until(lambda: "State=IDLE+DYNAMIC_NORM " in shown(host, last), "and its node gets jobs again")
    await real.until(lambda: is_told_no_more(real), "the condition is gone")
    await real.scale(3)
    await real.until(lambda: kept(real, last, "(required by job "), "its pod is gone again")

    host.run("scancel", str(running), str(pending), str(array), str(both))
    await real.until(lambda: kept(real, last, f"(excluded by job {excludes})"), "one job still names it")
    assert shown(host, last)
    host.run("scancel", str(excludes))
    await real.until(lambda: not shown(host, last), "the record goes once nothing names it")
    await real.until(lambda: is_told_no_more(real), "the condition is gone")


async def test_a_reservation_by_name_keeps_its_nodes(real: Site, host: Host) -> None:
    made = ("users=root", "starttime=now+1hour", "duration=60", "flags=ignore_jobs")
    host.run("scontrol", "create", "reservation", "reservationname=named", "nodes=a-3", *made)

    await real.scale(3)
    await real.until(lambda: real.ready(3), "one pod is gone")
    assert await real.names() == ["a-0", "a-1", "a-3"]
    await real.scale(0)
    await real.until(lambda: kept(real, "a-3", "(named by reservation named)", left=0), "the record stays")
    await real.until(lambda: not shown(host, "a-0"), "those of the others go")
    await asyncio.to_thread(host.reconfigure)
    assert "Nodes=a-3 " in host.run("scontrol", "--oneliner", "show", "reservation", "named").stdout

    host.run("scontrol", "delete", "reservationname=named")
    await real.until(lambda: not shown(host, "a-3"), "the record goes once nothing names it")
