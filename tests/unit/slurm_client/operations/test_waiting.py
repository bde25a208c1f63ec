"""Waiting for the end of jobs on the fake: what it has seen, what it has missed, and what is no end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from slurm_client import errors
from slurm_client.decode import endings
from slurm_client.decode.database import history
from slurm_client.models import ExitCode, FinishedJob, JobId, JobState
from tests.unit.slurm_client.clients import client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from slurm_client import SlurmClient
    from slurm_client.testing import FakeSlurmrestd

OFTEN: dict[str, float] = {"first_pause": 0.001, "longest_pause": 0.002}


@asynccontextmanager
async def waiting(slurm: SlurmClient, job: Any, **options: Any) -> AsyncIterator[asyncio.Task[FinishedJob]]:
    """Wait for a job in the background, from after the first look on."""
    task = asyncio.create_task(slurm.wait_job(job, **{**OFTEN, **options}))
    await looks(slurm, task)
    yield task
    if not task.done():
        task.cancel()


async def looks(slurm: SlurmClient, task: asyncio.Task[FinishedJob], times: int = 2) -> None:
    """Return when the states have been asked for so often since."""
    before = slurm.calls
    await until(lambda: task.done() or slurm.calls > before + times)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing signals what a server has seen
        await asyncio.sleep(0.001)


def array(fake: FakeSlurmrestd) -> tuple[int, int]:
    """An array with tasks 0 and 1 running: the number of the array, which is that of task 1, and that of task 0."""
    last, first = (fake.add_job(nodes=["w-0"]).id for _ in range(2))
    for task, own in ((1, last), (0, first)):
        fake.world.jobs[own] = replace(fake.jobs[own], array_job_id=last, array_task_id=task)
    return last, first


async def test_the_end_of_a_job_is_waited_for(fake: FakeSlurmrestd) -> None:
    async with client(fake, keep_raw=True) as slurm:
        job = fake.add_job(nodes=["w-0"])
        async with waiting(slurm, job.id) as task:
            assert not task.done()
            fake.set_job_state(job.id, "COMPLETED+COMPLETING")
            await looks(slurm, task)
            assert not task.done()
            fake.finish_job(job.id)
            done = await task
        assert done.succeeded
        assert [(str(end.id), end.state.base) for end in done.ends] == [(str(job.id), "COMPLETED")]
        assert done.failed == ()
        assert (await slurm.job(job.id)).succeeded


@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE"])
async def test_an_exit_code_of_0_alone_is_no_success(fake: FakeSlurmrestd, state: str) -> None:
    async with client(fake) as slurm:
        job = fake.add_job(nodes=["w-0"])
        fake.set_job_state(job.id, state, exit_code=ExitCode(("SUCCESS",), 0))
        done = await slurm.wait_job(job.id)
        assert not done.succeeded
        (end,) = done.failed
        assert end.exit_code is not None
        assert (end.state.base, end.exit_code.return_code) == (state, 0)
        assert not (await slurm.job(job.id)).succeeded


async def test_a_job_that_is_requeued_has_not_ended(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        job = fake.add_job(nodes=["w-0"])
        async with waiting(slurm, job.id) as task:
            for state in ("NODE_FAIL+REQUEUED", "PENDING+COMPLETING", "PENDING", "FAILED+SPECIAL_EXIT", "RUNNING"):
                fake.set_job_state(job.id, state)
                await looks(slurm, task)
                assert not task.done()
            fake.finish_job(job.id)
            assert (await task).succeeded


async def test_all_tasks_of_an_array_are_waited_for_also_those_that_are_forgotten_early(fake: FakeSlurmrestd) -> None:
    last, first = array(fake)
    async with client(fake) as slurm, waiting(slurm, last) as task:
        fake.set_job_state(first, "FAILED", exit_code=ExitCode(("ERROR",), 3))
        await looks(slurm, task)
        fake.forget_job(first)
        await looks(slurm, task)
        assert not task.done()
        fake.finish_job(last)
        done = await task
    assert not done.succeeded
    assert [(str(end.id), end.state.base) for end in done.ends] == [(f"{last}_0", "FAILED"), (f"{last}_1", "COMPLETED")]
    assert [str(end.id) for end in done.failed] == [f"{last}_0"]


async def test_one_task_is_waited_for_alone(fake: FakeSlurmrestd) -> None:
    last, first = array(fake)
    async with client(fake) as slurm:
        fake.finish_job(first)
        done = await slurm.wait_job(f"{last}_0")
        assert [str(end.id) for end in done.ends] == [f"{last}_0"]
        assert (await slurm.wait_job(await slurm.job(f"{last}_0"))).succeeded


async def test_an_end_that_nobody_has_seen_is_unknown(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.EndUnknown) as unknown:
            await slurm.wait_job(4711)
        assert unknown.value.parts == ("4711",)
        assert "4711" in str(unknown.value)
        job = fake.add_job(nodes=["w-0"])
        async with waiting(slurm, job.id) as task:
            fake.forget_job(job.id)
            with pytest.raises(errors.NotFound):
                await task


async def test_a_job_goes_on_after_the_time_limit(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        job = fake.add_job(nodes=["w-0"])
        with pytest.raises(errors.NotFinished) as late:
            await slurm.wait_job(job.id, timeout=0.01, **OFTEN)
        assert late.value.parts == (str(job.id),)
        assert (await slurm.job(job.id)).is_running


async def test_an_outage_is_waited_for(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        job = fake.add_job(nodes=["w-0"])
        async with waiting(slurm, job.id) as task:
            fake.controller_up = False
            await looks(slurm, task)
            assert not task.done()
            fake.finish_job(job.id)
            fake.controller_up = True
            assert (await task).succeeded


async def test_closing_the_client_ends_the_wait(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        job = fake.add_job(nodes=["w-0"])
        async with waiting(slurm, job.id) as task:
            await slurm.close()
            with pytest.raises(errors.ClientClosed):
                await task


@pytest.mark.parametrize("field", ["timeout", "first_pause", "longest_pause"])
async def test_lengths_of_time_are_above_zero(fake: FakeSlurmrestd, field: str) -> None:
    async with client(fake) as slurm:
        with pytest.raises(errors.InvalidArgument) as refused:
            await slurm.wait_job(1, **{field: 0})
        assert refused.value.field == field
        assert slurm.calls == 0


async def test_tasks_that_wait_together_are_told_apart(fake: FakeSlurmrestd) -> None:
    last, first = array(fake)
    async with client(fake) as slurm:
        fake.set_job_state(last, "PENDING", nodes=(), node_list="", array_task_id=None, array_tasks="2-6:2%1")
        tasks = await slurm.job_tasks(last)
        assert [(task.array_task_id, task.is_pending) for task in tasks] == [
            (0, False),
            (2, True),
            (4, True),
            (6, True),
        ]
        assert len({task.alone for task in tasks}) == 4
        fake.set_job_state(last, "PENDING", array_tasks="5-9,11,...")
        assert [task.array_tasks for task in await slurm.job_tasks(last)] == ["", "5-9,11,..."]
        fake.set_job_state(last, "PENDING", array_tasks="1-4000000")
        assert [task.array_tasks for task in await slurm.job_tasks(last)] == ["", "1-4000000"]
        assert len(await slurm.job_tasks(fake.add_job(nodes=["w-1"]).id)) == 1
    assert first != last


async def test_jobs_are_found_by_what_was_noted_on_them(fake: FakeSlurmrestd) -> None:
    async with client(fake) as slurm:
        one = fake.add_job(nodes=["w-0"], comment="run 1", extra="k=v")
        fake.add_job(nodes=["w-1"], comment="run 2", extra="k=v")
        assert [job.id for job in await slurm.find_jobs(comment="run 1")] == [one.id]
        assert len(await slurm.find_jobs(extra="k=v")) == 2
        assert await slurm.find_jobs(extra="k=v", comment="run 3") == ()
        (plain,) = await slurm.find_jobs(comment="run 1")
        with pytest.raises(AttributeError, match="without details"):
            _ = plain.details
        (detailed,) = await slurm.find_jobs(comment="run 1", details=True)
        assert detailed.details == (await slurm.job(one.id)).details
        before = slurm.calls
        with pytest.raises(errors.InvalidArgument):
            await slurm.find_jobs(details=True)
        with pytest.raises(errors.InvalidArgument):
            await slurm.find_jobs()
        assert slurm.calls == before


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ({"job_id": 7}, JobId(7)),
        ({"job_id": 9, "array": {"job_id": 7, "task_id": {"set": True, "number": 3}}}, JobId(7, task=3)),
        ({"job_id": 7, "array": {"job_id": 0, "task_id": {"set": False, "number": 0}}}, JobId(7)),
        ({"job_id": 8, "het": {"job_id": 7, "job_offset": {"set": True, "number": 1}}}, JobId(7, component=1)),
    ],
)
def test_history_names_the_parts_of_a_job(raw: dict[str, Any], name: JobId) -> None:
    raw |= {"state": {"current": ["TIMEOUT"], "reason": "x"}, "exit_code": {"return_code": 0}}
    ((found, end),) = endings.ends_of([history.job(raw)]).items()
    assert found == end.id == name
    assert end.state == JobState("TIMEOUT")
    assert not end.succeeded


@pytest.mark.parametrize("state", [("COMPLETED", "NODE_FAIL"), ("NODE_FAIL", "COMPLETED")])
def test_of_several_runs_the_last_one_tells_the_end(state: tuple[str, str]) -> None:
    runs = [
        history.job({"job_id": 7, "state": {"current": [word]}, "time": {"submission": second}})
        for word, second in zip(state, (200, 100), strict=True)
    ]
    assert endings.ends_of(runs)[JobId(7)].state == JobState(state[0])


@pytest.mark.parametrize("raw", [{"job_id": 7, "state": None}, {"job_id": 2**33, "array": 3, "het": []}])
def test_a_strange_entry_of_history_is_no_error(raw: dict[str, Any]) -> None:
    (end,) = endings.ends_of([history.job(raw)]).values()
    assert not end.state.is_finished
    assert endings.part(raw).suffix == ""
