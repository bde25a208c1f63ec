"""Jobs read one by one show what a list of all jobs shows, in each data parser: also arrays, and other users' texts."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from slurm_client import MintedToken, SlurmClient, errors
from slurm_client.connection.intake import Intake
from slurm_client.models import Job, JobSpec
from tests.integration.slurm_client.targets import until

if TYPE_CHECKING:
    from tests.integration.slurm_client.targets import Target

pytestmark = pytest.mark.long

LEFT_OUT = {
    *("dependency", "comment", "admin_comment", "system_comment", "command", "submit_line", "container"),
    *("container_id", "standard_input", "standard_output", "standard_error"),
}
MOVING = {"start_time", "end_time", "state_reason", "state_description", "scheduled_nodes", "last_sched_evaluation"}
"""What slurmctld may change in a job between two answers."""


async def test_a_list_that_is_too_large_is_read_one_by_one(target: Target, version: str) -> None:
    array = await target.start_array("w-1", "0-5%2")
    name = await target.add_node()
    running = await target.start_job(name)
    async with target.client(version) as slurm:
        spec = JobSpec(
            script="#!/bin/sh\n", dependency=f"afterany:{running}", name="n" * 500, comment="c" * 1000, hold=True
        )
        jobs = [(await slurm.submit_job(spec)).id for _ in range(40)]
        before = slurm.bytes_received
        whole = {job.id: job for job in await slurm.jobs()}
        intake = Intake((slurm.bytes_received - before) // 2)
    async with (
        target.client(version) as slurm,
        SlurmClient(target.url, MintedToken(target.key, "root"), api_version=version, intake=intake) as small,
    ):
        with pytest.raises(errors.TooLarge):
            await small.jobs()
        # What slurmctld has forgotten between the two questions does not count as what it does not say.
        with pytest.raises(errors.NotFound):
            await slurm.job_parts(2**30)
        found = {job.id: job for job in await small.all_jobs()}
        assert "jobs" in small._session.oversized
        unfinished = {number for number, job in whole.items() if not job.is_finished}
        assert {number for number, job in found.items() if not job.is_finished} == unfinished >= {array, running, *jobs}
        names = {one.name for one in fields(Job)} - LEFT_OUT - MOVING
        differing = {
            (number, one)
            for number in unfinished
            for one in names
            if getattr(whole[number], one) != getattr(found[number], one)
        }
        assert not differing
        assert not any(getattr(job, one) for job in found.values() for one in LEFT_OUT)
        # States are the same in both lists: by them it is decided what is read.
        holding = {number for number in unfinished if whole[number].holds_nodes}
        assert {job.id for job in await small.all_jobs(holding_nodes=True)} == holding >= {running}
        # A watch takes the same way.
        async with small.watch_jobs() as reader:
            assert (await reader.initial()).keys() >= {str(number) for number in unfinished}
            await slurm.cancel_jobs([str(one) for one in jobs])

            async def ended() -> bool:
                return all(small.job_watch.objects[str(one)].is_finished for one in jobs)

            small.job_watch.poke()
            await until(ended)
            assert small.job_watch.status.error is None
        await slurm.cancel_job(running)
        await slurm.cancel_job(array)

        async def is_free() -> bool:
            return not await slurm.jobs_on_nodes(["w-1"])

        # For the next test.
        await until(is_free)
