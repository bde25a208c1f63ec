"""Calls about many jobs and reservations, heterogeneous jobs and allocations: on real Slurm and on the fake alike."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from slurm_client import errors
from slurm_client.models import JobId, JobSpec, ReservationSpec
from tests.integration.slurm_client.targets import until

pytestmark = pytest.mark.smoke

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from slurm_client import SlurmClient
    from slurm_client.models import ReservationResult
    from tests.integration.slurm_client.targets import Target

BATCH = JobSpec(script="#!/bin/sh\nsleep 600\n", tasks=1, working_directory="/tmp")
NOBODY = 999_999


@pytest.fixture
async def slurm(target: Target, version: str) -> AsyncIterator[SlurmClient]:
    """A client; no job of root is left behind."""
    async with target.client(version) as client:
        try:
            yield client
        finally:

            async def gone() -> bool:
                # What waits may start when others are ended.
                await client.cancel_jobs(user="root")
                return all(job.is_finished for job in await client.jobs())

            await until(gone)


async def test_states_are_asked_for_by_id(slurm: SlurmClient, target: Target, version: str) -> None:
    held = (await slurm.submit_job(JobSpec(script=BATCH.script, hold=True, working_directory="/tmp"))).id
    array = await target.start_array("w-1", "0-3")
    running = {job.array_task_id: job.id for job in await slurm.job_parts(array) if job.is_running}
    waiting = [task for task in range(4) if task not in running]

    (entry,) = await slurm.job_states([held, NOBODY])
    assert (entry.record, entry.task, entry.component, entry.state.base) == (held, None, None, "PENDING")
    assert not await slurm.job_states([NOBODY])
    assert not await slurm.job_states([])

    tasks = {each.task: each for each in await slurm.job_states([array])}
    assert set(tasks) == {0, 1, 2, 3}
    assert {task for task, each in tasks.items() if each.state.base == "RUNNING"} == set(running)
    # Of a task, v0.0.40 says the array, and all others the record.
    for task, each in tasks.items():
        record, of_array = running.get(task, array), each.array_job_id
        assert (each.record, of_array) == ((None, array) if version == "v0.0.40" else (record, None))

    # Asked for one of the tasks that wait together, slurmctld answers with all of them.
    (one,) = await slurm.job_states([JobId(array, waiting[0])])
    assert (one.number, one.task, one.state.base) == (array, waiting[0], "PENDING")
    (other,) = await slurm.job_states([JobId(array, 0)])
    assert (other.task, other.state.base) == (0, "RUNNING")
    if version > "v0.0.40":
        assert other.record is not None
        assert (await slurm.job(other.record)).array_task_id == 0
    # Twice the same is one entry.
    assert len(await slurm.job_states([array, JobId(array, 0), array, held])) == 5
    assert {each.number for each in await slurm.job_states()} >= {held, array}


async def test_jobs_are_found_by_what_they_are(slurm: SlurmClient) -> None:
    wanted = JobSpec(
        script=BATCH.script, hold=True, working_directory="/tmp", name="wanted", comment="for a test", extra="x=1"
    )
    mine = (await slurm.submit_job(wanted)).id
    other = (await slurm.submit_job(JobSpec(script=BATCH.script, hold=True, working_directory="/tmp"))).id

    async def found(**filters: object) -> set[int]:
        return {job.id for job in await slurm.find_jobs(**filters)}  # type: ignore[arg-type]

    assert await found(name="wanted", states=["pending"]) == {mine}
    pending = ["PENDING"]
    assert await found(comment="for a test", states=pending) == {mine}
    assert await found(extra="x=1", user="root", partition="all", states=pending) == {mine}
    assert {mine, other} <= await found(user="root", states=["PENDING", "RUNNING"])
    assert await found(name="wanted", states=["RUNNING"]) == set()
    assert await found(name="wanted", nodes=["w-0"]) == set()
    assert await found(states=[]) == await found(nodes=[]) == set()
    with pytest.raises(errors.InvalidArgument):
        await slurm.find_jobs(states=["PENDIN"])


async def test_a_heterogeneous_job_is_submitted_as_a_whole(slurm: SlurmClient) -> None:
    script = "#!/bin/sh\nsrun hostname\n"
    with pytest.raises(errors.InvalidArgument) as few:
        await slurm.submit_het_job([JobSpec(script=script)])
    assert few.value.field == "specs"
    for wrong, field in (
        ([JobSpec(), JobSpec(script=script)], "specs[0].script"),
        ([JobSpec(script=script), JobSpec(script=script)], "specs[1].script"),
    ):
        with pytest.raises(errors.InvalidArgument) as refused:
            await slurm.submit_het_job(wrong)
        assert refused.value.field == field
    with pytest.raises(errors.NotFound):
        await slurm.submit_het_job([JobSpec(script=script, tasks=1), JobSpec(partition="nosuch", tasks=1)])

    first = JobSpec(script=script, name="first", tasks=1, hold=True, working_directory="/tmp")
    second = JobSpec(name="second", tasks=1, hold=True, working_directory="/tmp")
    made = await slurm.submit_het_job([first, second])
    parts = await slurm.job_parts(made.id)
    assert [(job.het_job_id, job.het_job_offset, job.name) for job in parts] == [
        (made.id, 0, "first"),
        (made.id, 1, "second"),
    ]
    assert (await slurm.job(f"{made.id}+1")).name == "second"
    states = await slurm.job_states([made.id])
    assert {(each.record, each.component) for each in states} == {(parts[0].id, 0), (parts[1].id, 1)}
    (one,) = await slurm.job_states([JobId(made.id, component=1)])
    assert one.record == parts[1].id


async def test_nodes_are_allocated_at_once_or_not_at_all(slurm: SlurmClient, target: Target, version: str) -> None:
    spec = JobSpec(tasks=1, required_nodes=["w-0"], working_directory="/tmp", time_limit=timedelta(minutes=5))
    if version < "v0.0.41":
        with pytest.raises(errors.NotSupported):
            await slurm.allocate_job(spec)
        return
    with pytest.raises(errors.InvalidArgument) as scripted:
        await slurm.allocate_job(BATCH)
    assert scripted.value.field == "spec.script"
    with pytest.raises(errors.InvalidArgument):
        await slurm.allocate_job([spec, spec])
    with pytest.raises(errors.NotFound):
        await slurm.allocate_job(JobSpec(partition="nosuch", tasks=1))

    made = await slurm.allocate_job(spec)
    job = await slurm.job(made.id)
    assert (job.is_running, job.batch, job.nodes) == (True, False, ("w-0",))
    with pytest.raises(errors.Conflict):
        await slurm.allocate_job(spec)
    await slurm.cancel_job(made.id)


async def test_an_allocation_waits_for_its_nodes_if_it_may(slurm: SlurmClient, version: str) -> None:
    if version < "v0.0.41":
        return
    spec = JobSpec(tasks=1, hold=True, name="patient", working_directory="/tmp")

    async def waits() -> bool:
        return bool(await slurm.find_jobs(name="patient", states=["PENDING"]))

    for end, expected in (("release", None), ("cancel", errors.Conflict)):
        asked = asyncio.create_task(slurm.allocate_job(spec, immediate=False))
        await until(waits)
        (job,) = await slurm.find_jobs(name="patient", states=["PENDING"])
        if end == "release":
            await slurm.release_job(job.id)
            assert (await asked).id == job.id
            await slurm.cancel_job(job.id)
        else:
            await slurm.cancel_job(job.id)
            with pytest.raises(expected or errors.SlurmError):
                await asked


async def test_many_jobs_are_requeued_and_each_has_a_result(slurm: SlurmClient, target: Target, version: str) -> None:
    if version < "v0.0.45":
        with pytest.raises(errors.NotSupported):
            await slurm.requeue_jobs([1])
        return
    assert await slurm.requeue_jobs([]) == ()
    with pytest.raises(errors.InvalidArgument):
        await slurm.requeue_jobs([JobId(7, component=1)])

    alone = await target.start_job("w-0")
    held = (await slurm.submit_job(JobSpec(script=BATCH.script, hold=True, working_directory="/tmp"))).id
    array = await target.start_array("w-1", "0-3")
    results = await slurm.requeue_jobs([NOBODY, alone, held, JobId(array, 0), JobId(array, 9)])
    assert [(each.id, each.error.name if each.error else None) for each in results] == [
        (str(NOBODY), "ESLURM_INVALID_JOB_ID"),
        (str(alone), None),
        (str(held), "ESLURM_JOB_PENDING"),
        (f"{array}_[0]", None),
        (f"{array}_[9]", "ESLURM_INVALID_JOB_ID"),
    ]
    assert (await slurm.job(alone)).restarts == 1

    (waiting,) = [job for job in await slurm.job_parts(array) if job.array_tasks]
    (result,) = await slurm.requeue_jobs([waiting])
    assert result.error is not None
    assert result.error.name == "ESLURM_JOB_PENDING"


async def test_reservations_are_made_and_changed_together(slurm: SlurmClient, version: str) -> None:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)

    def spec(name: str, nodes: list[str], after: int = 0, users: list[str] | None = None) -> ReservationSpec:
        return ReservationSpec(
            name=name,
            partition="all",
            nodes=nodes,
            start_time=start + timedelta(hours=after),
            duration=timedelta(minutes=30),
            users=["root"] if users is None else users,
        )

    def told(results: tuple[ReservationResult, ...]) -> list[tuple[str, str | None]]:
        return [(each.name, each.error.name if each.error else None) for each in results]

    if version < "v0.0.43":
        with pytest.raises(errors.NotSupported):
            await slurm.create_reservations([spec("a", ["w-0"])])
        return
    assert await slurm.create_reservations([]) == await slurm.update_reservations([]) == ()
    for wrong in ([ReservationSpec()], [spec("a", ["w-0"]), spec("a", ["w-0"])]):
        with pytest.raises(errors.InvalidArgument):
            await slurm.create_reservations(wrong)
    with pytest.raises(errors.InvalidArgument) as unknown:
        await slurm.create_reservations([ReservationSpec(name="a", flags=["MAINTT"])])
    assert unknown.value.field == "flags"
    assert not await slurm.reservations()
    try:
        assert told(await slurm.create_reservations([spec("a", ["w-0"]), spec("b", ["w-1"])])) == [
            ("a", None),
            ("b", None),
        ]
        many = [
            spec("nobodys", ["w-0"], 2, users=[]),
            spec("a", ["w-0"], 4),
            spec("c", ["w-1"], 6),
            spec("nowhere", ["nosuch"], 8),
            spec("d", ["w-0"], 10),
        ]
        assert told(await slurm.create_reservations(many)) == [
            ("nobodys", "ESLURM_RESERVATION_INVALID"),
            ("a", "ESLURM_RESERVATION_NAME_DUP"),
            ("c", None),
            ("nowhere", "ESLURM_INVALID_NODE_NAME"),
            ("d", None),
        ]
        assert {each.name for each in await slurm.reservations()} == {"a", "b", "c", "d"}
        changes = [
            ReservationSpec(name="a", duration=timedelta(hours=1)),
            ReservationSpec(name="nosuch", duration=timedelta(hours=1)),
            ReservationSpec(name="b", nodes=["nosuch"]),
            ReservationSpec(name="c", duration=timedelta(hours=1)),
        ]
        assert told(await slurm.update_reservations(changes)) == [
            ("a", None),
            ("nosuch", "ESLURM_RESERVATION_INVALID"),
            ("b", "ESLURM_RESERVATION_INVALID"),
            ("c", None),
        ]
        ends = {each.name: each.end_time for each in await slurm.reservations()}
        assert ends["a"] == start + timedelta(hours=1)
        assert ends["c"] == start + timedelta(hours=7)
    finally:
        for each in await slurm.reservations():
            await slurm.delete_reservation(each.name)
