"""A hostile program in the place of the agent beside a healthy Cluster of another namespace: the real process."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.resources import NAMESPACES, SERVICEACCOUNTS
from slinky_operator.slurm.naming import AGENT_PORT
from slurm_client.testing import FakeSlurmrestd
from tests.integration.cluster.conftest import Bench, Kubelet, live
from tests.support.control_plane import ControlPlane
from tests.support.hostile import SECRET, HostileServer
from tests.support.operator_process import operator

MIB = 2**20

WAYS = ("endless-list", "endless-blanks", "bomb", "drip", "deep", "tiny-chunks", "two-gigabytes", "empty-lists", "ssh")
"""How the hostile one answers, in turn."""

LOOKS = len(WAYS)
"""How often it is asked at least."""

GROWTH = 64
"""MiB that the process may take more at most than before; one bomb has 30 when unpacked, and an endless answer has no
end."""

SERVERS = """
from slinky_operator.cluster import controller
servers = {servers}
made = controller.ClusterReconciler.__init__
def server_of(cluster, caches):
    return servers[cluster.namespace]
made.__kwdefaults__ = {{**(made.__kwdefaults__ or {{}}), "server_of": server_of}}
"""
"""The API server gives Services addresses at which nothing listens here; those of the agents are the real ones."""


def addresses() -> tuple[str, str]:
    """Two of this host that no other test uses: agents have one port."""
    stem = f"127.{1 + os.getpid() % 250}.{1 + os.getpid() // 250 % 250}"
    return f"{stem}.2", f"{stem}.3"


@asynccontextmanager
async def site(
    kube: KubeClient, name: str, address: str, folder: Path, slurm: FakeSlurmrestd
) -> AsyncIterator[Kubelet]:
    """A namespace with what stands for its kubelet."""
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    await kube.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, name)
    await asyncio.to_thread(folder.mkdir)
    kubelet = Kubelet(kube, name, folder, slurm)
    kubelet.address = address
    async with asyncio.TaskGroup() as group:
        task = group.create_task(kubelet.run())
        yield kubelet
        task.cancel()


def peak(process: int) -> float:
    """MiB that a process has taken at most since it was last forgotten."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def forget_peak(process: int) -> float:
    """Start a new measurement of a process's peak memory; returns what it takes now."""
    Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")
    return peak(process)


@pytest.mark.timeout(300)
async def test_a_hostile_agent_costs_no_memory_and_holds_up_no_cluster_of_another_namespace(
    kube: KubeClient, control_plane: ControlPlane, slurm: FakeSlurmrestd, tmp_path: Path
) -> None:
    stem = f"agents-{uuid.uuid4().hex[:8]}"
    mine, theirs = stem, f"{stem}-hostile"
    here, there = addresses()
    async with (
        HostileServer(there, AGENT_PORT, WAYS) as hostile,
        site(kube, mine, here, tmp_path / "mine", slurm) as healthy,
        site(kube, theirs, there, tmp_path / "theirs", slurm) as other,
        operator(
            control_plane.kubeconfig,
            mine,
            tmp_path,
            f"--namespaces={mine},{theirs}",
            "--no-watch-nodes",
            first=SERVERS.format(servers={mine: slurm.url, theirs: "http://127.0.0.1:9"}),
        ) as process,
    ):
        healthy.start_agent(AGENT_PORT)
        # Nobody mounts its files: its agent is asked for them again and again.
        other.mounts = False
        bench = Bench(kube, mine, slurm, healthy, control_plane.kubeconfig)
        await bench.create()
        await bench.serving()
        before = forget_peak(process.process.pid)
        attacked = Bench(kube, theirs, slurm, other, control_plane.kubeconfig)
        await attacked.create()
        number = 0
        while hostile.asked.total() < LOOKS:
            generation = await bench.edit({"extraConf": f"KillWait={30 + number % 60}"})
            await bench.until(partial(live, generation))
            assert process.process.returncode is None
            number += 1
        assert set(WAYS) <= hostile.asked.keys()
        within = peak(process.process.pid)
        print(f"{before:.0f} MiB before, {within:.0f} with", number, hostile.asked)  # noqa: T201
        assert within < before + GROWTH, f"{before:.0f} MiB before, {within:.0f} MiB with"
        found = await attacked.cluster()
        assert "the agent beside slurmctld cannot be asked" in str(found["status"])
        assert SECRET not in str(found["status"])
        assert not any(SECRET in line or "Traceback" in line for line in process.said())
