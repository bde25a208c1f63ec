"""A background task does not die unnoticed."""

from __future__ import annotations

import asyncio

import pytest

from slinky_operator.runtime.tasks import Supervisor, TaskCrashed


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_crash_ends_the_wait_and_names_the_task() -> None:
    async def crash() -> None:
        raise OSError("disk on fire")

    async with Supervisor() as supervisor:
        supervisor.start("steady", forever())
        supervisor.start("shaky", crash())
        with pytest.raises(TaskCrashed, match="shaky: OSError: disk on fire") as caught:
            await supervisor.wait(asyncio.Event())
        assert caught.value.name == "shaky"
        assert supervisor.crashed() == "shaky: OSError: disk on fire"


async def test_a_task_that_just_returns_has_crashed_too() -> None:
    async def brief() -> None:
        await asyncio.sleep(0)

    async with Supervisor() as supervisor:
        supervisor.start("brief", brief())
        with pytest.raises(TaskCrashed, match="exited without being stopped"):
            await supervisor.wait()


class MeantError(Exception):
    expected = True


async def test_an_end_that_is_meant_to_be_says_what_it_is_and_needs_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    async def ends() -> None:
        raise MeantError("leadership lost: somebody else has it")

    async with Supervisor() as supervisor:
        supervisor.start("election", ends())
        with pytest.raises(TaskCrashed, match=r"^leadership lost: somebody else has it$"):
            await supervisor.wait()
    assert caplog.records == []


async def test_a_task_cancelled_by_a_stranger_has_crashed_too() -> None:
    async with Supervisor() as supervisor:
        supervisor.start("victim", forever())
        next(task for task in asyncio.all_tasks() if task.get_name() == "victim").cancel()
        with pytest.raises(TaskCrashed, match="victim"):
            await supervisor.wait()


async def test_tasks_are_stopped_in_reverse_order() -> None:
    ended: list[str] = []

    async def body(name: str) -> None:
        try:
            await forever()
        finally:
            ended.append(name)

    stop = asyncio.Event()
    async with Supervisor() as supervisor:
        for name in ("client", "informer", "controller"):
            supervisor.start(name, body(name))
        await asyncio.sleep(0)
        stop.set()
        await supervisor.wait(stop)
    assert ended == ["controller", "informer", "client"]
    assert supervisor.crashed() is None


async def test_two_tasks_cannot_have_one_name() -> None:
    async with Supervisor() as supervisor:
        supervisor.start("a", forever())
        with pytest.raises(ValueError, match="already running"):
            supervisor.start("a", forever())
