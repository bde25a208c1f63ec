"""The watched ConfigMap: nothing is known before it was listed, and what is invalid is reported once."""

from __future__ import annotations

import asyncio
from typing import cast

from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.node_labels.config_format import LONGEST_TEXT
from slinky_operator.node_labels.config_map import LabelConfig
from tests.support.memory_kube import MemoryKube

KEY = ("site", "slurm-config")


class World:
    """An API server in memory with the ConfigMap, or without."""

    def __init__(self, data: dict[str, str] | None = None) -> None:
        self.kube = MemoryKube()
        self.told: list[str] = []
        self.config = LabelConfig(cast("KubeClient", self.kube), self, KEY)
        if data is not None:
            self.kube.put(CONFIGMAPS, {"metadata": {"namespace": KEY[0], "name": KEY[1]}, "data": data})

    def warning(self, obj: Object, reason: str, message: str) -> None:
        assert (obj["metadata"]["namespace"], obj["metadata"]["name"]) == KEY
        self.told.append(f"{reason}: {message}")

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.warning(obj, reason, message)

    async def listed(self) -> asyncio.Task[None]:
        """Watch it, until it was listed and reported."""
        told = asyncio.Event()
        self.config.subscribe(told.set)
        task = asyncio.create_task(self.config.run())
        async with asyncio.timeout(60):
            _ = await told.wait()
        return task


async def test_nothing_is_known_before_it_was_listed() -> None:
    world = World({"config": "worker-1: {}"})
    assert await world.config.read() is None
    task = await world.listed()
    assert list(await world.config.read() or {}) == ["worker-1"]
    _ = task.cancel()


async def test_one_that_does_not_exist_wants_nothing_and_events_on_it_are_possible() -> None:
    world = World()
    task = await world.listed()
    assert await world.config.read() == {}
    world.config.warn("A", "b")
    world.config.mention("C", "d")
    assert world.told == ["A: b", "C: d"]
    _ = task.cancel()


async def test_one_that_is_invalid_is_told_once_for_all_nodes() -> None:
    world = World({"config": "worker-1: [x]"})
    task = await world.listed()
    for _ in range(3):
        assert await world.config.read() is None
    (told,) = world.told
    assert told.startswith("NodeLabelsInvalid: data.config: worker-1 (line 1): is no mapping")
    _ = task.cancel()


async def test_without_its_key_or_with_too_long_a_text_it_is_invalid() -> None:
    for data, words in (({"other": "x"}, "data.config: is missing"), ({"config": "#" * 900_000}, str(LONGEST_TEXT))):
        world = World(data)
        task = await world.listed()
        assert await world.config.read() is None
        (told,) = world.told
        assert words in told
        _ = task.cancel()
