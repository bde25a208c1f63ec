"""One key is never processed by two workers, and nothing that was added is lost."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from slinky_operator.runtime.queue import QueueClosed, WorkQueue
from tests.unit.runtime.virtual_time import now, run_virtually

KEYS = st.sampled_from("abcde")
LANE = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2}


class QueueMachine(RuleBasedStateMachine):
    """Random sequences of add, take and done, compared with two plain sets."""

    def __init__(self, queue: WorkQueue[str] | None = None, share: int = len("abcde")) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.queue: WorkQueue[str] = queue if queue is not None else WorkQueue()
        self.share = share
        self.due: set[str] = set()
        self.taken: set[str] = set()

    def may_be_taken(self) -> set[str]:
        full = {key for key in self.due if sum(LANE[key] == LANE[one] for one in self.taken) >= self.share}
        return self.due - self.taken - full

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        async def body() -> None:
            self.queue.add(key)

        self.loop.run_until_complete(body())
        self.due.add(key)

    @precondition(lambda self: self.may_be_taken())
    @rule()
    def take(self) -> None:
        key = self.loop.run_until_complete(asyncio.wait_for(self.queue.get(), 60))
        assert key in self.may_be_taken()
        self.due.discard(key)
        self.taken.add(key)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.taken)))
        self.queue.done(key)
        self.taken.discard(key)

    @precondition(lambda self: not self.may_be_taken())
    @rule()
    def a_worker_that_is_cancelled_while_it_waits_takes_nothing(self) -> None:
        async def body() -> None:
            waiting = asyncio.ensure_future(self.queue.get())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert waiting.cancelled()

        self.loop.run_until_complete(body())

    @precondition(lambda self: self.taken - self.due and not self.may_be_taken())
    @rule(data=st.data())
    def of_workers_that_wait_one_has_what_comes_though_another_is_cancelled(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.taken - self.due)))

        async def body() -> str:
            waiting = [asyncio.ensure_future(self.queue.get()) for _ in range(2)]
            await asyncio.sleep(0)
            self.queue.add(key)
            self.queue.done(key)
            # The first has been woken, and does not live to take the key.
            waiting[0].cancel()
            return await asyncio.wait_for(waiting[1], 60)

        if LANE[key] in {LANE[one] for one in self.due - self.taken}:
            # Its return makes room for others of its lane, which come first.
            return
        assert self.loop.run_until_complete(body()) == key

    @invariant()
    def sets_agree(self) -> None:
        assert len(self.queue) == len(self.due)
        assert self.queue.processing == self.taken

    @override
    def teardown(self) -> None:
        for key in sorted(self.taken):
            self.queue.done(key)
        left = set()
        for _ in range(len(self.due)):
            key = self.loop.run_until_complete(asyncio.wait_for(self.queue.get(), 60))
            self.queue.done(key)
            left.add(key)
        assert left == self.due
        self.loop.close()


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class LanesMachine(QueueMachine):
    """The same with two lanes, of which each gets two of three workers."""

    def __init__(self) -> None:
        super().__init__(WorkQueue(lane=LANE.__getitem__, workers=3), share=2)


TestLanesMachine = LanesMachine.TestCase
TestLanesMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 6))
def test_every_change_is_seen_by_a_pass_that_began_after_it(seed: int, workers: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - repeatable
    wanted: dict[int, int] = {}
    seen: dict[int, int] = {}
    active: set[int] = set()

    async def body() -> None:
        queue: WorkQueue[int] = WorkQueue(rng=rng)

        async def worker() -> None:
            while True:
                try:
                    key = await queue.get()
                except QueueClosed:
                    return
                assert key not in active
                active.add(key)
                looked = wanted[key]
                await asyncio.sleep(rng.uniform(0, 0.3))
                active.discard(key)
                if rng.random() < 0.3:
                    queue.add_failed(key)
                else:
                    seen[key] = looked
                    queue.forget(key)
                queue.done(key)

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(worker())
            for _ in range(60):
                key = rng.randrange(5)
                wanted[key] = wanted.get(key, 0) + 1
                if rng.random() < 0.3:
                    queue.add_after(key, rng.uniform(0, 2))
                else:
                    queue.add(key)
                await asyncio.sleep(rng.uniform(0, 0.1))
            # Failures come back with backoff; nothing else is outstanding after an hour.
            await asyncio.sleep(3600)
            queue.close()

    run_virtually(body())
    assert seen == wanted


def test_of_several_wishes_for_later_the_earliest_wins() -> None:
    async def body() -> None:
        queue: WorkQueue[str] = WorkQueue()
        start = now()
        for delay in (30, 10, 20):
            queue.add_after("a", delay)
        assert await queue.get() == "a"
        assert now() - start == pytest.approx(10)
        queue.done("a")
        await asyncio.sleep(100)
        assert len(queue) == 0

    run_virtually(body())


def test_a_wish_for_later_survives_a_pass_in_between() -> None:
    async def body() -> None:
        queue: WorkQueue[str] = WorkQueue()
        start = now()
        queue.add_after("a", 10)
        queue.add("a")
        assert await queue.get() == "a"
        queue.done("a")
        assert await queue.get() == "a"
        assert now() - start == pytest.approx(10)

    run_virtually(body())


def test_what_is_added_during_a_rest_is_gathered_for_one_pass() -> None:
    async def body() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        assert await queue.get() == "a"
        start = now()
        queue.add("a")
        queue.done("a", rest=10)
        for _ in range(5):
            await asyncio.sleep(1)
            queue.add("a")
            queue.add("b")
            assert await queue.get() == "b", "another key does not rest"
            queue.done("b")
        assert await queue.get() == "a"
        assert now() - start == pytest.approx(10)
        queue.done("a")
        assert len(queue) == 0

    run_virtually(body())


def test_a_rest_in_which_nothing_is_added_makes_nothing_due() -> None:
    async def body() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        await queue.get()
        queue.done("a", rest=10)
        await asyncio.sleep(20)
        assert len(queue) == 0
        start = now()
        queue.add("a")
        assert await queue.get() == "a"
        assert now() == start, "the rest is over"

    run_virtually(body())


def test_a_time_that_was_asked_for_ends_a_rest() -> None:
    async def body() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        await queue.get()
        start = now()
        queue.add_after("a", 3)
        queue.done("a", rest=10)
        queue.add("a")
        assert await queue.get() == "a"
        assert now() - start == pytest.approx(3)
        queue.done("a")
        await asyncio.sleep(20)
        assert len(queue) == 0, "the end of the rest that was cut short does not count"

    run_virtually(body())


async def test_closing_ends_rests_too() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.done("a", rest=10)
    queue.add("a")
    queue.close()
    with pytest.raises(QueueClosed):
        await queue.get()


def test_pauses_double_up_to_a_limit_and_start_anew_after_success() -> None:
    async def body() -> None:
        queue: WorkQueue[str] = WorkQueue(first_backoff=1, longest_backoff=60)
        pauses = [queue.add_failed("a") for _ in range(2000)]
        for power, pause in enumerate(pauses[:6]):
            assert 0.75 * 2**power <= pause <= 1.25 * 2**power
        assert all(45 <= pause <= 75 for pause in pauses[6:])
        assert queue.add_failed("a", at_least=500) == 500
        queue.forget("a")
        assert queue.add_failed("a") <= 1.25
        queue.close()

    run_virtually(body())


async def test_closing_ends_all_workers_and_takes_no_more() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waiting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    assert all(isinstance(end, QueueClosed) for end in await asyncio.gather(*waiting, return_exceptions=True))
    queue.add("a")
    queue.add_after("a", 0.001)
    assert len(queue) == 0
