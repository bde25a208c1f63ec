"""What was read of Secrets is bounded, and forgotten when nobody uses it."""

from __future__ import annotations

import base64
from typing import Any, cast

import pytest

from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.resources import SECRETS
from slinky_operator.reconcile import secrets
from slinky_operator.reconcile.secrets import UNUSED, SecretReader
from tests.support.memory_kube import MemoryKube
from tests.unit.kube.fake_api import eventually

KIB = 2**10


class World:
    """Secrets, and what was read of them."""

    def __init__(self, **options: Any) -> None:
        self.kube = MemoryKube()
        self.now = 0.0
        self.reader = SecretReader(cast("KubeClient", self.kube), clock=lambda: self.now, **options)
        self.asked: list[str] = []
        get = self.kube.get

        async def counted(resource: Any, name: str, namespace: str | None = None) -> Any:
            self.asked.append(name)
            return await get(resource, name, namespace)

        self.kube.get = counted  # type: ignore[method-assign]

    def secret(self, name: str, size: int, namespace: str = "a") -> None:
        data = {"key": base64.b64encode(b"k" * size).decode()}
        self.kube.put(SECRETS, {"metadata": {"name": name, "namespace": namespace}, "data": data})

    async def read(self, *names: str, namespace: str = "a") -> list[str]:
        """Read Secrets; returns the names that the API server was asked for."""
        self.asked.clear()
        found = await self.reader.read(namespace, names, older_than=1e9)
        assert list(found) == list(names)
        return list(self.asked)


async def test_two_hundred_secrets_that_are_read_once_do_not_stay() -> None:
    world = World()
    names = [f"s-{number}" for number in range(200)]
    for name in names:
        world.secret(name, 900 * KIB)
        await world.read(name)
        assert world.reader.size <= secrets.ROOM_OF_NAMESPACE
    assert await world.read(names[-1]) == []
    assert await world.read(names[0]) == [names[0]]


async def test_the_namespace_with_most_makes_room() -> None:
    world = World(room=100 * KIB, room_of_namespace=80 * KIB)
    world.secret("small", 10 * KIB, namespace="b")
    await world.read("small", namespace="b")
    for number in range(50):
        world.secret(f"s-{number}", 30 * KIB)
        await world.read(f"s-{number}")
    for number in range(3):
        world.secret("c", 30 * KIB, namespace=f"c-{number}")
        await world.read("c", namespace=f"c-{number}")
    assert world.reader.size <= 100 * KIB
    assert await world.read("small", namespace="b") == []


async def test_one_that_is_larger_than_the_room_is_returned_and_not_kept() -> None:
    world = World(room=20 * KIB, room_of_namespace=10 * KIB)
    world.secret("large", 15 * KIB)
    for _ in range(2):
        assert await world.read("large") == ["large"]
    assert world.reader.size == 0


async def test_names_that_do_not_exist_count() -> None:
    world = World(room=20 * KIB, room_of_namespace=10 * KIB)
    for number in range(1000):
        await world.read(f"missing-{number}")
    assert world.reader.size <= 10 * KIB


async def test_what_nobody_uses_is_forgotten_even_if_nothing_is_read_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.secret("used", KIB)
    world.secret("unused", KIB)
    await world.read("used", "unused")
    world.now += UNUSED / 2
    await world.read("used")
    world.now += UNUSED / 2
    await world.read("used")
    assert await world.read("unused") == ["unused"]
    assert await world.read("used") == []
    # The timer of the event loop runs by its own clock.
    monkeypatch.setattr(secrets, "UNUSED", 0.05)
    other = SecretReader(cast("KubeClient", world.kube))
    await other.read("a", ["used"], older_than=60.0)
    assert other.size > 0
    await eventually(lambda: other.size == 0)


async def test_one_that_was_written_is_read_again() -> None:
    world = World()
    world.secret("x", KIB)
    await world.read("x")
    world.reader.forget("a", "x")
    assert world.reader.size == 0
    assert await world.read("x") == ["x"]
