"""Lists of jobs that are larger than an answer may be: read one by one, and complete or an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import fields, replace
from typing import Any

import pytest

from slurm_client import SlurmClient, errors
from slurm_client.connection.intake import Intake
from slurm_client.connection.oversized import Oversized
from slurm_client.models import Job, JobState, JobStateEntry
from slurm_client.operations.jobs.singly import Singly
from slurm_client.testing import FakeSlurmrestd
from slurm_client.watch import Pace

LIMIT = 256 * 1024
LONG = "afterany:" + ":".join(str(number) for number in range(100_000, 103_000))
"""A dependency of 20 kB."""


@pytest.fixture
async def slurm() -> AsyncIterator[FakeSlurmrestd]:
    async with FakeSlurmrestd() as fake:
        fake.add_node("w-0")
        yield fake


def client(slurm: FakeSlurmrestd, **options: Any) -> SlurmClient:
    return SlurmClient(slurm.url, "token", intake=Intake(LIMIT), **options)


def greedy(slurm: FakeSlurmrestd, count: int = 40) -> None:
    """Add the jobs of a user with long texts."""
    for _ in range(count):
        slurm.add_job(dependency=LONG, comment=LONG, user="greedy")


async def test_a_list_that_fits_is_one_answer(slurm: FakeSlurmrestd) -> None:
    slurm.add_job(dependency=LONG)
    async with client(slurm) as asking:
        (job,) = await asking.all_jobs()
    assert job.dependency == LONG
    assert [len(slurm.calls(each)) for each in ("get_jobs", "get_job", "get_jobs_state")] == [1, 0, 0]


async def test_a_list_that_does_not_fit_is_complete_all_the_same(slurm: FakeSlurmrestd) -> None:
    greedy(slurm)
    mine = slurm.add_job(nodes=["w-0"], user="alice", extra="mark", account="a", standard_output="/o")
    ended = slurm.add_job(state="COMPLETED", user="alice")
    async with client(slurm) as asking:
        with pytest.raises(errors.TooLarge):
            await asking.jobs()
        jobs = {job.id: job for job in await asking.all_jobs()}
        assert jobs.keys() == slurm.jobs.keys()
        whole = await asking.job(mine.id)
        lacking = {one.name for one in fields(Job) if getattr(jobs[mine.id], one.name) != getattr(whole, one.name)}
        assert lacking == {"standard_output", "_details"}
        assert {jobs[mine.id].extra, jobs[mine.id].account, jobs[mine.id].nodes} == {"mark", "a", ("w-0",)}
        assert jobs[ended.id].is_finished
        assert not any(job.dependency or job.comment for job in jobs.values())


async def test_it_is_asked_for_one_by_one_for_a_while_and_then_as_a_list_again(slurm: FakeSlurmrestd) -> None:
    greedy(slurm)
    async with client(slurm) as asking:
        for _ in range(3):
            assert len(await asking.all_jobs()) == len(slurm.jobs)
        assert len(slurm.calls("get_jobs")) == 1
        asking._session.oversized.clear()  # as if the time had passed
        for job in list(slurm.jobs):
            slurm.forget_job(job)
        assert await asking.all_jobs() == ()
        assert len(slurm.calls("get_jobs")) == 2


async def test_of_jobs_that_hold_nodes_no_others_are_read(slurm: FakeSlurmrestd) -> None:
    greedy(slurm)
    mine = slurm.add_job(nodes=["w-0"])
    ending = slurm.add_job(nodes=["w-0"], state="COMPLETED+COMPLETING")
    async with client(slurm) as asking:
        assert {job.id for job in await asking.all_jobs(holding_nodes=True)} == {mine.id, ending.id}
        assert len(slurm.calls("get_job")) == 2
        slurm.forget_job(mine.id)
        asking._session.oversized.clear()
        for job in [one.id for one in slurm.jobs.values() if one.user == "greedy"]:
            slurm.forget_job(job)
        # The same of a list that fits.
        slurm.add_job()
        assert [job.id for job in await asking.all_jobs(holding_nodes=True)] == [ending.id]


async def test_records_that_are_too_large_alone_name_their_job(slurm: FakeSlurmrestd) -> None:
    greedy(slurm)
    huge = slurm.add_job(dependency=LONG * 20)
    async with client(slurm) as asking:
        with pytest.raises(errors.TooLarge, match=f"job {huge.id}: the answer is too large"):
            await asking.all_jobs()
        # Those that hold nodes are known all the same.
        assert await asking.all_jobs(holding_nodes=True) == ()


async def test_an_error_on_the_way_is_an_error(slurm: FakeSlurmrestd) -> None:
    greedy(slurm)
    async with client(slurm) as asking:
        slurm.faults.add("/job/[0-9]+", status=500, times=None)
        with pytest.raises(errors.SlurmError):
            await asking.all_jobs()


async def test_a_watch_goes_on_and_reads_what_has_changed(slurm: FakeSlurmrestd) -> None:
    async with client(slurm, pace=Pace(interval=0.01)) as asking:
        mine = slurm.add_job(user="alice")
        async with asking.watch_jobs() as reader:
            assert (await reader.initial()).keys() == {str(mine.id)}
            greedy(slurm, 150)
            while len(asking.job_watch.objects) < 151:
                await anext(reader)
            read = len(slurm.calls("get_job"))
            slurm.set_job_state(mine.id, "CANCELLED")
            async for event in reader:
                if event.key == str(mine.id) and event.new is not None and event.new.is_finished:
                    break
            assert asking.job_watch.status.error is None
            polls = len(slurm.calls("get_jobs_state"))
            # A hundred of those that wait are read again each time, and the one that has changed.
            assert len(slurm.calls("get_job")) - read <= 101 * polls
            assert len(slurm.calls("get_jobs")) <= 1 + asking.job_watch.status.polls - polls


def test_a_list_is_tried_again_after_some_minutes() -> None:
    now = 0.0
    oversized = Oversized(lambda: now)
    oversized.add("jobs", errors.TooLarge("it has more than 10 bytes"))
    assert "jobs" in oversized
    assert "nodes" not in oversized
    now = 301.0
    assert "jobs" not in oversized


# With answers in any order


class Slurm:
    """slurmctld as one by one sees it."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.listed: Callable[[], Iterable[JobStateEntry]] = lambda: [
            JobStateEntry(str(job.id), job.state) for job in self.jobs.values()
        ]
        self.read: list[int] = []

    async def states(self) -> Iterable[JobStateEntry]:
        return list(self.listed())

    async def parts(self, number: int) -> Iterable[Job]:
        await asyncio.sleep(0)
        self.read.append(number)
        found = [job for job in self.jobs.values() if number in {job.id, job.array_job_id}]
        if not found:
            raise errors.NotFound(f"no job {number}")
        return found

    def singly(self, room: int = 2**30, seconds: float = 60.0, short: float = 60.0) -> Singly:
        return Singly(self.states, self.parts, room, seconds=seconds, short=short)


