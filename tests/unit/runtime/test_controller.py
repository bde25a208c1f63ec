"""Passes are repeated, failures come back, and no failure ends a worker."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise

import pytest

from slinky_operator.runtime.controller import Controller, Result
from slinky_operator.runtime.metrics import Metrics
from tests.unit.runtime.virtual_time import now, run_virtually


class BusyError(Exception):
    expected = True

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


class RefusedError(Exception):
    expected = False
    retry_after = None


def test_nothing_is_reconciled_before_every_gate_has_opened() -> None:
    async def body() -> None:
        seen: list[str] = []

        async def reconcile(key: str) -> Result:
            seen.append(key)
            return Result()

        pods, nodes = asyncio.Event(), asyncio.Event()
        controller = Controller("test", reconcile, gates=[pods, nodes])
        controller.queue.add("a")
        running = asyncio.create_task(controller.run())
        pods.set()
        await asyncio.sleep(60)
        assert seen == []
        nodes.set()
        await asyncio.sleep(60)
        assert seen == ["a"]
        await controller.stop(1)
        await running

    run_virtually(body())


def test_a_result_says_when_to_come_again() -> None:
    async def body() -> None:
        at: list[float] = []

        async def reconcile(_: str) -> Result:
            at.append(now())
            return Result(requeue_after=10 if len(at) < 3 else None)

        controller = Controller("test", reconcile)
        running = asyncio.create_task(controller.run())
        controller.queue.add("a")
        await asyncio.sleep(1000)
        assert [round(b - a) for a, b in pairwise(at)] == [10, 10]
        await controller.stop(1)
        await running

    run_virtually(body())


def test_a_result_says_for_how_long_changes_are_gathered() -> None:
    async def body() -> None:
        at: list[float] = []

        async def reconcile(_: str) -> Result:
            at.append(now())
            return Result(rest=10)

        controller = Controller("test", reconcile)
        running = asyncio.create_task(controller.run())
        for _ in range(35):
            controller.queue.add("a")
            await asyncio.sleep(1)
        assert [round(b - a) for a, b in pairwise(at)] == [10, 10, 10]
        await controller.stop(1)
        await running

    run_virtually(body())


@pytest.mark.parametrize(
    ("error", "level", "trace"),
    [
        (BusyError(), logging.INFO, False),
        (RefusedError("no"), logging.ERROR, False),
        (ValueError("bug"), logging.ERROR, True),
        (ExceptionGroup("side by side", [BusyError(7.0), BusyError()]), logging.INFO, False),
        (ExceptionGroup("side by side", [BusyError(), ValueError("bug")]), logging.ERROR, True),
    ],
)
def test_a_failure_is_logged_by_its_type_and_comes_back(
    error: Exception, level: int, trace: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def body() -> int:
        calls = 0

        async def reconcile(_: str) -> Result:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise error
            return Result()

        controller = Controller("test", reconcile, workers=1, metrics=Metrics().controller("test"))
        running = asyncio.create_task(controller.run())
        controller.queue.add("a")
        await asyncio.sleep(1000)
        assert controller.queue.failures("a") == 0
        await controller.stop(1)
        await running
        return calls

    assert run_virtually(body()) == 2
    records = [r for r in caplog.records if "trying again" in r.getMessage()]
    assert [(r.levelno, bool(r.exc_info)) for r in records] == [(level, trace)]


def test_a_failure_that_says_how_long_to_wait_is_waited_for() -> None:
    async def body() -> None:
        at: list[float] = []

        async def reconcile(_: str) -> Result:
            at.append(now())
            if len(at) == 1:
                raise BusyError(retry_after=42)
            return Result()

        controller = Controller("test", reconcile)
        running = asyncio.create_task(controller.run())
        controller.queue.add("a")
        await asyncio.sleep(1000)
        assert at[1] - at[0] == pytest.approx(42)
        await controller.stop(1)
        await running

    run_virtually(body())


def test_a_key_that_hangs_delays_no_other_and_is_ended_by_the_timeout() -> None:
    async def body() -> None:
        done: list[tuple[str, float]] = []

        async def reconcile(key: str) -> Result:
            if key == "hangs":
                await asyncio.sleep(10_000)
            done.append((key, now()))
            return Result()

        controller = Controller("test", reconcile, workers=2, timeout=100)
        running = asyncio.create_task(controller.run())
        start = now()
        for key in ("hangs", "a", "b", "c"):
            controller.queue.add(key)
        await asyncio.sleep(50)
        assert [key for key, _ in done] == ["a", "b", "c"]
        assert all(at == pytest.approx(start) for _, at in done)
        await asyncio.sleep(60)
        assert controller.queue.failures("hangs") == 1
        assert controller.unhealthy() is None
        running.cancel()
        await asyncio.wait([running])
        assert controller.unhealthy() == "test: 2 of 2 workers have ended"

    run_virtually(body())


def test_stopping_lets_passes_under_way_finish() -> None:
    async def body() -> None:
        finished: list[str] = []

        async def reconcile(key: str) -> Result:
            await asyncio.sleep(5)
            finished.append(key)
            return Result()

        controller = Controller("test", reconcile, workers=1)
        running = asyncio.create_task(controller.run())
        controller.queue.add("a")
        controller.queue.add("b")
        await asyncio.sleep(1)
        await controller.stop(grace=60)
        await running
        assert finished == ["a"]

    run_virtually(body())
