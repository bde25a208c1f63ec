"""slurmctld of both releases, killed with an older state on disk: what it forgets, and what slurmds show of it.

The state is copied before a job ends and a node registers, and put back after slurmctld was killed: what is on disk is
then what a slurmctld leaves that is killed between two saves.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hack.images.rootfs import ensure
from slinky_operator.nodeset.slurm_nodes import running_steps
from slinky_operator.nodeset.slurm_nodes.running_steps import StepsSeen
from slinky_operator.slurm.connection import slurmd_status
from slinky_operator.slurm.connection.signed_messages import SharedKey
from slinky_operator.slurm.connection.slurmd_status import NoStatus, SlurmdStatus
from slurm_client import MintedToken, SlurmClient
from slurm_client.models import Job
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

MINUTES = timedelta(minutes=20)
WAIT = "until [ -e /var/spool/{} ]; do sleep 0.1; done"


@pytest.fixture(params=["24.11", "26.05"])
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    # Otherwise slurmctld itself misses the job when its node registers, and requeues it.
    with SlurmHost(ensure(request.param), extra_conf="BatchStartTimeout=3600") as host:
        yield host


def port_of(host: SlurmHost, node: str) -> int:
    return int(host.run("scontrol", "show", "node", node).stdout.split(" Port=")[1].split()[0])


def asked(host: SlurmHost, port: int, key: bytes = b"") -> SlurmdStatus:
    shared = SharedKey("", key or (host.configuration / "slurm.key").read_bytes())
    return asyncio.run(slurmd_status.ask("127.0.0.1", port, shared, time.time()))


def shown(host: SlurmHost) -> dict[int, Job]:
    async def jobs() -> dict[int, Job]:
        async with SlurmClient(host.url, MintedToken(host.jwt_key, "slurm")) as client:
            return {job.id: job for job in await client.jobs()}

    return asyncio.run(jobs())


def after_minutes(host: SlurmHost, port: int, now: datetime, *jobs: int) -> StepsSeen:
    """Two answers, as if the first had come long before."""
    first = running_steps.after(None, asked(host, port), jobs, now - running_steps.SETTLED)
    return running_steps.after(first, asked(host, port), jobs, now)


def copy(folder: Path, to: Path) -> None:
    """Copy a folder with the owners of its files."""
    subprocess.run(["cp", "-a", folder, to], check=True)


def killed_with(host: SlurmHost, earlier: str) -> None:
    """Kill slurmctld, put an earlier state in its place and start it."""
    host.stop("slurmctld", kill=True)
    state = host.shared / "slurmctld"
    shutil.rmtree(state)
    copy(host.shared / earlier, state)
    host.start_slurmctld()


def test_slurmds_show_what_a_killed_slurmctld_has_forgotten(slurm: SlurmHost) -> None:
    host = slurm
    host.add_node("w-0", cpus=2, extra="ns/a", instance_id="u0")
    over, alive = (host.sbatch(WAIT.format(name), "-w", "w-0") for name in ("over", "alive"))
    host.wait_for(lambda: {host.job_state(job) for job in (over, alive)} == {"RUNNING"}, "both jobs run")
    host.wait_saved(alive)
    copy(host.shared / "slurmctld", host.shared / "earlier")
    host.add_node("w-1", extra="ns/a", instance_id="u1")
    host.add_node("w-2", extra="ns/a", instance_id="u2")
    ports = {name: port_of(host, name) for name in ("w-0", "w-1", "w-2")}
    lost = host.sbatch(WAIT.format("lost"), "-w", "w-1")
    host.wait_for(lambda: host.job_state(lost) == "RUNNING", "a job runs that will be forgotten")
    (host.shared / "over").touch()
    host.wait_for(lambda: host.job_state(over) == "COMPLETED", "the job has ended")
    # Its slurmstepd tells slurmctld of the end, and then ends.
    host.wait_for(lambda: asked(host, ports["w-0"]).jobs == {alive}, "slurmd has the other job only")

    killed_with(host, "earlier")
    host.wait_for(lambda: host.node_is_up("w-0"), "the node answers again")
    jobs, later = shown(host), datetime.now(UTC) + MINUTES
    assert {job: one.state.base for job, one in jobs.items()} == {over: "RUNNING", alive: "RUNNING"}
    assert "w-1" not in host.run("scontrol", "show", "nodes").stdout

    # The end, and only that, is proven by the slurmd of its node.
    seen = after_minutes(host, ports["w-0"], later, over, alive)
    assert running_steps.gone(jobs[over], [seen], later) is not None
    assert running_steps.gone(jobs[alive], [seen], later) is None
    # Of the forgotten nodes one has a job, which Slurm does not know.
    assert after_minutes(host, ports["w-1"], later).jobs == {lost}
    assert not running_steps.is_idle(after_minutes(host, ports["w-1"], later), later)
    assert running_steps.is_idle(after_minutes(host, ports["w-2"], later), later)
    with pytest.raises(NoStatus):
        asked(host, ports["w-2"], b"x" * 64)

    # The question has changed nothing: neither node has registered, no job has ended.
    assert "w-2" not in host.run("scontrol", "show", "nodes").stdout
    assert asked(host, ports["w-1"]).jobs == {lost}
    host.run("scancel", str(over))
    host.wait_for(lambda: host.job_state(over) == "CANCELLED", "scancel ends what has ended")
    assert host.job_state(alive) == "RUNNING"
    # A new slurmd registers, as that of a new pod does.
    host.stop("w-2")
    host.add_node("w-2", extra="ns/a", instance_id="u3")
