"""Queries and writes of jobs: real Slurm of both releases and the fake must agree, in each data parser."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from slurm_client import errors, wire
from slurm_client.models import INFINITE, JobSpec
from tests.integration.slurm_client.targets import RealTarget, until

if TYPE_CHECKING:
    from slurm_client.models import Job
    from tests.integration.slurm_client.targets import Target

SLEEP = "#!/bin/sh\nexec sleep 600\n"


async def test_unchanged_jobs_are_not_mistaken_for_none(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        name = await target.add_node()
        job_id = await target.start_job(name)

        async def unchanged() -> bool:
            listing = await slurm.jobs()
            assert job_id in {job.id for job in listing}
            return await slurm.jobs(listing.last_update) is None

        if version < "v0.0.42":
            assert not await unchanged()
        else:
            await until(unchanged)
        await slurm.cancel_job(job_id)


async def test_a_job_is_submitted_changed_and_cancelled(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        spec = JobSpec(
            script=SLEEP,
            name="conformance",
            partition="all",
            required_nodes=["w-1"],
            time_limit=timedelta(minutes=5),
            comment="first",
            standard_output="/dev/null",
        )
        submitted = await slurm.submit_job(spec)

        async def running() -> bool:
            return (await slurm.job(submitted.id)).is_running

        await until(running)
        job = await slurm.job(submitted.id)
        assert (job.name, job.partition, job.user, job.comment) == ("conformance", "all", "root", "first")
        assert job.nodes == ("w-1",)
        assert job.time_limit == timedelta(minutes=5)
        assert job.submit_time is not None
        assert job.start_time is not None
        assert job.holds_nodes
        states = {entry.id: entry.state for entry in await slurm.job_states()}
        assert states[str(submitted.id)].base == "RUNNING"
        await slurm.update_job(submitted.id, JobSpec(comment="second", time_limit=INFINITE))
        job = await slurm.job(submitted.id)
        assert job.comment == "second"
        assert job.time_limit is INFINITE
        await slurm.cancel_job(submitted.id)

        async def finished() -> bool:
            return (await slurm.job(submitted.id)).is_finished

        await until(finished)
        assert (await slurm.job(submitted.id)).state.base == "CANCELLED"
        await slurm.cancel_job(submitted.id)
        with pytest.raises(errors.InvalidTransition) as refused:
            await slurm.update_job(submitted.id, JobSpec(time_limit=timedelta(minutes=1)))
        assert refused.value.number == 2084


async def test_a_held_job_waits_until_it_is_released(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        submitted = await slurm.submit_job(JobSpec(script=SLEEP, required_nodes=["w-1"], hold=True))
        job = await slurm.job(submitted.id)
        assert job.is_pending
        assert job.hold
        assert job.state_reason == "JobHeldUser"
        await slurm.release_job(submitted.id)

        async def running() -> bool:
            return (await slurm.job(submitted.id)).is_running

        await until(running)
        await slurm.cancel_jobs([submitted.id])


async def test_many_jobs_are_cancelled_in_one_call(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        jobs = [(await slurm.submit_job(JobSpec(script=SLEEP, hold=True, name="many"))).id for _ in range(3)]
        before = slurm.calls
        results = await slurm.cancel_jobs([*jobs, 999_999])
        assert slurm.calls == before + 1
        assert [result.id for result in results] == [*map(str, jobs), "999999"]
        (failed,) = [result for result in results if result.error is not None]
        assert failed.error is not None
        assert (failed.id, failed.error.number) == ("999999", 2017)

        async def finished() -> bool:
            return all([(await slurm.job(job_id)).is_finished for job_id in jobs])

        await until(finished)
        names = [f"by-{target.name()}" for _ in range(2)]
        named = [(await slurm.submit_job(JobSpec(script=SLEEP, hold=True, name=name))).id for name in names]
        # slurmrestd says nothing of those that went well.
        results = await slurm.cancel_jobs(name=names[0], states=["pending"])
        assert [(result.id, result.error) for result in results] == [(str(named[0]), None)]
        # Of those that are named and have ended, it speaks even where the filter leaves them out.
        results = await slurm.cancel_jobs(named, name=names[1])
        told = [(result.id, result.error.number if result.error else None) for result in results]
        assert told == [(str(named[1]), None), (str(named[0]), 2021)]
        assert await slurm.cancel_jobs(name=names[1]) == ()


async def test_bad_submissions_are_refused(target: Target, version: str) -> None:
    async with target.client(version) as slurm:
        with pytest.raises(errors.NotFound) as unknown:
            await slurm.submit_job(JobSpec(script=SLEEP, partition="nosuch"))
        assert unknown.value.name == "ESLURM_INVALID_PARTITION_NAME"
        with pytest.raises(errors.InvalidRequest):
            await slurm.submit_job(JobSpec(name="no script"))


async def test_a_bad_signal_or_state_ends_no_job_and_a_good_signal_is_sent(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    async with target.client(version) as slurm:
        # Were these sent, slurmrestd would report an error and end the job.
        with pytest.raises(errors.InvalidRequest):
            await slurm.cancel_job(job_id, signal="NOSUCH")
        with pytest.raises(errors.InvalidRequest):
            await slurm.cancel_jobs(states=["RUNING"])
        with pytest.raises(errors.InvalidRequest):
            await slurm.cancel_jobs([], user="root")
        # Each way to write one; none of these ends a process.
        for signal in ("CONT", "SIGCONT", "cont", "18", "URG"):

            async def sent(signal: str = signal) -> bool:
                try:
                    await slurm.cancel_job(job_id, signal=signal)
                except errors.InvalidTransition:
                    # Its first step is not there yet.
                    return False
                return True

            await until(sent)
        assert (await slurm.job(job_id)).is_running
        await slurm.cancel_job(job_id)


async def test_one_task_of_an_array_is_read_changed_and_ended(target: Target, version: str) -> None:
    array = await target.start_array("w-1")
    async with target.client(version) as slurm:
        assert {job.alone for job in await slurm.job_parts(array)} == {f"{array}_0", f"{array}_1"}
        assert (await slurm.job(array)).id == array
        for task in (0, 1):
            assert (await slurm.job(f"{array}_{task}")).array_task_id == task
        with pytest.raises(errors.NotFound):
            await slurm.job(f"{array}_7")
        with pytest.raises(errors.NotFound):
            await slurm.job(f"{array}+1")
        found = await slurm.job_watch.refresh(str(array))
        assert [job and job.id for job in found.values()] == [array]
        await slurm.update_job(f"{array}_0", JobSpec(comment="zero"))
        assert {job.alone: job.comment for job in await slurm.job_parts(array)} == {
            f"{array}_0": "zero",
            f"{array}_1": "",
        }
        await slurm.cancel_jobs([f"{array}_0"])

        async def ended() -> bool:
            return (await slurm.job(f"{array}_0")).is_finished

        await until(ended)
        assert (await slurm.job(f"{array}_1")).is_running
        await slurm.cancel_job(array)


async def test_tasks_that_wait_are_ended_without_those_that_run(target: Target, version: str) -> None:
    array = await target.start_array("w-1", "0-5%2")
    async with target.client(version) as slurm:
        waiting = await slurm.job(array)
        assert waiting.is_pending
        assert waiting.array_tasks.startswith("2-5")
        if isinstance(target, RealTarget):
            await slurm.cancel_job(f"{array}_3")
            waiting = await slurm.job(array)
            assert waiting.array_tasks.startswith("2,4-5")
        assert (await slurm.job(f"{array}_4")).alone == f"{array}_4"
        with pytest.raises(errors.InvalidRequest, match="waits together"):
            await slurm.update_job(f"{array}_4", JobSpec(comment="x"))
        await slurm.cancel_job(waiting)

        async def ended() -> bool:
            return not any(job.is_pending for job in await slurm.job_parts(array))

        await until(ended)
        assert sum(job.is_running for job in await slurm.job_parts(array)) == 2
        await slurm.cancel_job(array)


async def test_a_task_of_an_array_is_ended_without_the_others(target: Target, version: str) -> None:
    array = await target.start_array("w-1")
    async with target.client(version) as slurm:

        async def tasks() -> dict[bool, Job]:
            """The task that has the id of the array, and the other one."""
            return {job.id == array: job for job in await slurm.jobs() if job.array_job_id == array}

        async def ended() -> bool:
            return (await tasks())[True].is_finished

        own = (await tasks())[True]
        assert own.alone == f"{array}_{own.array_task_id}"
        if "get_job_requeue" in {each.operation for each in wire.endpoints(version)}:
            await slurm.requeue_job(own)

            async def restarted() -> bool:
                return (await tasks())[True].restarts == 1

            await until(restarted)
            assert (await tasks())[False].restarts == 0
        await slurm.cancel_job((await tasks())[True])
        await until(ended)
        assert (await tasks())[False].is_running

        # The id alone is that of the array.
        await slurm.cancel_job(array)

        async def all_ended() -> bool:
            return all(job.is_finished for job in (await tasks()).values())

        await until(all_ended)


async def test_requeue_where_the_parser_has_it(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    async with target.client(version) as slurm:
        if "get_job_requeue" not in {each.operation for each in wire.endpoints(version)}:
            with pytest.raises(errors.NotSupported) as refused:
                await slurm.requeue_job(job_id)
            assert refused.value.available_in == wire.parsers_with("get_job_requeue")
        else:
            await slurm.requeue_job(job_id)

            async def restarted() -> bool:
                return (await slurm.job(job_id)).restarts == 1

            await until(restarted)
            with pytest.raises(errors.NotFound):
                await slurm.requeue_job(999_999)
        await slurm.cancel_job(job_id)


async def test_layout_of_a_job_where_the_parser_has_it(target: Target, version: str) -> None:
    name = await target.add_node()
    job_id = await target.start_job(name)
    async with target.client(version) as slurm:
        if version < "v0.0.44":
            with pytest.raises(errors.NotSupported):
                await slurm.job_resources(job_id)
        else:
            (layout,) = await slurm.job_resources(job_id)
            assert layout.node == name
            assert layout.core_bitmap == "0x1"
        await slurm.cancel_job(job_id)