PENDING, RUNNING, DONE = (JobState(word) for word in ("PENDING", "RUNNING", "COMPLETED"))


def every(_: JobState) -> bool:
    return True


async def test_a_job_that_has_gone_meanwhile_is_left_out() -> None:
    slurm = Slurm(Job(id=1, state=RUNNING))
    answers = iter([[JobStateEntry("1", RUNNING), JobStateEntry("2", DONE)], [JobStateEntry("1", RUNNING)]])
    slurm.listed = lambda: next(answers)
    assert [job.id for job in await slurm.singly().read(every)] == [1]


async def test_a_job_that_is_listed_and_not_shown_is_an_error() -> None:
    slurm = Slurm(Job(id=1, state=RUNNING))
    slurm.listed = lambda: [JobStateEntry("1", RUNNING), JobStateEntry("2", RUNNING)]
    with pytest.raises(errors.DecodeError, match="job 2 is listed as RUNNING and not shown"):
        await slurm.singly().read(every)


async def test_a_job_that_has_started_and_is_not_shown_is_an_error_though_it_was_shown_before() -> None:
    """What was read of it, minutes ago, has no nodes."""
    slurm = Slurm(Job(id=1, state=PENDING))
    parts = slurm.parts

    async def once(number: int) -> Iterable[Job]:
        found = await parts(number)
        slurm.jobs[1] = replace(slurm.jobs[1], state=RUNNING, nodes=("a-1",))
        if slurm.read == [1]:
            return found
        raise errors.NotFound(f"no job {number}")

    slurm.parts = once  # type: ignore[method-assign]
    with pytest.raises(errors.DecodeError, match="job 1 is listed as RUNNING and not shown"):
        await slurm.singly(short=0.0).read(every)


async def test_all_tasks_of_an_array_come_with_its_number() -> None:
    slurm = Slurm(
        Job(id=7, state=PENDING, array_job_id=7, array_tasks="2-900"),
        *(Job(id=7 + task, state=RUNNING, array_job_id=7, array_task_id=task) for task in (1, 2, 3)),
    )
    slurm.listed = lambda: [
        *(JobStateEntry(f"7_{task}", PENDING) for task in range(4, 901)),
        *(JobStateEntry(f"{7 + task}_{task}", RUNNING) for task in (1, 2, 3)),
    ]
    assert {job.id for job in await slurm.singly().read(every)} == {7, 8, 9, 10}
    assert slurm.read.count(7) == 1
    # Tasks that wait together are not told apart by their state: they are read each time.
    known = {str(job.id): job for job in slurm.jobs.values()}
    slurm.read.clear()
    await slurm.singly().read(every, known)
    assert 7 in slurm.read


