"""A job on two nodes of which one is lost, on real daemons of both releases: why the record of that one stays.

The job is to run again, and still ends on the other node, where its epilog waits. Slurm shows it on that one alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from hack.images.rootfs import ensure
from slinky_operator.slurm.nodes import node_references
from slurm_client import MintedToken, SlurmClient
from slurm_client.models import Job
from tests.support.references import RELEASES
from tests.support.slurm_host import SlurmHost

pytestmark = pytest.mark.timeout(300)

EPILOG = "#!/bin/sh\ntouch /var/spool/ending\nuntil [ -e /var/spool/go ]; do sleep 0.1; done\n"
STAYS, LOST = "w-0", "w-1"
NOT_FOUND = "Invalid nodes (w-[0-1])"
"""What slurmctld logs of a job whose nodes it does not find when it starts."""


@pytest.fixture(params=RELEASES)
def slurm(request: pytest.FixtureRequest) -> Iterator[SlurmHost]:
    host = SlurmHost(ensure(request.param), extra_conf="Epilog=/etc/slurm/epilog")
    host.write_file("epilog", EPILOG)
    with host:
        yield host


def lose_a_node(host: SlurmHost) -> int:
    """Lose one of the two nodes of a job, which is requeued; returns its number."""
    for name in (STAYS, LOST):
        host.add_node(name)
    job = host.sbatch("[ -e /var/spool/go ] || sleep 600", "--nodes=2", "--requeue")
    host.wait_for(lambda: host.job_state(job) == "RUNNING", "the job runs")
    host.stop(LOST, kill=True)
    host.run("scontrol", "update", f"NodeName={LOST}", "State=DOWN", "Reason=lost")
    host.wait_for(lambda: shown(host, job).nodes == (STAYS,), "the job ends on the other node")
    # A slurmd that is reconfigured before it has ended the job's processes leaves them, and refuses to run it again.
    host.wait_for((host.shared / "ending").exists, "its processes there have ended")
    return job


def shown(host: SlurmHost, job: int) -> Job:
    """The job as slurmrestd shows it."""

    async def ask() -> Job:
        async with SlurmClient(host.url, MintedToken(host.jwt_key, "slurm")) as client:
            return next(one for one in await client.jobs() if one.id == job)

    return asyncio.run(ask())


def log(host: SlurmHost) -> str:
    """What slurmctld has logged."""
    return (host.folder / "slurmctld.log").read_text(errors="replace")


def port_of(host: SlurmHost, node: str) -> int:
    return int(host.run("scontrol", "show", "node", node).stdout.split(" Port=")[1].split()[0])


def test_while_the_job_ends_its_lost_node_counts_as_held(slurm: SlurmHost) -> None:
    job = lose_a_node(slurm)
    seen, port = shown(slurm, job), port_of(slurm, LOST)
    assert seen.state.base == "PENDING"
    assert str(job) in str(node_references.find([seen], (), {LOST}))
    slurm.run("scontrol", "reconfigure")
    slurm.wait_for(lambda: f"JobId={job} in completing state" in log(slurm), "slurmctld finds its nodes")
    assert NOT_FOUND not in log(slurm)
    (slurm.shared / "go").touch()
    slurm.wait_for(lambda: not node_references.find([shown(slurm, job)], (), {LOST}), "nothing holds the record")
    # As in a pod that is made again.
    slurm.add_node(LOST, port=port)

    def has_run_again() -> bool:
        # Slurm itself waits for minutes before it runs a job again.
        slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
        return slurm.job_state(job) == "COMPLETED"

    slurm.wait_for(has_run_again, "the job has run again")


def test_without_the_record_slurmctld_does_not_find_the_nodes_of_the_job(slurm: SlurmHost) -> None:
    """If this fails, Slurm finds them, and no record has to stay any more."""
    lose_a_node(slurm)
    slurm.run("scontrol", "delete", f"NodeName={LOST}")
    slurm.run("scontrol", "reconfigure")
    slurm.wait_for(lambda: NOT_FOUND in log(slurm), "slurmctld does not find the nodes of the job")
