"""How often Slurm is queried for all jobs, and how old the answer used by plans may be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from slinky_operator.slurm.jobs.job_list import Jobs
from slinky_operator.slurm.jobs.query_budget import BURST, LONGEST_WAIT, SHARE, wait_after
from slurm_client import errors
from slurm_client.models import Job, JobState


class Slurm:
    """Answers with its jobs, which takes time."""

    def __init__(self, jobs: int = 0, cost: float = 0.5) -> None:
        self.now = 1000.0
        self.cost = cost
        self.jobs: list[Job] = [Job(id=number, nodes=("a-0",), state=RUNNING) for number in range(jobs)]
        self.asked: list[float] = []
        self.error: errors.SlurmError | None = None
        self.known = Jobs(self._answer, lambda: self.now)

    async def _answer(self) -> Sequence[Job]:
        self.asked.append(self.now)
        self.now += self.cost
        if self.error is not None:
            raise self.error
        return list(self.jobs)


RUNNING, PENDING = JobState("RUNNING"), JobState("PENDING")


async def test_an_idle_cordoned_node_costs_little_however_many_jobs_there_are() -> None:
    slurm = Slurm(6000)
    end = slurm.now + 3600
    while slurm.now < end:
        # Ten NodeSets look every two seconds, and nodes change all the time.
        slurm.known.changed()
        for _ in range(10):
            assert len(await slurm.known.shared()) == 6000
        slurm.now += 2
    spent = len(slurm.asked) * slurm.cost
    assert spent <= BURST + SHARE * 3600 + slurm.cost
    assert max(after - before for before, after in zip(slurm.asked, slurm.asked[1:], strict=False)) < 30


async def test_an_answer_that_took_a_minute_is_followed_by_another_one_within_a_minute() -> None:
    slurm = Slurm(1, cost=60.0)
    await slurm.known.shared()
    answered = slurm.now
    slurm.jobs.clear()
    while len(slurm.asked) == 1:
        slurm.now += 1
        await slurm.known.shared()
    assert slurm.asked[1] - answered <= LONGEST_WAIT + 1
    assert wait_after(60.0) == LONGEST_WAIT


async def test_what_others_spend_leaves_planners_an_answer_a_minute() -> None:
    slurm = Slurm(1, cost=5.0)
    await slurm.known.shared()
    slurm.jobs.clear()
    began = slurm.now
    while await slurm.known.shared():
        # Right before deletions elsewhere; these answers have the jobs with nodes alone, and serve no planner.
        await slurm.known.holding()
        slurm.now += 5
        assert slurm.now - began <= LONGEST_WAIT + 15


async def test_cheap_answers_are_as_new_as_ever() -> None:
    slurm = Slurm(3, cost=0.01)
    assert len(await slurm.known.shared()) == 3
    slurm.jobs.clear()
    assert len(await slurm.known.shared()) == 3, "asked a moment ago"
    slurm.known.changed()
    assert len(await slurm.known.shared()) == 0
    slurm.jobs.append(Job(id=1, nodes=("a-0",), state=RUNNING))
    slurm.now += 1.5
    assert len(await slurm.known.shared()) == 1


async def test_an_answer_from_before_a_moment_that_matters_is_none_whatever_another_costs() -> None:
    slurm = Slurm(1, cost=10.0)
    await slurm.known.shared()
    slurm.jobs.clear()
    assert len(await slurm.known.shared()) == 1, "there is nothing left to spend"
    since = slurm.now
    assert not await slurm.known.shared(since)
    asked = len(slurm.asked)
    assert not await slurm.known.shared(since)
    assert len(slurm.asked) == asked, "once is enough"


async def test_what_is_asked_before_a_deletion_is_always_asked_and_serves_the_others() -> None:
    slurm = Slurm(1, cost=10.0)
    await slurm.known.shared()
    slurm.jobs.clear()
    assert not await slurm.known.fresh()
    assert not await slurm.known.shared()
    assert len(slurm.asked) == 2


async def test_jobs_without_nodes_are_not_kept() -> None:
    slurm = Slurm(1)
    slurm.jobs += [Job(id=number, state=PENDING) for number in range(10, 20)]
    assert [job.id for job in await slurm.known.shared()] == [0]
    assert len(await slurm.known.fresh()) == 11
    assert [job.id for job in await slurm.known.shared()] == [0]


async def test_a_slurm_that_fails_after_long_is_not_asked_again_and_again() -> None:
    slurm = Slurm(cost=30.0)
    slurm.error = errors.Timeout("no answer")
    for _ in range(100):
        with pytest.raises(errors.Timeout):
            await slurm.known.shared()
        slurm.now += 5
    pauses = [after - before - slurm.cost for before, after in zip(slurm.asked, slurm.asked[1:], strict=False)]
    assert all(LONGEST_WAIT - 10 <= pause <= LONGEST_WAIT + 10 for pause in pauses[1:])
    assert pauses
    slurm.error = None
    slurm.now += LONGEST_WAIT
    assert not await slurm.known.shared()


async def test_a_question_under_way_serves_all() -> None:
    slurm = Slurm(2)
    answers = await asyncio.gather(*(slurm.known.shared() for _ in range(20)))
    assert [len(one) for one in answers] == [2] * 20
    assert len(slurm.asked) == 1


class Slowly:
    """Slurm whose answers come when the test lets them."""

    def __init__(self) -> None:
        self.gates: list[asyncio.Event] = []
        self.begun = asyncio.Event()
        self.jobs: list[Job] = []
        self.error: errors.SlurmError | None = None

    async def answer(self) -> Sequence[Job]:
        gate = asyncio.Event()
        self.gates.append(gate)
        self.begun.set()
        shown = list(self.jobs)
        await gate.wait()
        if self.error is not None:
            raise self.error
        return shown

    async def asked(self, times: int) -> None:
        while len(self.gates) < times:
            self.begun.clear()
            await self.begun.wait()


@pytest.mark.parametrize("brief", [False, True])
async def test_who_asks_while_slurm_answers_shares_the_next_answer(brief: bool) -> None:
    """Ten NodeSets that each read thousands of jobs one by one would never end."""
    slurm = Slowly()
    known = Jobs(slurm.answer)
    ask = known.holding if brief else known.fresh
    async with asyncio.TaskGroup() as group:
        first = group.create_task(ask())
        await slurm.asked(1)
        slurm.jobs.append(Job(id=7, nodes=("a-0",), state=RUNNING))
        later = [group.create_task(ask()) for _ in range(10)]
        given_up = group.create_task(ask())
        await asyncio.sleep(0)
        given_up.cancel()
        slurm.gates[0].set()
        await slurm.asked(2)
        # This one has not been asked early enough for who comes now.
        slurm.jobs.append(Job(id=8, nodes=("a-0",), state=RUNNING))
        last = group.create_task(ask())
        await asyncio.sleep(0)
        slurm.gates[1].set()
        await slurm.asked(3)
        slurm.gates[2].set()
    assert not first.result()
    assert [[job.id for job in task.result()] for task in later] == [[7]] * 10
    assert [job.id for job in last.result()] == [7, 8]
    assert len(slurm.gates) == 3


async def test_planners_that_have_written_while_slurm_answers_share_the_next_answer() -> None:
    """Each needs one from after its own write."""
    slurm, now = Slowly(), 1000.0
    known = Jobs(slurm.answer, lambda: now)
    first = asyncio.create_task(known.shared())
    await slurm.asked(1)
    later: list[asyncio.Task[Sequence[Job]]] = []
    for _ in range(10):
        now += 1.0
        later.append(asyncio.create_task(known.shared(since=now)))
        await asyncio.sleep(0)
    later.append(asyncio.create_task(known.holding()))
    slurm.jobs.append(Job(id=7, nodes=("a-0",), state=RUNNING))
    slurm.gates[0].set()
    await slurm.asked(2)
    slurm.gates[1].set()
    assert not await first
    assert [[job.id for job in found] for found in await asyncio.gather(*later)] == [[7]] * 11
    assert len(slurm.gates) == 2


async def test_an_error_is_that_of_all_who_have_shared_the_question_and_of_no_other() -> None:
    slurm = Slowly()
    known = Jobs(slurm.answer)
    first = asyncio.create_task(known.fresh())
    await slurm.asked(1)
    others = [asyncio.create_task(known.fresh()) for _ in range(2)]
    await asyncio.sleep(0)
    slurm.error = errors.Timeout("no answer")
    slurm.gates[0].set()
    await slurm.asked(2)
    with pytest.raises(errors.Timeout):
        await first
    slurm.gates[1].set()
    for one in others:
        with pytest.raises(errors.Timeout):
            await one
    slurm.error = None
    again = asyncio.create_task(known.fresh())
    await slurm.asked(3)
    slurm.gates[2].set()
    assert not await again
