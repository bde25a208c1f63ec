"""The controller of Node labels with its own watches, on a real API server."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from slinky_api import labels
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CONFIGMAPS, NAMESPACES, NODES, PODS
from slinky_operator.node_labels.config_map import LabelConfig
from slinky_operator.node_labels.controller import NodeLabelsReconciler
from slinky_operator.node_labels.slurm_nodes import SlurmNodes
from slinky_operator.node_labels.spec import SPEC
from slinky_operator.node_labels.triggers import NodeLabelsTriggers
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_SLURMD_PODS, PODS_OF_CLUSTERS, prune_node
from slinky_operator.reconcile.triggers import connect
from slinky_operator.runtime.controller import Controller
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.slurm.connection.clients import ClientMap
from tests.support.control_plane import ControlPlane

PATIENCE = 120
PREFIX = labels.KUBERNETES_NODE_PREFIX


class Site:
    """Two Nodes, a namespace for the ConfigMap and for pods, and what the controller needs."""

    def __init__(self, kube: KubeClient) -> None:
        self.kube = kube
        self.slurm = ClientMap(OpenFence())
        self.namespace = f"labels-{uuid.uuid4().hex[:8]}"
        self.nodes = [f"{self.namespace}-{number}" for number in (1, 2)]
        self.told: list[tuple[str, str, str]] = []
        self.cache = Informer(kube, NODES, prune=prune_node)
        self.pods = Informer(
            kube,
            PODS,
            namespaces=[self.namespace],
            label_selector=PODS_OF_CLUSTERS,
            indexers=INDEXES_OF_SLURMD_PODS,
        )

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((f"{obj['kind']} {obj['metadata']['name']}", reason, message))

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.warning(obj, reason, message)

    async def config_map(self, text: str) -> None:
        body = {"metadata": {"name": "slurm-config", "namespace": self.namespace}, "data": {"config": text}}
        _ = await self.kube.apply(CONFIGMAPS, body)

    async def node(self, number: int = 0) -> Object:
        return await self.kube.get(NODES, self.nodes[number])

    async def has(self, number: int = 0) -> tuple[dict[str, str], dict[str, str]]:
        """Labels and resources of the prefix."""
        obj = await self.node(number)
        return _own(obj["metadata"].get("labels") or {}), _own(obj["status"].get("capacity") or {})

    async def until(self, labels_: dict[str, str], resources: dict[str, str], number: int = 0) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.has(number) != (labels_, resources):  # noqa: ASYNC110 - the API server sets no event
                await asyncio.sleep(0.02)

    async def until_told(self, is_meant: Callable[[tuple[str, str, str]], bool]) -> tuple[str, str, str]:
        async with asyncio.timeout(PATIENCE):
            while not any(map(is_meant, self.told)):  # noqa: ASYNC110 - nothing tells of an Event
                await asyncio.sleep(0.02)
        return next(filter(is_meant, self.told))


def _own(values: dict[str, str]) -> dict[str, str]:
    return {key.removeprefix(PREFIX): value for key, value in values.items() if key.startswith(PREFIX)}


@pytest.fixture
async def site(control_plane: ControlPlane) -> AsyncIterator[Site]:
    """A running controller, with its own watches."""
    async with await Connection.connect(control_plane.kubeconfig) as connection, Supervisor() as supervisor:
        kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
        site = Site(kube)
        _ = await kube.create(NAMESPACES, {"metadata": {"name": site.namespace}})
        for name in site.nodes:
            _ = await kube.create(NODES, {"metadata": {"name": name, "labels": {"zone": "here"}}})
        config = LabelConfig(kube, site, (site.namespace, "slurm-config"))
        store = site.cache.store
        records = SlurmNodes(site.pods.store, site.slurm, None)
        reconciler = NodeLabelsReconciler(kube, site, store, config, records)
        gates = [site.cache.synced, site.pods.synced]
        controller = Controller(SPEC.name, reconciler.reconcile, tell=reconciler.tell, gates=gates)
        table = NodeLabelsTriggers(store, config.subscribe, records).table()
        connect(table, controller.queue, {NODES: site.cache, PODS: site.pods}, site.slurm)
        for name, body in (("nodes", site.cache), ("pods", site.pods), ("config", config)):
            supervisor.start(name, body.run())
        supervisor.start("controller", _forever(controller))
        yield site
        await controller.stop(10)
        await site.slurm.close_all()
        for name in site.nodes:
            _ = await kube.delete(NODES, name, uid=None)


async def _forever(controller: Controller[tuple[str, str]]) -> None:
    await controller.run()
    _ = await asyncio.Event().wait()
