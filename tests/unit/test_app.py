"""How the process ends: passes end before what they use is closed."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Self

import pytest
from typing_extensions import override

from hack.machine import ports
from slinky_operator import app, custom_resource_watch
from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.calls import connection
from slinky_operator.runtime.tasks import TaskCrashed
from slinky_operator.settings import Settings
from slinky_operator.slurm.connection.pod_reader import PodReader


class Connection:
    """A connection over which nothing is asked."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


async def for_ever(*_: object, **__: object) -> None:
    await asyncio.Event().wait()


class Nothing:
    """No caches."""

    all = mirrors = ()
    by_resource: ClassVar[dict[object, object]] = {}
    interests: ClassVar[dict[object, object]] = {}
    of_users = of_operator = Budget()
    total = None

    def store(self, _: object) -> Store:
        return Store()

    async def refill(self) -> None:
        await for_ever()


async def test_passes_end_before_what_they_use_is_closed_when_the_process_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[str] = []
    works = asyncio.Event()

    class Http(PodReader):
        @override
        async def __aexit__(self, *_: object) -> None:
            ended.append("http")
            await self.close()

    class Passes:
        name, queue = "passes", None

        def unhealthy(self) -> None:
            pass

        async def run(self) -> None:
            works.set()
            try:
                await for_ever()
            finally:
                # A pass may take a while to end; others have their turn meanwhile.
                await asyncio.sleep(0)
                ended.append("passes")

    async def connect(*_: object) -> Connection:
        return Connection()

    async def lost(*_: object, **__: object) -> None:
        await works.wait()
        raise RuntimeError("leadership lost")

    monkeypatch.setattr(connection.Connection, "connect", connect)
    monkeypatch.setattr(app, "Caches", lambda *_, **__: Nothing())
    monkeypatch.setattr(app, "PodReader", Http)
    monkeypatch.setattr(app, "_controllers", lambda *_: [Passes()])
    for name in ("_wait_for_others", "_freeze"):
        monkeypatch.setattr(app, name, for_ever)
    monkeypatch.setattr(custom_resource_watch, "run", lost)
    (port,) = ports.hold(1)
    settings = Settings(identity="test", leader_election=False, health_host="127.0.0.1", health_port=port)
    with pytest.raises(TaskCrashed, match="leadership lost"):
        await app.run(settings)
    assert ended == ["passes", "http"]
