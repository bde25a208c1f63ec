"""The details of a job are what slurmctld says of it: compared with ``scontrol show job``, and with the fake."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from slurm_client.models import JobSpec
from tests.integration.slurm_client.targets import UNTIL_TOLD, RealTarget, until

if TYPE_CHECKING:
    from slurm_client.models import Job, JobDetails
    from tests.integration.slurm_client.targets import Target

SPEC = JobSpec(
    script=UNTIL_TOLD,
    name="details",
    required_nodes=["w-1"],
    tasks=2,
    time_limit=timedelta(minutes=5),
    working_directory="/tmp",
    standard_output="/dev/null",
    mail_user="alice@example.org",
    mail_type=["END", "FAIL"],
    sockets_per_node=2,
    threads_per_core=1,
    delay_boot=timedelta(seconds=90),
    network="sn_all",
    profile=["TASK"],
)


@pytest.fixture
def shown(target: Target) -> dict[str, str]:
    """What ``scontrol show job`` said last; empty for the fake, which has no scontrol."""
    return {}


async def scontrol(target: Target, job_id: int, shown: dict[str, str]) -> None:
    """Ask scontrol about a job."""
    if isinstance(target, RealTarget):
        told = await asyncio.to_thread(target.host.run, "scontrol", "show", "job", "-d", str(job_id))
        shown.clear()
        shown.update(re.findall(r"([A-Za-z_:/]+)=(\S*)", told.stdout))


def check(job: Job, shown: dict[str, str], version: str) -> None:
    """Compare the details of a job that was given w-1 with what scontrol shows, and with what was asked for."""
    details = job.details
    assert (details.mail_user, details.mail_types) == ("alice@example.org", frozenset({"END", "FAIL"}))
    assert (details.sockets_per_node, details.threads_per_core, details.cores_per_socket) == (2, 1, None)
    assert (details.delay_boot, details.network, details.profile) == (
        timedelta(seconds=90),
        "sn_all",
        frozenset({"TASK"}),
    )
    assert (details.core_spec, details.thread_spec, details.tasks_per_core) == (None, None, None)
    assert (details.reboot, details.cron, details.failed_node, details.association_id) == (False, "", "", None)
    assert bool(details.sluid) == (version >= "v0.0.44")
    resources = details.resources
    assert resources is not None
    assert (resources.node_list, resources.node_count, resources.cpus) == ("w-1", 1, 2)
    (node,) = resources.nodes
    assert (node.name, node.cpus) == ("w-1", None if version == "v0.0.40" else 2)
    assert sum(len(socket.cores) for socket in node.sockets) == 2
    if shown:
        compare(details, shown)
        assert shown["NodeList"] == resources.node_list
        assert shown["Nodes"] == node.name
        assert int(shown["Mem"]) == node.memory_mib


def compare(details: JobDetails, shown: dict[str, str]) -> None:
    """Compare what scontrol calls by other names."""
    billing = re.search(r"billing=(\d+)", shown["AllocTRES"])
    assert billing is not None
    assert details.billable_tres == float(billing[1])
    assert shown["AllocNode:Sid"].partition(":")[0] == details.allocating_node
    assert shown["MailUser"] == details.mail_user
    assert {*shown["MailType"].split(",")} == details.mail_types
    assert shown["Socks/Node"] == str(details.sockets_per_node)
    assert shown["ReqB:S:C:T"].rpartition(":")[2] == str(details.threads_per_core)
    assert shown["DelayBoot"] == "00:01:30"
    assert shown["Network"] == details.network
    assert shown["CoreSpec"] == "*"
    assert shown["Reboot"] == "0"
    if details.sluid:
        assert shown.get("SLUID", details.sluid) == details.sluid


async def test_the_details_of_a_job_while_it_runs_and_after_its_end(
    target: Target, version: str, shown: dict[str, str]
) -> None:
    async with target.client(version) as slurm:
        submitted = await slurm.submit_job(SPEC)

        async def is_running() -> bool:
            return (await slurm.job(submitted.id)).is_running

        async def is_finished() -> bool:
            return (await slurm.job(submitted.id)).is_finished

        try:
            await until(is_running)
            running = await slurm.job(submitted.id)
            await scontrol(target, submitted.id, shown)
            check(running, shown, version)
            (listed,) = [job for job in await slurm.jobs(details=True) if job.id == submitted.id]
            assert listed.details == running.details
            await target.end_job(submitted.id)
            await until(is_finished)
        finally:
            await slurm.cancel_job(submitted.id)
        finished = await slurm.job(submitted.id)
        await scontrol(target, submitted.id, shown)
        check(finished, shown, version)
        assert finished.succeeded


async def test_a_job_that_waits_has_been_given_nothing(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        submitted = await slurm.submit_job(JobSpec(script=UNTIL_TOLD, hold=True, cpu_frequency="HighM1"))
        try:
            details = (await slurm.job(submitted.id)).details
        finally:
            await slurm.cancel_job(submitted.id)
    assert (details.resources, details.billable_tres, details.mail_types) == (None, None, frozenset())
    assert (details.cpu_frequency_minimum, details.cpu_frequency_maximum) == (None, "highm1")
    assert details.cpu_frequency_governor == "userspace"
