"""Lanes take turns, none has all workers, and in each the order is that of arrival."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slinky_operator.runtime.controller import Controller, Result
from slinky_operator.runtime.lanes import Lanes, share_of
from tests.unit.runtime.virtual_time import now, run_virtually

Key = tuple[str, int]

STEPS = st.lists(st.one_of(st.sampled_from("abcd"), st.integers(0, 3)), max_size=120)
"""A letter lets a key of that lane wait, a number is that of the key that is given back; 3 takes one."""


def lane_of(key: Key) -> str:
    return key[0]


class Model:
    """Takes keys as the queue does, and notes who waited for whom."""

    def __init__(self, share: int | None) -> None:
        self.share = share
        self.lanes: Lanes[Key] = Lanes(lane_of, share)
        self.waiting: list[Key] = []
        self.out: list[Key] = []
        self.turns: dict[str, Counter[str]] = {}
        """By lane with keys and room: turns that others have had since it has both, or had its own."""
        self._number = 0

    def has_room(self, lane: str) -> bool:
        return self.share is None or sum(key[0] == lane for key in self.out) < self.share

    def ready(self) -> set[str]:
        return {lane for lane, _ in self.waiting if self.has_room(lane)}

    def put(self, lane: str) -> None:
        key = lane, self._number
        self._number += 1
        self.waiting.append(key)
        self.lanes.put(key)
        self.note()

    def give_back(self, place: int) -> None:
        if self.out:
            self.lanes.give_back(self.out.pop(place % len(self.out)))
            self.note()

    def take(self) -> None:
        assert self.lanes.may_take() is bool(self.ready())
        if not self.ready():
            with pytest.raises(LookupError):
                self.lanes.take()
            return
        key = self.lanes.take()
        lane = lane_of(key)
        assert key == next(one for one in self.waiting if one[0] == lane), "in a lane the first comes first"
        assert lane in self.ready()
        self.waiting.remove(key)
        self.out.append(key)
        del self.turns[lane]
        for turns in self.turns.values():
            turns[lane] += 1
            assert turns[lane] <= 1, "no lane has two turns while another waits"
        self.note()

    def note(self) -> None:
        ready = self.ready()
        self.turns = {lane: self.turns.get(lane, Counter()) for lane in ready}


@given(steps=STEPS, share=st.sampled_from([None, 1, 2, 3]))
def test_no_lane_waits_for_more_than_one_turn_of_each_other_and_nothing_is_lost(
    steps: list[str | int], share: int | None
) -> None:
    model = Model(share)
    for step in steps:
        if isinstance(step, str):
            model.put(step)
        elif step == 3:
            model.take()
        else:
            model.give_back(step)
    while model.waiting:
        while model.out:
            model.give_back(0)
        model.take()
    assert not model.lanes.may_take()


@pytest.mark.parametrize("workers", range(1, 40))
def test_of_several_workers_one_lane_has_most_and_not_all(workers: int) -> None:
    share = share_of(workers)
    assert share >= 1
    assert workers == 1 or workers / 2 <= share < workers


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_a_key_of_another_namespace_waits_for_one_turn(workers: int) -> None:
    async def body() -> None:
        begun: list[Key] = []

        async def reconcile(key: Key) -> Result:
            begun.append(key)
            await asyncio.sleep(1)
            return Result()

        controller: Controller[Key] = Controller("test", reconcile, workers=workers, lane=lane_of)
        for number in range(1000):
            controller.queue.add(("many", number))
        controller.queue.add(("one", 0))
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(10_000)
        assert begun.index(("one", 0)) <= 1
        begun.remove(("one", 0))
        assert begun == [("many", number) for number in range(1000)]
        await controller.stop(1)
        await running

    run_virtually(body())


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_passes_that_hang_leave_workers_to_other_namespaces(workers: int) -> None:
    async def body() -> None:
        done: list[tuple[Key, float]] = []

        async def reconcile(key: Key) -> Result:
            if lane_of(key) == "hangs":
                await asyncio.sleep(10_000)
            done.append((key, now()))
            return Result()

        controller: Controller[Key] = Controller("test", reconcile, workers=workers, timeout=100, lane=lane_of)
        for number in range(1000):
            controller.queue.add(("hangs", number))
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(5)
        start = now()
        for number in range(20):
            controller.queue.add(("other", number))
        await asyncio.sleep(50)
        assert [key for key, _ in done] == [("other", number) for number in range(20)]
        assert all(at == pytest.approx(start) for _, at in done)
        running.cancel()
        await asyncio.wait([running])

    run_virtually(body())


def test_keys_without_a_lane_have_all_workers() -> None:
    async def body() -> None:
        busy: set[int] = set()

        async def reconcile(key: int) -> Result:
            busy.add(key)
            await asyncio.sleep(100)
            return Result()

        controller: Controller[int] = Controller("test", reconcile, workers=4)
        for number in range(4):
            controller.queue.add(number)
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(5)
        assert busy == {0, 1, 2, 3}
        await controller.stop(1000)
        await running

    run_virtually(body())
