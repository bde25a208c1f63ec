"""A failed pass over a Cluster ends in a condition and an Event, and the next successful one clears it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from slinky_operator.cluster import controller
from slinky_operator.kube.resources import EVENTS
from tests.integration.cluster.conftest import Bench, applied, message, ready, reason
from tests.support.admission import refused

WORDS = "pods are not to be changed today"


async def warnings(bench: Bench, word: str) -> list[str]:
    events = (await bench.kube.list(EVENTS, bench.namespace)).items
    return [one["message"] for one in events if one["reason"] == word and one["type"] == "Warning"]


async def test_a_refused_write_is_told_where_the_user_looks(bench: Bench) -> None:
    await bench.create()
    async with bench.operator():
        await bench.until(ready)
        async with refused(bench.kube, bench.namespace, "UPDATE", "pods", WORDS):
            generation = await bench.edit({"extraConf": "MessageTimeout=21"})
            status = (await bench.until(reason("Degraded", "Forbidden")))["status"]
            assert WORDS in message(status, "Degraded")
            assert "patch pods" in message(status, "Ready")
            assert status["isReady"] is False
            while not any(WORDS in text for text in await warnings(bench, "Forbidden")):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        status = (await bench.until(lambda status: applied(generation, status)))["status"]
        assert next(one["status"] for one in status["conditions"] if one["type"] == "Degraded") == "False"


async def test_a_mistake_of_the_operators_is_told_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.create()

    def broken(*_: Any) -> None:
        raise KeyError("what only the log may say")

    async with bench.operator():
        await bench.until(ready)
        with monkeypatch.context() as patched:
            patched.setattr(controller, "plan", broken)
            generation = await bench.edit({"extraConf": "MessageTimeout=21"})
            status = (await bench.until(reason("Degraded", "InternalError")))["status"]
            assert f"Cluster {bench.namespace}/slurm: trying again" in message(status, "Degraded")
            assert "only the log" not in message(status, "Degraded")
        await bench.until(lambda status: applied(generation, status))
