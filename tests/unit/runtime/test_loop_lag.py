"""A loop that hangs is seen from outside."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from slinky_operator.runtime.loop_lag import LoopLag


async def test_a_stall_is_measured_and_its_place_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    lags: list[float] = []
    lag = LoopLag(lags.append, interval=0.01, stuck=0.05)
    task = asyncio.create_task(lag.run())
    while not lags:  # noqa: ASYNC110 - nothing tells of a measurement
        await asyncio.sleep(0.01)
    # Block the loop until the watching thread has spoken.
    while not caplog.records:
        time.sleep(0.02)  # noqa: ASYNC251 - the stall itself
    before = len(lags)
    while len(lags) == before:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert max(lags) >= 0.05
    assert "test_a_stall_is_measured_and_its_place_is_logged" in caplog.text
    assert "time.sleep" in caplog.text
