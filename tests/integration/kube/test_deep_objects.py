"""An object that is nested as deeply as the API server takes it stops no list and no watch, and says what is wrong."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator import custom_resource_watch
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.mirror import Mirror
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES
from slinky_operator.runtime.tasks import Supervisor
from tests.support.control_plane import ControlPlane

DEPTH = 9_000
"""The API server takes 10,000 levels."""


async def create_deep(connection: Connection, namespace: str, name: str) -> None:
    """Create a Cluster that is nested in a field that its schema leaves open; no encoder here writes it."""
    nested = '{"a":' * DEPTH + "1" + "}" * DEPTH
    text = (
        f'{{"apiVersion":"{CLUSTERS.api_version}","kind":"Cluster","metadata":{{"name":"{name}"}},'
        f'"spec":{{"controller":{{"template":{{"spec":{nested}}}}}}}}}'
    )
    timeout = aiohttp.ClientTimeout(total=60)
    async with connection.request(
        "POST", CLUSTERS.path(namespace), body=text.encode(), content_type="application/json", timeout=timeout
    ) as answer:
        assert answer.status == 201, await answer.text()


async def delete_deep(connection: Connection, namespace: str, name: str) -> None:
    """Delete such a Cluster: other tests of this API server list Clusters, and not all decoders read it."""
    async with connection.request(
        "DELETE", CLUSTERS.path(namespace, name), timeout=aiohttp.ClientTimeout(total=60)
    ) as answer:
        assert answer.status in {200, 404}, answer.status


@asynccontextmanager
async def deep_objects_go(connection: Connection, namespace: str) -> AsyncIterator[None]:
    """Leave none of them behind."""
    try:
        yield
    finally:
        for name in ("before", "during"):
            await delete_deep(connection, namespace, name)


async def test_a_deep_object_stops_nobody_elses(control_plane: ControlPlane) -> None:
    name = f"deep-{uuid.uuid4().hex[:8]}"
    async with (
        await Connection.connect(control_plane.kubeconfig) as connection,
        deep_objects_go(connection, name),
        Supervisor() as supervisor,
    ):
        client = KubeClient(connection, fence=OpenFence(), field_manager="test")
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        await create_deep(connection, name, "before")
        mirror, informer = Mirror(client, CLUSTERS, namespaces=[name]), Informer(client, CLUSTERS, namespaces=[name])
        changed = asyncio.Event()
        mirror.add_handler(lambda _, __: changed.set())
        informer.add_handler(lambda _, __: changed.set())
        supervisor.start("mirror", mirror.run())
        supervisor.start("informer", informer.run())
        await mirror.synced.wait()
        stop, ready = asyncio.Event(), asyncio.Event()
        watching = asyncio.create_task(
            custom_resource_watch.run(connection, [mirror], identity="test", namespaces=[name], stop=stop, ready=ready)
        )
        await ready.wait()
        await create_deep(connection, name, "during")
        about = {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "metadata": {"name": "neighbour"}}
        await client.create(CLUSTERS, {**about, "spec": {}}, name)
        while not all(cache.get(name, "neighbour") for cache in (mirror.store, informer.store)):
            assert not watching.done()
            changed.clear()
            await changed.wait()
        for found in (mirror.store.get(name, "before"), mirror.store.get(name, "during")):
            assert found is not None
            with pytest.raises(InvalidObjectError, match="is nested more than 64 levels deep"):
                ParseCache(Cluster).read(found)
        stop.set()
        await watching
        assert supervisor.crashed() is None
