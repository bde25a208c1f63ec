"""An operator that ends at a chosen request: for tests of what is left then.

A process that is killed sends nothing more and reads no answer: from that moment on each of its requests waits until
its tasks are cancelled. The next operator begins with nothing in memory.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, cast

from typing_extensions import override

from slinky_operator.bridge.pods.spec import SPEC as BRIDGE_PODS_SPEC
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.resources import Resource
from slinky_operator.metrics.changes import Changes
from slinky_operator.reconcile.cached.caches import merged
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.reconcile.triggers import connect, observe
from slinky_operator.runtime.controller import Controller
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.settings import Settings
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.contact import Endpoint
from slinky_operator.slurmjob.spec import SPEC as SLURMJOB_SPEC
from slurm_client import MintedToken
from slurm_client.connection.transport import Transport

When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Point:
    """A moment in the life of a job.

    Parameters
    ----------
    words
        What the request looks like: server, method, path and body.
    when
        Before it is sent, or once it was carried out.
    number
        Which of such requests it is, in the life of one operator.
    """

    words: str
    when: When
    number: int = 1


class Fate:
    """Where an operator ends; None if it lives."""

    def __init__(self, point: Point | None) -> None:
        self._point = point
        self._count = 0
        self._is_dead = False
        self.reached = asyncio.Event()

    def end(self) -> None:
        """End the operator now."""
        self._is_dead = True

    async def meet(self, words: str, when: When) -> None:
        """Pass a request on, or not."""
        if self._is_dead:
            _ = await asyncio.Event().wait()
        point = self._point
        if point is None or when != point.when or not re.search(point.words, words):
            return
        self._count += 1
        if self._count != point.number:
            return
        self._is_dead = True
        self.reached.set()
        _ = await asyncio.Event().wait()


class MortalConnection(Connection):
    """A connection with the API server that ends with its operator."""

    fate: Fate

    @override
    @asynccontextmanager
    async def request(self, method: str, path: str, **options: Any) -> AsyncIterator[Any]:
        words = f"kube {method} {path} {(options.get('body') or b'').decode()}"
        await self.fate.meet(words, "before")
        async with super().request(method, path, **options) as response:
            await self.fate.meet(words, "after")
            yield response


class Told:
    """Events of all operators."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, str]] = []

    def warning(self, obj: Any, reason: str, message: str) -> None:
        self.all.append((str(obj["metadata"]["name"]), str(reason), message))

    normal = warning


@dataclass(frozen=True, slots=True)
class Slurm:
    """The Slurm of the only Cluster."""

    url: str
    key: bytes
    cluster_uid: str
    namespace: str


@asynccontextmanager
async def operator(kubeconfig: Any, slurm: Slurm, fate: Fate, told: Told) -> AsyncIterator[None]:
    """Run the controllers of SlurmJobs and of pods; what they do when the body ends is lost."""
    real = Transport.send

    async def send(self: Transport, request: Any, token: str, query: Any, body: Any, *rest: Any, **options: Any) -> Any:
        words = f"slurm {request.method} {request.path} {body if options.get('writes') else ''}"
        await fate.meet(words, "before")
        answer = await real(self, request, token, query, body, *rest, **options)
        await fate.meet(words, "after")
        return answer

    Transport.send = send  # type: ignore[method-assign]
    try:
        async with await MortalConnection.connect(kubeconfig) as connection, Supervisor() as supervisor:
            connection.fate = fate
            kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
            clients = ClientMap(OpenFence())
            await _build(kube, slurm, clients, told, supervisor)
            try:
                yield
            finally:
                # Nothing is finished: the process is gone.
                fate.end()
                Transport.send = real  # type: ignore[method-assign]
                await clients.close_all()
    finally:
        Transport.send = real  # type: ignore[method-assign]


async def _build(kube: KubeClient, slurm: Slurm, clients: ClientMap, told: Told, supervisor: Supervisor) -> None:
    settings = Settings(slurmjobs=True, bridge_clusters=("*",))
    specs = [SLURMJOB_SPEC, BRIDGE_PODS_SPEC]
    caches = {
        one.resource: Informer(
            kube, one.resource, label_selector=one.label_selector, indexers=one.indexers, prune=one.prune
        )
        for one in merged(cache for spec in specs for cache in spec.caches(settings))
    }
    services = Services(
        settings,
        kube,
        cast("Any", SimpleNamespace(store=lambda resource: caches[resource].store, by_resource=caches)),
        ClusterReader(caches[_resource(caches, "clusters")].store),
        clients,
        cast("Any", told),
        supervisor,
        cast("Any", None),
        Changes(),
    )
    built = [(spec, spec.build(services)) for spec in specs]
    for _, one in built:
        observe(one.triggers, caches)
    for spec, one in built:
        supervisor.start(spec.name, _forever(_controller(spec, one, caches, clients)))
    for resource, cache in caches.items():
        supervisor.start(f"cache {resource} {resource.part}", cache.run())
    endpoint = Endpoint(slurm.url, timeout=60.0, poll_interval=0.1)
    token = MintedToken(slurm.key, "slurm")
    await clients.put(slurm.cluster_uid, slurm.namespace, "slurm", endpoint=endpoint, token=token, fingerprint="1")


def _controller(
    spec: ControllerSpec, built: Built, caches: dict[Resource, Informer], clients: ClientMap
) -> Controller[Key]:
    controller: Controller[Key] = Controller(
        spec.name,
        built.reconciler.reconcile,
        tell=built.reconciler.tell,
        gates=[one.synced for one in caches.values()],
        lane=lambda key: key[0] or None,
    )
    connect(built.triggers, controller.queue, caches, clients)
    return controller


async def _forever(controller: Controller[Key]) -> None:
    await controller.run()
    _ = await asyncio.Event().wait()


def _resource(caches: dict[Resource, Informer], plural: str) -> Resource:
    return next(one for one in caches if one.plural == plural)


async def until(what: str, holds: Callable[[], Awaitable[Any]], describe: Callable[[], Awaitable[object]]) -> Any:
    """Wait until something that is asked for is true, and return it."""
    began = time.monotonic()
    while not (found := await holds()):
        if time.monotonic() - began > PATIENCE:
            raise AssertionError(f"{what}: {await describe()}")
        await asyncio.sleep(0.05)
    return found


PATIENCE = 240
