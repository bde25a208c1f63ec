"""The queue of the fake: arrays, dependencies and GPUs, and jobs that end when the clock is moved."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_client import SlurmClient, errors
from slurm_client.models import INFINITE, JobSpec
from slurm_client.notation import gres
from slurm_client.testing import FakeSlurmrestd
from slurm_client.testing.refusals import Refusal
from slurm_client.testing.slurmctld import arrays, dependencies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from slurm_client.models import Job

SCRIPT = "#!/bin/sh\nexec true\n"
START = 1_800_000_000


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd(clock=lambda: START) as server:
        yield server


@pytest.fixture
async def slurm(fake: FakeSlurmrestd) -> AsyncIterator[SlurmClient]:
    async with SlurmClient(fake.url, "token") as client:
        yield client


async def submit(slurm: SlurmClient, **wishes: Any) -> int:
    return (await slurm.submit_job(JobSpec(script=SCRIPT, **wishes))).id


def shown(fake: FakeSlurmrestd, job_id: int) -> tuple[str, str, str]:
    job = fake.jobs[job_id]
    return job.state.base, job.state_reason, job.dependency


# arrays


def of_array(fake: FakeSlurmrestd, array: int) -> dict[int | None, Job]:
    return {job.array_task_id: job for job in fake.jobs.values() if job.array_job_id == array}


async def test_tasks_start_as_cpus_allow_and_the_last_one_keeps_the_number(
    fake: FakeSlurmrestd, slurm: SlurmClient
) -> None:
    fake.add_node("w-0", cpus=2)
    array = await submit(slurm, array="0-3", name="arr")
    tasks = of_array(fake, array)
    assert {index: (job.state.base, job.array_tasks) for index, job in tasks.items()} == {
        None: ("PENDING", "2-3"),
        0: ("RUNNING", ""),
        1: ("RUNNING", ""),
    }
    assert tasks[None].id == array
    assert tasks[None].state_reason == "Resources"
    assert {entry.id for entry in await slurm.job_states()} == {
        f"{array}_2",
        f"{array}_3",
        f"{tasks[0].id}_0",
        f"{tasks[1].id}_1",
    }
    fake.finish_job(tasks[0].id)
    fake.finish_job(tasks[1].id)
    tasks = of_array(fake, array)
    assert sorted(tasks, key=str) == [0, 1, 2, 3]
    assert (tasks[3].id, tasks[3].array_tasks, tasks[3].state.base) == (array, "", "RUNNING")
    assert len({job.id for job in tasks.values()}) == 4


async def test_no_more_tasks_run_than_the_array_allows(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=8)
    fake.let_run("arr", duration=60)
    array = await submit(slurm, array="1-7:2%1", name="arr")
    seen = []
    while any(not job.is_finished for job in fake.jobs.values()):
        tasks = of_array(fake, array)
        assert sum(job.is_running for job in tasks.values()) == 1
        waiting = tasks.get(None)
        seen.append((waiting.array_tasks, waiting.state_reason) if waiting else None)
        fake.clock.advance(60)
    assert seen == [
        ("3,5,7%1", "JobArrayTaskLimit"),
        ("5,7%1", "JobArrayTaskLimit"),
        ("7%1", "JobArrayTaskLimit"),
        None,
    ]
    assert fake.jobs[array].array_max_tasks == 1


async def test_one_task_or_all_of_an_array_are_cancelled(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=2)
    array = await submit(slurm, array="0-4")
    await slurm.cancel_job(f"{array}_4")
    assert of_array(fake, array)[None].array_tasks == "2-3"
    with pytest.raises(errors.NotFound):
        await slurm.job(f"{array}_4")
    await slurm.cancel_jobs([f"{array}_0"])
    tasks = of_array(fake, array)
    assert tasks[0].state.base == "CANCELLED"
    assert tasks[2].is_running
    await slurm.cancel_job(array)
    assert {job.state.base for job in of_array(fake, array).values()} == {"CANCELLED"}
    assert of_array(fake, array)[None].array_tasks == "3"


async def test_the_last_waiting_task_is_cancelled_with_its_record(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    array = await submit(slurm, array="5")
    await slurm.cancel_job(f"{array}_5")
    assert fake.jobs[array].state.base == "CANCELLED"


@pytest.mark.parametrize("text", ["x", "5-1", "0-99999", "0-3:0"])
async def test_a_bad_array_is_refused(fake: FakeSlurmrestd, slurm: SlurmClient, text: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        await submit(slurm, array=text)
    assert refused.value.number == 2081
    assert not fake.jobs


@given(st.sets(st.integers(0, 1000), min_size=1), st.sampled_from([None, 1, 7]))
def test_what_is_written_of_an_array_is_read_back(indices: set[int], at_once: int | None) -> None:
    tasks = arrays.wished(arrays.written(indices, at_once))
    assert (set(tasks), tasks.at_once) == (indices, at_once)


# dependencies


@pytest.mark.parametrize(
    ("end", "afterok", "afternotok"),
    [
        (0, ("RUNNING", "None", ""), ("PENDING", "DependencyNeverSatisfied", "afternotok:1(failed)")),
        (3, ("PENDING", "DependencyNeverSatisfied", "afterok:1(failed)"), ("RUNNING", "None", "")),
        (None, ("PENDING", "DependencyNeverSatisfied", "afterok:1(failed)"), ("RUNNING", "None", "")),
    ],
)
async def test_a_job_that_waits_for_another_starts_by_how_that_ends(
    fake: FakeSlurmrestd, slurm: SlurmClient, end: int | None, afterok: tuple[str, ...], afternotok: tuple[str, ...]
) -> None:
    fake.add_node("w-0", cpus=8)
    first = await submit(slurm)
    waiting = {
        kind: await submit(slurm, dependency=f"{kind}:{first}") for kind in ("afterok", "afternotok", "afterany")
    }
    after = await submit(slurm, dependency=f"after:{first}")
    for kind, job_id in waiting.items():
        assert shown(fake, job_id) == ("PENDING", "Dependency", f"{kind}:1(unfulfilled)")
    assert shown(fake, after) == ("RUNNING", "None", "")
    if end is None:
        await slurm.cancel_job(first)
    else:
        fake.world.exit_job(first, end)
    assert shown(fake, waiting["afterok"]) == afterok
    assert shown(fake, waiting["afternotok"]) == afternotok
    assert shown(fake, waiting["afterany"]) == ("RUNNING", "None", "")


async def test_all_conditions_are_needed_or_one_of_them(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=8)
    first, second = await submit(slurm), await submit(slurm)
    both = await submit(slurm, dependency=f"afterok:{first}:{second}")
    either = await submit(slurm, dependency=f"afternotok:{first}?afterany:{second}")
    fake.world.exit_job(first)
    assert shown(fake, both) == ("PENDING", "Dependency", f"afterok:{second}(unfulfilled)")
    assert shown(fake, either) == (
        "PENDING",
        "Dependency",
        f"afternotok:{first}(failed)?afterany:{second}(unfulfilled)",
    )
    fake.world.exit_job(second)
    assert shown(fake, both) == shown(fake, either) == ("RUNNING", "None", "")


async def test_a_job_waits_for_all_tasks_of_an_array_or_for_one(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=2)
    array = await submit(slurm, array="0-2")
    whole = await submit(slurm, dependency=f"afterok:{array}")
    one = await submit(slurm, dependency=f"afterany:{array}_2")
    assert shown(fake, whole)[2] == f"afterok:{array}_*(unfulfilled)"
    assert shown(fake, one)[2] == f"afterany:{array}_2(unfulfilled)"
    for index in (0, 1):
        fake.world.exit_job(of_array(fake, array)[index].id)
    assert shown(fake, whole)[0] == shown(fake, one)[0] == "PENDING"
    fake.world.exit_job(of_array(fake, array)[2].id)
    assert shown(fake, whole)[0] == shown(fake, one)[0] == "RUNNING"


async def test_a_singleton_waits_for_jobs_of_its_name_and_user(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=8)
    first = await submit(slurm, name="one")
    second = await submit(slurm, name="one", dependency="singleton")
    third = await submit(slurm, name="one", dependency="singleton")
    other = await submit(slurm, name="other", dependency="singleton")
    assert shown(fake, second) == ("PENDING", "Dependency", "singleton(unfulfilled)")
    assert shown(fake, other)[0] == "RUNNING"
    fake.finish_job(first)
    assert (shown(fake, second)[0], shown(fake, third)[0]) == ("RUNNING", "PENDING")
    fake.finish_job(second)
    assert shown(fake, third)[0] == "RUNNING"


@pytest.mark.parametrize("text", ["afterok:999999", "nonsense:1", "afterok:x", "afterok", "singleton:3", "aftercorr:1"])
async def test_a_bad_dependency_is_refused(fake: FakeSlurmrestd, slurm: SlurmClient, text: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        await submit(slurm, dependency=text)
    assert refused.value.number == 2038
    assert not fake.jobs


async def test_a_held_job_that_depends_is_not_released_by_the_other(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=8)
    first = await submit(slurm)
    held = await submit(slurm, dependency=f"afterany:{first}", hold=True)
    fake.finish_job(first)
    assert shown(fake, held) == ("PENDING", "JobHeldUser", "")
    await slurm.release_job(held)
    assert shown(fake, held)[0] == "RUNNING"


@given(st.text("after:oknty,?_*0123singleton()", max_size=30))
def test_any_text_is_a_dependency_or_refused(text: str) -> None:
    try:
        found = dependencies.parse(text)
    except Refusal:
        return
    again = dependencies.parse(found.written("unfulfilled" for _ in found.elements))
    assert again == found


# GPUs


async def test_gpus_are_counted_and_given(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=8, gres="gpu:h100:2,gpu:a100:1")
    fake.add_node("w-1", cpus=8)
    one = await submit(slurm, tres_per_node="gres/gpu:h100:1")
    two = await submit(slurm, tres_per_node="gres/gpu:2")
    three = await submit(slurm, tres_per_node="gres:gpu:1")
    jobs = {job.id: job for job in await slurm.jobs()}
    assert jobs[one].gres_detail == ("gpu:h100:1(IDX:0)",)
    assert jobs[one].tres_allocated == "cpu=1,node=1,billing=1,gres/gpu=1,gres/gpu:h100=1"
    assert jobs[two].gres_detail == ("gpu:h100:1(IDX:1),gpu:a100:1(IDX:2)",)
    assert (jobs[three].is_pending, jobs[three].state_reason) == (True, "Resources")
    assert jobs[three].tres_requested == "cpu=1,node=1,billing=1,gres/gpu=1"
    node = await slurm.node("w-0")
    assert node.tres == "cpu=8,mem=1024M,billing=8,gres/gpu=3,gres/gpu:h100=2,gres/gpu:a100=1"
    assert node.tres_used == "cpu=2,gres/gpu=3,gres/gpu:h100=2,gres/gpu:a100=1"
    assert node.gres_used == "gpu:h100:2(IDX:0-1),gpu:a100:1(IDX:2)"
    await slurm.cancel_job(one)
    assert fake.jobs[three].gres_detail == ("gpu:h100:1(IDX:0)",)
    await slurm.cancel_jobs([two, three])
    node = await slurm.node("w-0")
    assert (node.gres_used, node.tres_used) == ("gpu:h100:0(IDX:N/A),gpu:a100:0(IDX:N/A)", "")


async def test_gpus_on_several_nodes(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    for number in range(3):
        fake.add_node(f"w-{number}", cpus=2, gres="gpu:2" if number else "")
    job = await submit(slurm, nodes="2", tasks=4, tres_per_node="gres/gpu:2")
    found = await slurm.job(job)
    assert found.nodes == ("w-1", "w-2")
    assert found.gres_detail == ("gpu:2(IDX:0-1)", "gpu:2(IDX:0-1)")
    assert found.tres_allocated == "cpu=4,node=2,billing=4,gres/gpu=4"


async def test_what_is_no_gres_is_refused(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    with pytest.raises(errors.SlurmError) as refused:
        await submit(slurm, tres_per_node="gres/gpu:=,")
    assert refused.value.number == 2072


# the clock


async def test_jobs_end_by_the_clock_in_their_order(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=1)
    fake.world.min_job_age = timedelta(hours=1)
    fake.let_run("good", duration=60)
    fake.let_run("bad", duration=timedelta(minutes=2), exit_code=3)
    fake.let_run("long", duration=3600)
    ids = {name: await submit(slurm, name=name, time_limit=timedelta(minutes=5)) for name in ("good", "bad", "long")}
    fake.clock.advance(59)
    assert [fake.jobs[job_id].state.base for job_id in ids.values()] == ["RUNNING", "PENDING", "PENDING"]
    fake.clock.advance(60 + 120 + 300 - 59)
    good, bad, late = [await slurm.job(job_id) for job_id in ids.values()]
    assert [job.state.base for job in (good, bad, late)] == ["COMPLETED", "FAILED", "TIMEOUT"]
    assert (bad.state_reason, bad.exit_code and bad.exit_code.return_code) == ("NonZeroExitCode", 3)
    assert (late.state_reason, late.exit_code and late.exit_code.return_code) == ("TimeLimit", 0)
    times = [
        [int(moment.timestamp()) - START for moment in (job.start_time, job.end_time) if moment]
        for job in (good, bad, late)
    ]
    assert times == [[0, 60], [60, 180], [180, 480]]


async def test_a_job_that_nothing_is_arranged_for_runs_on(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0")
    job = await submit(slurm)
    fake.clock.advance(10**6)
    found = await slurm.job(job)
    assert found.is_running
    assert found.time_limit is INFINITE
    fake.let_run(job, duration=10**6 + 5)
    fake.clock.advance(5)
    assert (await slurm.job(job)).state.base == "COMPLETED"


async def test_the_limit_of_a_partition_is_that_of_jobs_which_name_none(
    fake: FakeSlurmrestd, slurm: SlurmClient
) -> None:
    fake.add_partition("short", max_time=timedelta(hours=1), default_time=timedelta(minutes=1))
    fake.add_node("w-0")
    job = await submit(slurm, partition="short")
    fake.clock.advance(60)
    assert (await slurm.job(job)).state.base == "TIMEOUT"


async def test_finished_jobs_are_forgotten_and_arrays_as_a_whole(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=1)
    fake.let_run(duration=100)
    array = await submit(slurm, array="0-4")
    fake.clock.advance(500)
    assert len(of_array(fake, array)) == 5
    fake.clock.advance(299)
    assert len(fake.jobs) == 5
    fake.clock.advance(1)
    assert not fake.jobs
    with pytest.raises(errors.NotFound):
        await slurm.job(array)


def test_a_clock_does_not_go_back() -> None:
    fake = FakeSlurmrestd(clock=lambda: START)
    fake.clock.advance(5)
    assert fake.clock() == START + 5
    with pytest.raises(ValueError, match="moved back"):
        fake.clock.advance(-1)


def test_many_jobs_show_on_their_nodes_as_each_of_them_would() -> None:
    one, other = FakeSlurmrestd(clock=lambda: START), FakeSlurmrestd(clock=lambda: START)
    for fake in (one, other):
        for number in range(5):
            fake.add_node(f"w-{number}", cpus=4, gres="gpu:2")
    jobs: list[dict[str, Any]] = [
        {"nodes": [f"w-{number % 4}"], "cpus": 1 + number % 2, "state": "RUNNING" if number % 3 else "COMPLETED"}
        for number in range(9)
    ]
    with one.world.many_jobs():
        for job in jobs:
            one.add_job(**job)
        assert one.nodes["w-0"].alloc_cpus == 0
    for job in jobs:
        other.add_job(**job)
    assert one.nodes == other.nodes
    assert one.nodes["w-0"].alloc_cpus > 0


# numbers and counts


async def test_no_number_is_given_twice(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    assert fake.add_job(id=3).id == 3
    assert fake.add_job().id == 4
    assert fake.add_job(id=2).id == 2
    assert await submit(slurm, hold=True) == 5
    with pytest.raises(ValueError, match="a job 3 already"):
        fake.add_job(id=3)
    fake.forget_job(5)
    assert fake.add_job().id == 6


async def test_diag_counts_the_jobs_there_were(fake: FakeSlurmrestd, slurm: SlurmClient) -> None:
    fake.add_node("w-0", cpus=2)
    fake.let_run("good", duration=10)
    fake.let_run("bad", duration=10, exit_code=1)
    await submit(slurm, array="0-3", name="good")
    await submit(slurm, name="bad")
    cancelled = await submit(slurm)
    await slurm.cancel_job(cancelled)
    diag = await slurm.diag()
    assert (diag.jobs_submitted, diag.jobs_started, diag.jobs_running) == (6, 2, 2)
    fake.clock.advance(1000)
    diag = await slurm.diag()
    assert (diag.jobs_submitted, diag.jobs_started, diag.jobs_completed) == (6, 5, 4)
    assert (diag.jobs_canceled, diag.jobs_failed) == (1, 1)
    assert (diag.jobs_pending, diag.jobs_running) == (0, 0)


def test_whatever_happens_no_node_gives_more_than_it_has_and_no_job_is_lost() -> None:
    for seed in range(20):
        dice = random.Random(seed)  # noqa: S311 - a test
        fake = FakeSlurmrestd(clock=lambda: START)
        fake.world.min_job_age = timedelta(days=1)
        for number in range(3):
            fake.add_node(f"w-{number}", cpus=4, gres="gpu:2")
        tasks = 0
        for _ in range(40):
            count = dice.randint(1, 5)
            known = [job.id for job in fake.jobs.values()]
            dependency = f"{dice.choice(['afterok', 'afterany', 'afternotok'])}:{dice.choice(known)}" if known else ""
            fake.let_run(f"job-{count}", duration=dice.randint(1, 50), exit_code=dice.randint(0, 1))
            fake.world.submit(
                {
                    "name": f"job-{count}",
                    "cpus_per_task": dice.randint(1, 4),
                    "tres_per_node": dice.choice(["", "gres/gpu:1", "gres/gpu:2"]),
                    "array": f"0-{count - 1}%2",
                    "dependency": dice.choice(["", dependency]),
                },
                "alice",
            )
            tasks += count
            fake.clock.advance(dice.randint(0, 30))
            for node in fake.nodes.values():
                running = [job for job in fake.jobs.values() if job.is_running and node.name in job.nodes]
                assert node.alloc_cpus == sum(job.cpus or 0 for job in running) <= node.cpus
                devices = [index for job in running for index in _devices(job)]
                assert len(devices) == len(set(devices)) <= 2
            waiting = [arrays.waiting(job) or (None,) for job in fake.jobs.values()]
            assert sum(map(len, waiting)) == tasks == fake.world.counts.jobs_submitted
        fake.clock.advance(10**4)
        left = {job.state_reason for job in fake.jobs.values() if not job.is_finished}
        assert left <= {"Dependency", "DependencyNeverSatisfied"}


def _devices(job: Job) -> list[int]:
    return [index for text in job.gres_detail for each in gres.parse(text) for index in each.indices or ()]
