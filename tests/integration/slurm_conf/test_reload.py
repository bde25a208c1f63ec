"""How slurmctld gets a reconfigure, on a real one that runs as in its pod and is slow to answer."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typing_extensions import override

from hack.images import rootfs
from hack.machine import ports
from slinky_operator.cluster.actions import Reload
from slinky_operator.cluster.memory.rollout import Loaded
from slinky_operator.cluster.rollout.reload import reload
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slurm_client import MintedToken, SlurmClient
from tests.support.slurm_host import SlurmHost

TOLD = "Processing Reconfiguration Request"

SERIES = pytest.mark.parametrize("series", ["24.11", "26.05"])


_KEEP = """
runs() { grep -qs slurmctld /proc/[0-9]*/comm; }
slurmctld || exit
while runs || { sleep 1; runs; }; do sleep 0.2; done
"""
"""Holds the namespaces for as long as there is a slurmctld. Its PID file would not do to tell: a slurmctld that
reconfigures hands over to a new process, and the file is empty, or names the old one, for a moment."""


class Daemon(SlurmHost):
    """A slurmctld that runs as a daemon, as in its pod: it answers a reconfigure only when it has read its files."""

    @override
    def start_slurmctld(self) -> None:
        self.spawn("slurmctld", ["sh", "-c", _KEEP])
        self.wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False).stdout, "slurmctld answers")

    def must_run(self) -> None:
        """Fail with the logs when a daemon has ended."""
        ended = [one.name for one in self.daemons.values() if one.process.poll() is not None]
        assert not ended, f"{ended} ended\n{self.logs()}"

    @property
    def log(self) -> Path:
        """Where slurmctld's words go, which has no standard error as a daemon."""
        return self.shared / "slurmctld" / "log"

    def told(self) -> int:
        """How often slurmctld was asked to read its files."""
        return self.log.read_text(errors="replace").count(TOLD)


def host(series: str) -> Daemon:
    found = Daemon(rootfs.ensure(series))
    write(found)
    return found


def write(found: Daemon, extra: str = "") -> None:
    found.write_conf(extra)
    conf = found.configuration / "slurm.conf"
    text = conf.read_text().replace("SlurmctldLogFile=/dev/stderr", "SlurmctldLogFile=/var/spool/slurmctld/log")
    conf.write_text(text)


def change(number: str, **partitions: str) -> dict[str, Any]:
    return {"pod_uid": "pod", "change": number, "partitions": {"all": "ALL", **partitions}}


async def until(host: Daemon, client: ClusterClient, wanted: dict[str, Any], before: Loaded | None = None) -> Loaded:
    """Look again and again, as passes do, as long as nothing is known."""
    said = await reload(client, Reload(**wanted, before=before), time.monotonic)
    while said.lost:
        host.must_run()
        await asyncio.sleep(0.2)
        said = await reload(client, Reload(**wanted, before=said), time.monotonic)
    return said


@pytest.mark.timeout(600)
@SERIES
async def test_a_slurmctld_that_looks_for_names_of_nodes_is_told_once_and_waited_for(series: str) -> None:
    with host(series) as slurmctld:
        async with SlurmClient(slurmctld.url, token=MintedToken(slurmctld.jwt_key)) as slurm:
            client = cast("ClusterClient", SimpleNamespace(client=slurm, hurry=lambda: None))
            write(slurmctld, "NodeName=nowhere CPUs=1\nPartitionName=late Nodes=ALL State=UP\n")
            first = await reload(client, Reload(**change("1", late="ALL")), time.monotonic)
            assert first.lost
            assert first.asked is not None, "it looks up a name, ten seconds long, and answers nothing"
            said = await until(slurmctld, client, change("1", late="ALL"), first)
            assert said.proven, said.why
            assert slurmctld.told() == 1


@pytest.mark.timeout(600)
@SERIES
async def test_nodes_of_the_future_cost_nothing_and_come_when_they_have_an_address(series: str) -> None:
    line = "NodeName=later CPUs=1 {}\nPartitionName=late Nodes=later State=UP\n"
    with host(series) as slurmctld:
        async with SlurmClient(slurmctld.url, token=MintedToken(slurmctld.jwt_key)) as slurm:
            client = cast("ClusterClient", SimpleNamespace(client=slurm, hurry=lambda: None))
            write(slurmctld, line.format("State=FUTURE"))
            said = await until(slurmctld, client, change("1", late="later"))
            assert said.proven, said.why
            assert not list(await slurm.nodes())
            hosts = slurmctld.folder / "etc" / "hosts"
            hosts.write_text(f"{hosts.read_text()}127.0.0.1 later\n")
            write(slurmctld, line.format(""))
            said = await until(slurmctld, client, change("2", late="later"))
            assert said.proven, said.why
            assert [node.name for node in await slurm.nodes()] == ["later"]
            assert slurmctld.told() == 2
            assert "Unable to resolve" not in slurmctld.log.read_text(errors="replace")


@SERIES
async def test_a_partition_of_node_sets_and_nodes_is_known_for_what_it_is(series: str) -> None:
    (port,) = ports.hold(1)
    lines = [
        "NodeSet=compute Feature=compute",
        "NodeSet=big Feature=big",
        f"NodeName=metal-[1,3] NodeAddr=127.0.0.[1,3] Port={port} CPUs=1",
        "PartitionName=both Nodes=compute,big,metal-[1,3]",
        "PartitionName=metal Nodes=metal-[1,3]",
    ]
    with host(series) as slurmctld:
        async with SlurmClient(slurmctld.url, token=MintedToken(slurmctld.jwt_key)) as slurm:
            client = cast("ClusterClient", SimpleNamespace(client=slurm, hurry=lambda: None))
            write(slurmctld, "\n".join(lines))
            wanted = change("1", both="compute,big,metal-[1,3]", metal="metal-[1,3]")
            wanted["node_sets"] = frozenset({"ALL", "all", "compute", "big"})
            assert (await until(slurmctld, client, wanted)).proven
