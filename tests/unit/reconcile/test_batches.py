"""Concurrent calls: each with its own result, never too many, and few that fail for the same reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from slinky_operator.reconcile.batches import UNDER_WAY, few_first, gather_limited


@dataclass
class Server:
    """Answers when the test lets it."""

    begun: int = 0
    under_way: int = 0
    most: int = 0
    answers: list[asyncio.Event] = field(default_factory=list)

    async def call(self) -> int:
        number, answer = self.begun, asyncio.Event()
        self.begun += 1
        self.answers.append(answer)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await answer.wait()
        self.under_way -= 1
        return number

    def answer(self, count: int) -> None:
        for one in [event for event in self.answers if not event.is_set()][:count]:
            one.set()

    async def answer_all(self, task: asyncio.Task[Any]) -> None:
        while not task.done():
            self.answer(UNDER_WAY)
            await asyncio.sleep(0)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("count", [0, 1, UNDER_WAY, 3 * UNDER_WAY + 1])
async def test_each_call_has_its_result_and_few_are_under_way(count: int) -> None:
    server = Server()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(gather_limited(server.call() for _ in range(count)))
        await settled()
        await server.answer_all(task)
    assert task.result() == list(range(count))
    assert server.most == min(count, UNDER_WAY)


async def test_an_error_is_the_result_of_its_own_call_only() -> None:
    async def call(number: int) -> int:
        if number % 2:
            raise ValueError(number)
        return number

    found = await gather_limited(call(number) for number in range(120))
    assert [isinstance(one, ValueError) for one in found] == [bool(number % 2) for number in range(120)]


def calls(server: Server, goes_well: Callable[[int], bool], count: int) -> Iterator[Awaitable[bool]]:
    async def one() -> bool:
        return goes_well(await server.call())

    return (one() for _ in range(count))


async def test_once_one_has_succeeded_many_are_under_way() -> None:
    server = Server()
    task = asyncio.create_task(few_first(calls(server, lambda _: True, 500), 8))
    await settled()
    assert server.under_way == 8
    server.answer(1)
    await settled()
    assert server.under_way == UNDER_WAY, "the others are not waited for"
    await server.answer_all(task)
    assert server.begun == 500
    assert server.most == UNDER_WAY


async def test_what_is_refused_is_refused_few_times() -> None:
    server = Server()
    task = asyncio.create_task(few_first(calls(server, lambda _: False, 500), 8))
    await server.answer_all(task)
    assert server.begun == 8


async def test_after_a_failure_no_further_call_is_begun_and_those_under_way_are_waited_for() -> None:
    server = Server()
    task = asyncio.create_task(few_first(calls(server, lambda number: number != 20, 500), 8))
    await settled()
    server.answer(21)
    while server.begun < 21:
        server.answer(1)
        await settled()
    server.answers[20].set()
    await settled()
    begun = server.begun
    assert not task.done()
    await server.answer_all(task)
    assert server.begun == begun
    assert server.under_way == 0


@pytest.mark.parametrize("turns", range(6))
async def test_cancelled_at_any_turn_no_call_is_left_that_nobody_awaits(turns: int) -> None:
    begun: list[str] = []

    async def call(name: str) -> bool:
        begun.append(name)
        await asyncio.sleep(0)
        return True

    def taken(name: str, count: int) -> Iterator[Awaitable[bool]]:
        for _ in range(count):
            made.append(name)
            yield call(name)

    made: list[str] = []
    both = gather_limited(taken("side by side", 200)), few_first(taken("few first", 200), 8)
    tasks = [asyncio.create_task(one) for one in both]
    for _ in range(turns):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun == made