async def test_v0_0_40_lists_tasks_by_the_number_of_their_array() -> None:
    slurm = Slurm(*(Job(id=7 + task, state=RUNNING, array_job_id=7, array_task_id=task) for task in (1, 2)))
    slurm.listed = lambda: [JobStateEntry(f"7_{task}", RUNNING, array_job_id=7) for task in (1, 2)]
    assert {job.id for job in await slurm.singly().read(every)} == {8, 9}
    assert slurm.read == [7]


async def test_known_jobs_are_read_again_in_turn_and_those_that_ended_are_not() -> None:
    slurm = Slurm(*(Job(id=number, state=PENDING) for number in range(1, 251)), Job(id=999, state=DONE))
    singly = slurm.singly()
    known = {str(job.id): replace(job) for job in slurm.jobs.values()}
    for _ in range(3):
        slurm.read.clear()
        assert len(await singly.read(every, known)) == 251
        assert len(slurm.read) == 100
        read = set(slurm.read)
        known = {key: job for key, job in known.items() if job.id not in read}
        known |= {str(number): slurm.jobs[number] for number in read}
    # All of them have had their turn.
    assert all(known[str(number)] is slurm.jobs[number] for number in range(1, 251))
    slurm.jobs[5] = replace(slurm.jobs[5], state=RUNNING)
    slurm.read.clear()
    await singly.read(every, known)
    assert 5 in slurm.read


async def test_what_starts_while_jobs_are_read_is_read_again() -> None:
    """Reading takes minutes where there are many: a node may be drained no more, and have a job by the end of it."""
    slurm = Slurm(*(Job(id=number, state=PENDING) for number in range(1, 9)), Job(id=20, state=RUNNING, nodes=("a-1",)))
    parts = slurm.parts

    async def slowly(number: int) -> Iterable[Job]:
        found = list(await parts(number))
        if len(slurm.read) == 8:
            # One that was read starts, one is submitted and starts at once, and one ends.
            slurm.jobs[1] = replace(slurm.jobs[1], state=RUNNING, nodes=("a-2",))
            slurm.jobs[30] = Job(id=30, state=RUNNING, nodes=("a-3",))
            slurm.jobs[20] = replace(slurm.jobs[20], state=DONE)
        return found

    slurm.parts = slowly  # type: ignore[method-assign]
    found = await slurm.singly(short=0.0).read(every)
    assert {job.id: job.nodes for job in found if job.state == RUNNING} == {1: ("a-2",), 30: ("a-3",)}
    assert sorted(slurm.read) == sorted([*range(1, 9), 20, 1, 20, 30])
    # So it is where only those are wanted that hold nodes; one that has ended since may still be among them.
    slurm = Slurm(Job(id=1, state=PENDING), Job(id=20, state=RUNNING, nodes=("a-1",)))

    async def starts(number: int) -> Iterable[Job]:
        slurm.jobs[1] = replace(slurm.jobs[1], state=RUNNING, nodes=("a-2",))
        return [slurm.jobs[number]]

    slurm.parts = starts  # type: ignore[method-assign]
    held = await slurm.singly(short=0.0).read(lambda state: state.base == "RUNNING")
    assert {job.id: job.nodes for job in held} == {1: ("a-2",), 20: ("a-1",)}
    # A short round is the last one.
    slurm = Slurm(Job(id=1, state=PENDING))
    asked: list[int] = []
    states = slurm.states

    async def listed() -> Iterable[JobStateEntry]:
        asked.append(1)
        return await states()

    slurm.states = listed  # type: ignore[method-assign]
    await slurm.singly().read(every)
    assert asked == [1]


async def test_what_is_kept_has_a_bound() -> None:
    slurm = Slurm(*(Job(id=number, state=PENDING, features="x" * 1000) for number in range(1, 11)))
    with pytest.raises(errors.TooLarge, match=r"^[0-9] jobs, read one by one, take more than 20000 bytes"):
        await slurm.singly(room=20_000).read(every)


async def test_it_has_an_end() -> None:
    slurm = Slurm(*(Job(id=number, state=PENDING) for number in range(1, 11)))
    never = asyncio.Event()

    async def parts(number: int) -> Iterable[Job]:
        if number > 5:
            await never.wait()
        return [slurm.jobs[number]]

    with pytest.raises(errors.Timeout, match=r"one by one 5 jobs were read within 0.2 s, and 1 were not"):
        await Singly(slurm.states, parts, 2**20, seconds=0.2).read(every)
