"""kopf feeds a mirror on the same event loop, and what was started before kopf outlives it."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import kopf
import pytest

from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import CONFIGMAPS, NAMESPACES
from slinky_operator.runtime.tasks import Supervisor
from tests.support.control_plane import ControlPlane


async def test_kopf_feeds_a_mirror(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    registry = kopf.OperatorRegistry()
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    name = f"kopf-{uuid.uuid4().hex[:8]}"
    async with await Connection.connect(control_plane.kubeconfig) as connection, Supervisor() as supervisor:
        client = KubeClient(connection, fence=OpenFence(), field_manager="test")
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        mirror = Mirror(client, CONFIGMAPS, namespaces=[name], relist_every=3600)
        informer = Informer(client, CONFIGMAPS, namespaces=[name])
        supervisor.start("mirror", mirror.run())
        supervisor.start("informer", informer.run())
        changed = asyncio.Event()
        mirror.add_handler(lambda _, __: changed.set())
        await mirror.synced.wait()

        @kopf.on.login(registry=registry)
        def login(**kwargs: Any) -> Any:
            return kopf.login_with_kubeconfig(**kwargs)

        @kopf.on.event("configmaps", registry=registry)
        def feed(type: str | None, body: kopf.Body, **_: Any) -> None:  # noqa: A002 - kopf's name
            mirror.feed(type, body)

        stop, ready = asyncio.Event(), asyncio.Event()
        operator = asyncio.create_task(
            kopf.operator(
                registry=registry,
                settings=settings,
                namespaces=[name],
                standalone=True,
                stop_flag=stop,
                ready_flag=ready,
            )
        )
        await ready.wait()
        made = await client.create(CONFIGMAPS, {"metadata": {"name": "a", "namespace": name}})
        while (found := mirror.store.get(name, "a")) is None:
            changed.clear()
            await changed.wait()
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert "managedFields" not in found["metadata"]
        await client.delete(CONFIGMAPS, "a", name, uid=made["metadata"]["uid"])
        while mirror.store.get(name, "a") is not None:
            changed.clear()
            await changed.wait()

        stop.set()
        await operator
        assert supervisor.crashed() is None
        seen = asyncio.Event()
        informer.add_handler(lambda _, __: seen.set())
        await client.create(CONFIGMAPS, {"metadata": {"name": "later", "namespace": name}})
        await seen.wait()
