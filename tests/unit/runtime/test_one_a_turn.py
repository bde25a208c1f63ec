"""Work of which one piece is begun in a turn of the event loop."""

from __future__ import annotations

import asyncio

from slinky_operator.runtime.one_a_turn import OneATurn


async def test_those_who_come_together_begin_one_after_the_other_in_turns_of_their_own() -> None:
    gate, loop, turn = OneATurn(), asyncio.get_running_loop(), 0
    begun: list[tuple[int, int]] = []

    def count() -> None:
        nonlocal turn
        turn += 1
        loop.call_soon(count)

    async def work(number: int) -> None:
        await gate.turn()
        begun.append((number, turn))

    loop.call_soon(count)
    await asyncio.gather(*(work(number) for number in range(50)))
    assert [number for number, _ in begun] == list(range(50))
    assert len({turn for _, turn in begun}) == 50


async def test_one_who_gives_up_keeps_nobody_waiting() -> None:
    gate = OneATurn()
    tasks = [asyncio.create_task(gate.turn()) for _ in range(4)]
    await asyncio.sleep(0)
    for task in tasks[:3]:
        task.cancel()
    async with asyncio.timeout(60):
        await tasks[3]
