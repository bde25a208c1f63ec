"""A blocked event loop is detected from outside."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from slinky_operator.runtime.loop_lag import LoopLag


async def measured(lags: list[float]) -> None:
    """Wait for another measurement."""
    before = len(lags)
    while len(lags) == before:  # noqa: ASYNC110 - nothing tells of a measurement
        await asyncio.sleep(0.01)


async def test_a_stall_is_measured_and_its_place_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    lags: list[float] = []
    lag = LoopLag(lags.append, interval=0.01, stuck=0.05)
    task = asyncio.create_task(lag.run())
    # On a busy machine the loop may be late by itself, and each stall is reported once: then it is blocked again.
    while "time.sleep" not in caplog.text:
        await measured(lags)
        caplog.clear()
        given_up = time.monotonic() + 1
        # Block the loop until the watching thread has spoken.
        while not caplog.records and time.monotonic() < given_up:
            time.sleep(0.02)  # noqa: ASYNC251 - the stall itself
    await measured(lags)
    task.cancel()
    await asyncio.wait([task])
    # The thread counts from the last turn, the lag from when the next one was due.
    assert max(lags) >= 0.05 - 0.01
    assert "test_a_stall_is_measured_and_its_place_is_logged" in caplog.text
