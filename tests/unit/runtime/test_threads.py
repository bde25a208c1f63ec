"""Pools of threads: nothing is begun twice, nobody takes all, and what waits has a limit."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from slinky_operator.runtime.threads import Busy, Pool


class Gate:
    """A call that ends when it may."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        self.begun.set()
        assert self.may_end.wait(60)
        return self.calls


async def begun(gate: Gate) -> None:
    assert await asyncio.get_running_loop().run_in_executor(None, gate.begun.wait, 60)


async def test_it_runs_in_a_thread_with_the_context_of_its_caller() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    _ = name.set("given")
    pool = Pool("test", 1)
    where, what = await pool.run(("a", "1"), lambda: (threading.current_thread().name, name.get()))
    assert (where.startswith("test"), what) == (True, "given")


async def test_an_error_is_the_callers() -> None:
    pool = Pool("test", 1)
    with pytest.raises(ZeroDivisionError):
        await pool.run(("a", "1"), lambda: 1 // 0)
    assert await pool.run(("a", "1"), lambda: 1) == 1


async def test_a_call_that_was_given_up_is_not_begun_a_second_time_beside_itself() -> None:
    pool, gate, second = Pool("test", 4), Gate(), Gate()
    first = asyncio.create_task(pool.run(("a", "1"), gate))
    await begun(gate)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert pool.has(("a", "1"))
    again = asyncio.create_task(pool.run(("a", "1"), second))
    # Another key of the same namespace has a thread meanwhile.
    assert await pool.run(("a", "2"), lambda: "other") == "other"
    assert second.calls == 0
    second.may_end.set()
    gate.may_end.set()
    assert await again == 1
    assert (gate.calls, second.calls) == (1, 1)


async def test_a_call_that_was_given_up_before_it_began_never_runs() -> None:
    pool, gate, never = Pool("test", 1), Gate(), Gate()
    first = asyncio.create_task(pool.run(("a", "1"), gate))
    await begun(gate)
    waits = asyncio.create_task(pool.run(("a", "2"), never))
    await asyncio.sleep(0)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    gate.may_end.set()
    assert await first == 1
    assert await pool.run(("a", "3"), lambda: 3) == 3
    assert never.calls == 0


async def test_one_namespace_never_has_all_threads() -> None:
    pool, gates = Pool("test", 2), [Gate(), Gate()]
    running = [asyncio.create_task(pool.run(("a", str(number)), gate)) for number, gate in enumerate(gates)]
    await begun(gates[0])
    assert await pool.run(("b", "1"), lambda: "b") == "b"
    assert gates[1].calls == 0
    for gate in gates:
        gate.may_end.set()
    assert await asyncio.gather(*running) == [1, 1]


async def test_namespaces_take_turns() -> None:
    pool, gate = Pool("test", 1), Gate()
    order: list[str] = []
    first = asyncio.create_task(pool.run(("a", "0"), gate))
    await begun(gate)
    names = ("a1", "a2", "a3", "b1")
    running = [asyncio.create_task(pool.run((name[0], name), order.append, name)) for name in names]
    await asyncio.sleep(0)
    gate.may_end.set()
    await asyncio.gather(first, *running)
    assert order.index("b1") <= 1


async def test_what_waits_has_a_limit_for_all_and_for_each_namespace() -> None:
    pool, gate = Pool("test", 1, most=3, most_of_a_namespace=2), Gate()
    running = [asyncio.create_task(pool.run(("a", "0"), gate))]
    await begun(gate)
    running += [asyncio.create_task(pool.run(("a", "1"), int, text)) for text in ("1", "2")]
    await asyncio.sleep(0)
    with pytest.raises(Busy, match="in namespace a"):
        await pool.run(("a", "3"), lambda: 3)
    running.append(asyncio.create_task(pool.run(("b", "1"), lambda: 4)))
    await asyncio.sleep(0)
    with pytest.raises(Busy) as told:
        await pool.run(("b", "2"), lambda: 5)
    # The controllers repeat such a pass, without a stack trace.
    assert (told.value.expected, told.value.retry_after) == (True, 5.0)
    gate.may_end.set()
    await asyncio.gather(*running)
    assert await pool.run(("b", "2"), lambda: 5) == 5


async def test_thousands_of_calls_leave_nothing_behind() -> None:
    pool = Pool("test", 2, most=10_000, most_of_a_namespace=10_000)
    keys = [(f"{number % 3}", str(number % 50)) for number in range(2000)]
    found = await asyncio.gather(*(pool.run(key, int, str(number)) for number, key in enumerate(keys)))
    assert found == list(range(2000))
    while any(pool.has(key) for key in keys):  # noqa: ASYNC110 - threads set no event of the loop
        await asyncio.sleep(0)
