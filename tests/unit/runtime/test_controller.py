"""Passes are repeated, failures are retried, and no failure ends a worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise

import pytest
from typing_extensions import override

from slinky_operator.metrics.process import Metrics
from slinky_operator.runtime.controller import Controller, Result
from slinky_operator.runtime.queue import QueueClosed, WorkQueue
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


def test_a_gate_that_closes_again_holds_up_later_passes() -> None:
    async def body() -> None:
        seen: list[str] = []

        async def reconcile(key: str) -> Result:
            seen.append(key)
            return Result()

        leading = asyncio.Event()
        leading.set()
        controller = Controller("test", reconcile, gates=[leading])
        running = asyncio.create_task(controller.run())
        controller.queue.add("a")
        await asyncio.sleep(1)
        leading.clear()
        for key in "bcb":
            controller.queue.add(key)
        await asyncio.sleep(60)
        assert seen == ["a"]
        leading.set()
        await asyncio.sleep(1)
        assert seen == ["a", "b", "c"]
        leading.clear()
        controller.queue.add("d")
        await asyncio.sleep(1)
        began = now()
        await controller.stop(30)
        assert now() - began < 1
        await running
        assert seen == ["a", "b", "c"]

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


def test_passes_that_wait_for_nothing_leave_the_loop_to_others() -> None:
    async def body() -> None:
        workers, passes = 4, 0
        most = 0

        async def reconcile(_: int) -> Result:
            nonlocal passes
            passes += 1
            return Result()

        async def other() -> None:
            nonlocal most
            while passes < 100:
                before = passes
                await asyncio.sleep(0)
                most = max(most, passes - before)

        controller = Controller("test", reconcile, workers=workers)
        for key in range(100):
            controller.queue.add(key)
        running = asyncio.create_task(controller.run())
        await other()
        assert most <= workers
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


@pytest.mark.parametrize("second", [None, ValueError("bug"), asyncio.CancelledError(), BusyError(), "hangs"])
def test_what_a_pass_has_ended_with_is_handed_on_and_comes_back_whatever_becomes_of_that(
    second: BaseException | str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        told: list[tuple[str, BaseException]] = []
        passes = 0

        async def reconcile(_: str) -> Result:
            nonlocal passes
            passes += 1
            if passes == 1:
                raise RefusedError("no")
            if passes == 2:
                await asyncio.sleep(1000)
            return Result()

        async def tell(key: str, error: BaseException) -> None:
            told.append((key, error))
            if isinstance(second, str):
                await asyncio.sleep(1000)
            elif second is not None:
                raise second

        controller = Controller("test", reconcile, tell=tell, timeout=100)
        running = asyncio.create_task(controller.run())
        controller.queue.add("a")
        await asyncio.sleep(2000)
        assert [(key, type(error)) for key, error in told] == [("a", RefusedError), ("a", TimeoutError)]
        assert passes == 3
        assert controller.unhealthy() is None
        await controller.stop(1)
        await running

    run_virtually(body())
    assert ("cannot show it on the object" in caplog.text) is (second is not None)


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


class UnspeakableError(Exception):
    @override
    def __str__(self) -> str:
        raise ValueError("no words")


class HostileRetryError(Exception):
    expected = False
    retry_after = "soon"


async def waits_for_what_somebody_cancels() -> None:
    shared: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(1, shared.cancel)
    await asyncio.shield(shared)


async def waits_in_groups_for_what_somebody_cancels() -> None:
    async with asyncio.TaskGroup() as group:
        _ = group.create_task(asyncio.gather(waits_for_what_somebody_cancels()))  # type: ignore[arg-type]
        await waits_for_what_somebody_cancels()


async def recurs() -> None:
    await recurs()


def raising(error: BaseException) -> Callable[[], Awaitable[None]]:
    async def fails() -> None:
        raise error

    return fails


WAYS_TO_FAIL: Sequence[Callable[[], Awaitable[None]]] = (
    waits_for_what_somebody_cancels,
    waits_in_groups_for_what_somebody_cancels,
    recurs,
    raising(asyncio.CancelledError()),
    raising(asyncio.CancelledError("by name")),
    raising(BaseExceptionGroup("side by side", [asyncio.CancelledError(), ValueError("bug")])),
    raising(ExceptionGroup("deep", [ExceptionGroup("deeper", [BusyError()])])),
    raising(MemoryError()),
    raising(SystemExit(1)),
    raising(StopAsyncIteration()),
    raising(QueueClosed()),
    raising(TimeoutError()),
    raising(UnspeakableError()),
    raising(HostileRetryError()),
)


@pytest.mark.parametrize("fail", WAYS_TO_FAIL)
def test_no_pass_ends_a_worker_whatever_it_raises(
    fail: Callable[[], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def body() -> None:
        tries = dict.fromkeys("abc", 0)

        async def reconcile(key: str) -> Result:
            tries[key] += 1
            if tries[key] < 4:
                await fail()
            return Result()

        controller = Controller("test", reconcile, workers=2, describe=lambda key: ("Thing", "here", key))
        running = asyncio.create_task(controller.run())
        for key in tries:
            controller.queue.add(key)
        await asyncio.sleep(1000)
        assert tries == dict.fromkeys("abc", 4)
        assert controller.unhealthy() is None
        assert not running.done()
        await controller.stop(1)
        await running

    run_virtually(body())
    assert [record for record in caplog.records if record.levelno >= logging.CRITICAL] == []
    assert len([record for record in caplog.records if "gain" in record.getMessage()]) == 9


def test_a_metric_or_a_name_that_fails_ends_no_worker_either() -> None:
    class Broken:
        def __getattr__(self, name: str) -> Callable[..., None]:
            def fails(*_: object) -> None:
                if name in {"reconciled", "workers"}:
                    raise ValueError(name)

            return fails

    def nameless(key: str) -> tuple[str, str | None, str]:
        raise ValueError(key)

    async def body(controller: Controller[str]) -> None:
        running = asyncio.create_task(controller.run())
        controller.queue.add("a")
        await asyncio.sleep(10_000)
        assert controller.unhealthy() is None
        assert not running.done()
        assert controller.queue.failures("a") > 5
        await controller.stop(1)
        await running

    async def reconcile(_: str) -> Result:
        return Result()

    async def both() -> None:
        await body(Controller("test", reconcile, metrics=Broken(), queue=WorkQueue()))
        await body(Controller("test", reconcile, describe=nameless))

    run_virtually(both())


def test_a_worker_that_is_to_end_ends_even_if_a_pass_swallows_that() -> None:
    async def body() -> None:
        swallowed = 0

        async def reconcile(_: str) -> Result:
            nonlocal swallowed
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                swallowed += 1
            return Result(requeue_after=1)

        controller = Controller("test", reconcile, workers=1)
        running = asyncio.create_task(controller.run())
        controller.queue.add("a")
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        assert swallowed == 1

    run_virtually(body())


def test_what_ends_a_worker_is_logged_with_its_object(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async def reconcile(_: str) -> Result:
            raise GeneratorExit

        controller = Controller("test", reconcile, workers=1)
        running = asyncio.create_task(controller.run())
        controller.queue.add("here/a")
        await asyncio.wait([running])
        assert controller.unhealthy() == "test: 1 of 1 workers have ended"
        assert running.exception() is not None

    run_virtually(body())
    told = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert [record.getMessage() for record in told] == ["test: a worker has exited unexpectedly in a pass over here/a"]


def test_workers_that_end_because_they_are_to_are_no_reason_to_restart() -> None:
    async def body() -> None:
        async def reconcile(_: str) -> Result:
            return Result()

        controller = Controller("test", reconcile)
        running = asyncio.create_task(controller.run())
        await asyncio.sleep(1)
        await controller.stop(1)
        await running
        assert controller.unhealthy() is None

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
