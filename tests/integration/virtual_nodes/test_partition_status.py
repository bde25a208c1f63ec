"""What a Cluster shows of its partitions, with a real Slurm of both releases: nodes, GPUs, and jobs with their reasons.

The controller, its poll and the connection are the operator's own; the API server is one in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from hack.images.rootfs import ensure
from hack.machine import ports
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import CLUSTERS, VIRTUAL_NODES
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.contact import Endpoint
from slinky_operator.virtual_nodes.nodes.controller import VirtualNodesReconciler
from slinky_operator.virtual_nodes.nodes.leases import NodeLeases
from slinky_operator.virtual_nodes.nodes.observation import KubeletAddress, Observation
from slinky_operator.virtual_nodes.nodes.partition_poll import JOBS_EVERY_S, PartitionPoll
from slinky_operator.virtual_nodes.nodes.reachability_poll import ReachabilityPoll
from slurm_client import MintedToken
from tests.support.memory_kube import MemoryKube
from tests.support.slurm_host import SlurmHost
from tests.unit.virtual_nodes.nodes.worlds import KEY, Proxy, cluster

pytestmark = pytest.mark.timeout(300)

PATIENCE = 240
CONF = "GresTypes=gpu\nPartitionName=night Nodes=ALL"
GRES = "NodeName=g-0 Name=gpu Type=h100 File=/dev/null\nNodeName=g-0 Name=gpu Type=h100 File=/dev/zero\n"
"""Two files that are no GPUs, but files that there are: slurmd wants no more."""
LONG = "sleep 600"


class Recorder:
    """Events, of which no test asks."""

    def warning(self, obj: Any, reason: str, message: str) -> None:
        raise AssertionError(message)

    def normal(self, obj: Any, reason: str, message: str) -> None:
        assert reason == "VirtualNodeCreated"


class Site:
    """A Cluster whose partitions are Nodes, and its Slurm."""

    def __init__(self, host: SlurmHost) -> None:
        self.host, self.kube, self.clients = host, MemoryKube(), ClientMap(OpenFence())
        self._ahead = 0.0
        clusters, nodes = self.kube.cache(CLUSTERS), self.kube.cache(VIRTUAL_NODES)
        self.kube.put(CLUSTERS, cluster())
        self.poll = PartitionPoll(clock=self._clock)
        self.reconciler = VirtualNodesReconciler(
            self.kube,
            Recorder(),
            ClusterReader(clusters),
            Observation(nodes, self.clients, self.poll, KubeletAddress("10.0.0.7", 10350)),
            self.poll,
            ReachabilityPoll(Proxy(), None, clusters),
            NodeLeases(self.kube, nodes),
            ["*"],
            clock=self._clock,
        )

    def _clock(self) -> float:
        return time.monotonic() + self._ahead

    async def connect(self) -> None:
        """Connect the Cluster to its Slurm."""
        endpoint = Endpoint(self.host.url, timeout=120.0, poll_interval=0.1, poll_interval_max=0.5)
        token = MintedToken(self.host.jwt_key, "slurm")
        _ = await self.clients.put("uid-slurm", *KEY, endpoint=endpoint, token=token, fingerprint="1")

    async def submit(self, *options: str) -> str:
        """Submit a job; returns its id."""
        return str(await asyncio.to_thread(self.host.sbatch, LONG, *options))

    async def command(self, *words: str) -> None:
        """Run a command of Slurm."""
        _ = await asyncio.to_thread(self.host.run, *words)

    def shown(self) -> dict[str, dict[str, Any]]:
        """Each partition in the status."""
        found = self.kube.find(CLUSTERS, KEY[1], KEY[0])
        assert found is not None
        return {one["name"]: one for one in found.get("status", {}).get("partitions", ())}

    async def until(self, what: str, holds: Callable[[dict[str, dict[str, Any]]], bool]) -> None:
        """Wait for what is shown; before each look so much time has passed that Slurm is asked for all of it."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds(self.shown()):
                    self._ahead += JOBS_EVERY_S
                    _ = await self.reconciler.reconcile(KEY)
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail(f"{what}: {self.shown()}")


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def host(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    """A node with two GPUs, and one without."""
    slurm = SlurmHost(ensure(request.param), extra_conf=CONF)
    slurm.write_file("gres.conf", GRES, 0o444)
    with slurm:
        (port,) = ports.hold(1)
        conf = f"Port={port} CPUs=4 RealMemory=256 Features=all Gres=gpu:h100:2"
        slurm.start_slurmd("g-0", ["slurmd", "-D", "-Z", "-N", "g-0", "-f", "/etc/slurm/slurm.conf", "--conf", conf])
        slurm.add_node("w-0", cpus=2)
        yield slurm


@pytest.fixture
async def site(host: SlurmHost) -> AsyncIterator[Site]:
    made = Site(host)
    await made.connect()
    polling = asyncio.create_task(made.poll.run())
    try:
        yield made
    finally:
        _ = polling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await polling
        await made.clients.close_all()
        host.run("scancel", "--user=root")


def idle(name: str) -> dict[str, Any]:
    """A partition with all nodes and no job."""
    return {"name": name, "state": "UP", "nodes": 2, "cpus": 6, "gpus": 2, "jobs": counts(0)}


def counts(running: int, **waiting: int) -> dict[str, Any]:
    """Jobs of a partition: those that run, and those that wait by their reason."""
    named = [{"reason": reason, "jobs": jobs} for reason, jobs in waiting.items()]
    return {"running": running, "pending": sum(waiting.values()), "waiting": named}


def jobs(shown: dict[str, dict[str, Any]], partition: str) -> dict[str, Any] | None:
    """Jobs of a partition; `None` until Slurm has answered for its jobs, which is later than for its nodes."""
    return shown.get(partition, {}).get("jobs")


def reasons(partition: dict[str, Any]) -> dict[str, int]:
    """Jobs that wait, by the reason."""
    return {one["reason"]: one["jobs"] for one in partition.get("jobs", {}).get("waiting", ())}


async def test_partitions_are_shown_with_their_jobs(site: Site) -> None:
    await site.until("both without a job", lambda shown: shown == {one: idle(one) for one in ("all", "night")})
    running = await site.submit("--gres=gpu:1")
    await site.until("one runs", lambda shown: jobs(shown, "all") == counts(1))
    _ = await site.submit("--exclusive", "--nodes=2")
    _ = await site.submit("--exclusive", "--nodes=2")
    _ = await site.submit("--hold", "--array=0-3")
    _ = await site.submit("--begin=now+1hour")
    _ = await site.submit(f"--dependency=afterok:{running}", "--partition=all,night")
    wanted = {"Resources": 1, "Priority": 1, "JobHeldUser": 1, "BeginTime": 1, "Dependency": 1}
    await site.until("all reasons", lambda shown: reasons(shown.get("all", {})) == wanted)
    shown = site.shown()
    assert (shown["all"]["jobs"]["running"], shown["all"]["jobs"]["pending"]) == (1, 5)
    assert shown["night"]["jobs"] == counts(0, Dependency=1)


@pytest.mark.parametrize(("state", "reason"), [("DOWN", "PartitionDown"), ("INACTIVE", "PartitionInactive")])
async def test_a_partition_that_is_closed_says_so(site: Site, state: str, reason: str) -> None:
    await site.command("scontrol", "update", "PartitionName=night", f"State={state}")
    try:
        await site.until("the state", lambda shown: shown.get("night", {}).get("state") == state)
        await site.command("scontrol", "update", "PartitionName=night", "State=UP")
        _ = await site.submit("--partition=night", "--exclusive", "--nodes=2")
        _ = await site.submit("--partition=night", "--exclusive", "--nodes=2")
        await site.until("one waits", lambda shown: jobs(shown, "night") == counts(1, Resources=1))
        await site.command("scontrol", "update", "PartitionName=night", f"State={state}")
        await site.until("why it waits", lambda shown: jobs(shown, "night") == counts(1, **{reason: 1}))
        assert site.shown()["night"]["state"] == state
    finally:
        await site.command("scontrol", "update", "PartitionName=night", "State=UP")
    await site.until("the state", lambda shown: shown.get("night", {}).get("state") == "UP")
