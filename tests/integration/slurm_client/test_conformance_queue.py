"""Arrays and dependencies: real Slurm of both releases and the fake must agree on what is shown of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from slurm_client import SlurmClient, errors
from slurm_client.models import Job, JobSpec
from tests.integration.slurm_client.conftest import PARSERS
from tests.integration.slurm_client.targets import UNTIL_TOLD, Target, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

# What the queue does is none of the parsers' business: the newest of each release will do.
NEWEST = [(kind, series, parsers[-1]) for kind in ("real", "fake") for series, parsers in PARSERS.items()]

Tasks: TypeAlias = "dict[int | None, Job]"
"""Records of an array by task."""

pytestmark = pytest.mark.parametrize("case", NEWEST, ids=["-".join(case) for case in NEWEST], indirect=True)


class Bench:
    """A client, and the jobs that were submitted with it."""

    def __init__(self, slurm: SlurmClient) -> None:
        self.slurm = slurm
        self.jobs: list[int] = []

    async def submit(self, **wishes: Any) -> int:
        """Submit a job to the node with two CPUs."""
        wishes.setdefault("standard_output", "/dev/null")
        spec = JobSpec(script=UNTIL_TOLD, required_nodes=["w-1"], **wishes)
        self.jobs.append((await self.slurm.submit_job(spec)).id)
        return self.jobs[-1]

    async def shown(self, job_id: int) -> tuple[str, str, str]:
        """Return state, reason and dependency."""
        job = await self.slurm.job(job_id)
        return job.state.base, job.state_reason, job.dependency

    async def until_shown(self, job_id: int, *wanted: str) -> None:
        """Wait until this is shown of a job."""

        async def is_shown() -> bool:
            return (await self.shown(job_id))[: len(wanted)] == wanted

        await until(is_shown)

    async def tasks(self, array: int) -> Tasks:
        """Return the records of an array by task; ``None`` for those that wait together."""
        return {job.array_task_id: job for job in await self.slurm.job_parts(array)}

    async def until_tasks(
        self, array: int, condition: Callable[[dict[int | None, Job]], bool]
    ) -> dict[int | None, Job]:
        """Wait for a condition of the tasks of an array, and return them."""

        async def holds() -> bool:
            return condition(await self.tasks(array))

        await until(holds)
        return await self.tasks(array)


@pytest.fixture
async def bench(target: Target, version: str) -> AsyncIterator[Bench]:
    """Leave nothing behind on the node."""
    async with target.client(version) as slurm:
        made = Bench(slurm)
        yield made
        for job_id in reversed(made.jobs):
            await slurm.cancel_job(job_id)

        async def ended() -> bool:
            parts = [await slurm.job_parts(job_id) for job_id in made.jobs]
            return all(job.is_finished for records in parts for job in records)

        await until(ended)


def running(tasks: Tasks) -> set[int | None]:
    return {index for index, job in tasks.items() if job.is_running}


async def test_tasks_of_an_array_start_as_cpus_allow(target: Target, bench: Bench) -> None:
    array = await bench.submit(array="0-4")
    tasks = await bench.until_tasks(
        array, lambda tasks: running(tasks) == {0, 1} and tasks[None].state_reason == "Resources"
    )
    waiting = tasks[None]
    assert (waiting.id, waiting.array_tasks, waiting.state.base) == (array, "2-4", "PENDING")
    assert {tasks[0].array_tasks, tasks[1].array_tasks} == {""}
    assert len({job.id for job in tasks.values()}) == 3
    names = {entry.id for entry in await bench.slurm.job_states()}
    assert {f"{array}_2", f"{array}_3", f"{array}_4", f"{tasks[0].id}_0", f"{tasks[1].id}_1"} <= names

    await target.end_job(tasks[0].id)
    tasks = await bench.until_tasks(array, lambda tasks: running(tasks) == {1, 2})
    assert tasks[None].array_tasks == "3-4"
    assert tasks[0].state.base == "COMPLETED"

    # Of a task that waits with others nothing is left.
    await bench.slurm.cancel_job(f"{array}_4")
    tasks = await bench.until_tasks(array, lambda tasks: tasks[None].array_tasks == "3")
    assert set(tasks) == {None, 0, 1, 2}

    await target.end_job(tasks[1].id, 3)
    tasks = await bench.until_tasks(array, lambda tasks: running(tasks) == {2, 3})
    assert (tasks[3].id, tasks[3].array_tasks) == (array, "")
    assert (tasks[1].state.base, tasks[1].state_reason) == ("FAILED", "NonZeroExitCode")
    assert tasks[1].exit_code is not None
    assert tasks[1].exit_code.return_code == 3


async def test_an_array_runs_no_more_tasks_than_it_allows(bench: Bench) -> None:
    array = await bench.submit(array="1-7:2%1")
    tasks = await bench.until_tasks(
        array, lambda tasks: running(tasks) == {1} and tasks[None].state_reason == "JobArrayTaskLimit"
    )
    assert tasks[None].array_tasks == "3,5,7%1"
    assert {job.array_max_tasks for job in tasks.values()} == {1}
    await bench.slurm.cancel_job(array)
    tasks = await bench.until_tasks(array, lambda tasks: all(job.is_finished for job in tasks.values()))
    assert {index: (job.state.base, job.array_tasks) for index, job in tasks.items()} == {
        None: ("CANCELLED", "3,5,7%1"),
        1: ("CANCELLED", ""),
    }


async def test_bad_arrays_and_dependencies_are_refused(bench: Bench) -> None:
    for text in ("x", "5-1", "0-99999"):
        with pytest.raises(errors.InvalidRequest) as refused:
            await bench.submit(array=text)
        assert refused.value.number == 2081
    for text in ("afterok:999999", "afternotok:999999", "nonsense:1", "afterok:x", "afterok", "singleton:3"):
        with pytest.raises(errors.InvalidRequest) as refused:
            await bench.submit(dependency=text)
        assert refused.value.number == 2038


@pytest.mark.parametrize("exit_code", [0, 3])
async def test_a_job_waits_for_how_another_ends(target: Target, bench: Bench, exit_code: int) -> None:
    first = await bench.submit()
    await bench.until_shown(first, "RUNNING")
    kinds = ("afterok", "afternotok", "afterany")
    waiting = {kind: await bench.submit(dependency=f"{kind}:{first}") for kind in kinds}
    either = await bench.submit(dependency=f"afterok:{first}?afternotok:{first}")
    for kind, job_id in waiting.items():
        await bench.until_shown(job_id, "PENDING", "Dependency", f"{kind}:{first}(unfulfilled)")
    await bench.until_shown(
        either, "PENDING", "Dependency", f"afterok:{first}(unfulfilled)?afternotok:{first}(unfulfilled)"
    )
    await target.end_job(first, exit_code)
    good, lost = ("afterok", "afternotok") if exit_code == 0 else ("afternotok", "afterok")
    await bench.until_shown(waiting[good], "RUNNING", "None", "")
    await bench.until_shown(waiting["afterany"], "RUNNING", "None", "")
    await bench.until_shown(waiting[lost], "PENDING", "DependencyNeverSatisfied", f"{lost}:{first}(failed)")
    await target.end_job(waiting[good])
    await bench.until_shown(either, "RUNNING", "None", "")


async def test_a_cancelled_job_has_not_ended_well(bench: Bench) -> None:
    first = await bench.submit()
    second = await bench.submit()
    both = await bench.submit(dependency=f"afterany:{first},afterok:{second}")
    await bench.until_shown(
        both, "PENDING", "Dependency", f"afterany:{first}(unfulfilled),afterok:{second}(unfulfilled)"
    )
    await bench.slurm.cancel_jobs([first])
    await bench.until_shown(both, "PENDING", "Dependency", f"afterok:{second}(unfulfilled)")
    await bench.slurm.cancel_jobs([second])
    await bench.until_shown(both, "PENDING", "DependencyNeverSatisfied", f"afterok:{second}(failed)")


async def test_a_job_waits_for_an_array_or_for_one_of_its_tasks(target: Target, bench: Bench) -> None:
    array = await bench.submit(array="0-1")
    tasks = await bench.until_tasks(array, lambda tasks: running(tasks) == {0, 1})
    whole = await bench.submit(dependency=f"afterok:{array}")
    one = await bench.submit(dependency=f"afterany:{array}_0")
    await bench.until_shown(whole, "PENDING", "Dependency", f"afterok:{array}_*(unfulfilled)")
    await bench.until_shown(one, "PENDING", "Dependency", f"afterany:{array}_0(unfulfilled)")
    await target.end_job(tasks[0].id)
    await bench.until_shown(one, "RUNNING", "None", "")
    assert await bench.shown(whole) == ("PENDING", "Dependency", f"afterok:{array}_*(unfulfilled)")
    await target.end_job(tasks[1].id)
    await bench.until_shown(whole, "RUNNING", "None", "")


async def test_a_singleton_waits_for_jobs_of_its_name(target: Target, bench: Bench) -> None:
    name = target.name()
    first = await bench.submit(name=name)
    second = await bench.submit(name=name, dependency="singleton")
    await bench.until_shown(first, "RUNNING")
    await bench.until_shown(second, "PENDING", "Dependency", "singleton(unfulfilled)")
    await target.end_job(first)
    await bench.until_shown(second, "RUNNING", "None", "")
