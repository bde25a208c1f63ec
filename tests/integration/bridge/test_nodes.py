"""Kubernetes Nodes of a real API server as external nodes of a real slurmctld 26.05: all that becomes of one."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest_asyncio

from hack.images.rootfs import ensure
from slinky_operator.bridge.nodes.controller import BridgeNodesReconciler
from slinky_operator.bridge.nodes.model import plan
from slinky_operator.bridge.nodes.observation import Observation
from slinky_operator.bridge.nodes.pod_requests import PodRequests
from slinky_operator.kube.cache.store import Store
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES, NODES, PODS, SERVICEACCOUNTS
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS, prune_bridged_node
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slinky_operator.slurm.connection.contact import Endpoint
from slurm_client import MintedToken
from slurm_client.models import Node, ReservationSpec
from tests.support.control_plane import ControlPlane
from tests.support.slurm_host import SlurmHost

CONF = """GresTypes=gpu
NodeSet=bridge Feature=bridge
PartitionName=k8s Nodes=bridge State=UP"""

PATIENCE_S = 120.0


class Told:
    """Events."""

    def warning(self, obj: Object, reason: str, message: str) -> None:
        raise AssertionError(message)

    def normal(self, obj: Object, reason: str, message: str) -> None:
        assert reason in {"BridgeNodesCreated", "BridgeNodesDeleted"}


class Site:
    """A Cluster in the API server, its Slurm, and the controller, whose clock a test advances."""

    def __init__(
        self, kube: KubeClient, host: SlurmHost, entry: ClusterClient, clients: ClientMap | _Only, name: str
    ) -> None:
        self.kube, self.host, self.entry, self.name = kube, host, entry, name
        self.label = {f"{name}/slurm": "yes"}
        self.clusters, self.nodes, self.seconds = Store(), Store(), 0.0
        self.requests = PodRequests(kube, self.clock)
        self.reconciler = BridgeNodesReconciler(
            kube,
            Told(),
            ClusterReader(self.clusters),
            Store(INDEXES_OF_NODESETS),
            Observation(self.nodes, self.requests),
            clients,
            ["*"],
            clock=self.clock,
        )

    def clock(self) -> float:
        return self.seconds

    async def put_node(self, name: str, cpu: str = "4", **spec: Any) -> None:
        """A Kubernetes Node that is Ready."""
        status = {
            "allocatable": {"cpu": cpu, "memory": "2Gi", "nvidia.com/gpu": "2"},
            "capacity": {"cpu": cpu, "memory": "2Gi", "nvidia.com/gpu": "2"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        }
        _ = await self.kube.patch_status(NODES, name, status)
        if spec:
            _ = await self.kube.merge_patch(NODES, name, {"spec": spec})

    async def passes(self, seconds: float = 20.0) -> None:
        """A pass over what the API server has now, some time later."""
        self.seconds += seconds
        self.clusters.put(await self.kube.get(CLUSTERS, "slurm", self.name))
        found = {str(one["metadata"]["name"]): one for one in (await self.kube.list(NODES)).items}
        for gone in [one for one in self.nodes if one["metadata"]["name"] not in found]:
            _ = self.nodes.remove(gone)
        for obj in found.values():
            prune_bridged_node(obj)
            self.nodes.put(obj)
        _ = await self.reconciler.reconcile((self.name, "slurm"))

    async def until(self, name: str, holds: Callable[[Node | None], bool], *, pause: float = 0.2) -> Node | None:
        """Passes, until Slurm shows a node as it is to be."""
        node = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    await self.passes()
                    node = self.entry.nodes.get(name)
                    if holds(node):
                        return node
                    await asyncio.sleep(pause)
        except TimeoutError:
            raise AssertionError(f"{name} is never so: {node}\n{await self.shown()}\n{self.entry.contact}") from None

    async def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.kube.get(CLUSTERS, "slurm", self.name))["status"]["bridge"]
        return found

    async def submit(self) -> int:
        """An external job that holds one CPU and a GPU."""
        job = {
            "name": "pod",
            "partition": "k8s",
            "flags": ["EXTERNAL_JOB"],
            "tasks": 1,
            "cpus_per_task": 1,
            "tres_per_task": "gres/gpu=1",
            "user_id": "65534",
            "group_id": "65534",
        }
        headers = {"X-SLURM-USER-TOKEN": self.host.token()}
        async with httpx.AsyncClient(base_url=self.host.url, headers=headers) as http:
            answer = await http.post("/slurm/v0.0.45/job/submit", json={"job": job})
        assert answer.status_code == 200, answer.text
        number = int(answer.json()["job_id"])
        await self.until_job(number, "RUNNING")
        return number

    async def until_job(self, number: int, state: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while (await self.entry.client.job(number)).state.base != state:  # noqa: ASYNC110 - Slurm sets no event
                await asyncio.sleep(0.1)


@pytest_asyncio.fixture
async def site(control_plane: ControlPlane) -> AsyncIterator[Site]:
    """A namespace with a Cluster, and a Slurm of its own."""
    name = f"b{uuid.uuid4().hex[:8]}"
    with SlurmHost(ensure("26.05"), extra_conf=CONF) as host:
        clients = ClientMap(OpenFence())
        async with await Connection.connect(control_plane.kubeconfig) as connection:
            kube = KubeClient(connection, fence=OpenFence(), field_manager="test")
            _ = await kube.create(NAMESPACES, {"metadata": {"name": name}})
            _ = await kube.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, name)
            label = {f"{name}/slurm": "yes"}
            body = {
                "apiVersion": CLUSTERS.api_version,
                "kind": "Cluster",
                "metadata": {"name": "slurm", "namespace": name},
                "spec": {
                    "server": host.url,
                    "token": {"secretRef": "token"},
                    "jobs": {"bridge": {"nodeLabels": label, "featureLabels": ["zone"]}},
                },
            }
            made = await kube.create(CLUSTERS, body, name)
            entry = await clients.put(
                str(made["metadata"]["uid"]),
                name,
                "slurm",
                endpoint=Endpoint(host.url),
                token=MintedToken(host.jwt_key),
                fingerprint="one",
            )
            async with asyncio.timeout(PATIENCE_S):
                while entry.nodes_at is None:  # noqa: ASYNC110 - the entry sets no event
                    await asyncio.sleep(0.1)
            nodes = [f"{name}-{number}.site" for number in range(2)]
            for one in nodes:
                _ = await kube.create(NODES, {"metadata": {"name": one, "labels": {**label, "zone": "eu-1"}}})
            try:
                yield Site(kube, host, entry, clients, name)
            finally:
                await clients.close_all()
                for one in {str(obj["metadata"]["name"]) for obj in (await kube.list(NODES)).items} & set(nodes):
                    _ = await kube.delete(NODES, one, uid=None)
                _ = await kube.delete(CLUSTERS, "slurm", name, uid=str(made["metadata"]["uid"]))


async def test_the_life_of_a_kubernetes_node_as_a_node_of_slurm(site: Site) -> None:
    first, second = f"{site.name}-0.site", f"{site.name}-1.site"
    await site.put_node(first)
    await site.put_node(second)
    container = {"name": "a", "image": "a", "resources": {"requests": {"cpu": "500m"}}}
    _ = await site.kube.create(
        PODS,
        {
            "metadata": {"name": "daemon"},
            "spec": {"nodeName": second, "containers": [container], "serviceAccountName": "default"},
        },
        site.name,
    )

    def is_free(node: Node | None) -> bool:
        return node is not None and node.is_external and node.is_usable and node.is_idle

    node = await site.until(first, is_free)
    assert node is not None
    assert (node.cpus, node.real_memory_mib, node.gres) == (4, 2048, "gpu:2")
    assert set(node.partitions) == {"all", "k8s"}
    assert {"bridge", "zone.eu-1"} < set(node.features)
    other = await site.until(second, is_free)
    assert other is not None
    assert other.cpus == 3
    await site.passes()
    assert await site.shown() == {"ready": True, "reason": "AsExpected", "message": "", "nodes": 2}

    # Nothing changes by itself, and an operator that starts again finds everything as it is to be.
    boot = {name: one.reason_changed_at for name, one in site.entry.nodes.items()}
    fresh = Site(site.kube, site.host, site.entry, _Only(site.entry), site.name)
    for _ in range(4):
        await fresh.passes(plan.SETTLED_S)
    assert {name: one.reason_changed_at for name, one in site.entry.nodes.items()} == boot

    job = await site.submit()
    (held,) = (await site.entry.client.job(job)).nodes
    await site.kube.merge_patch(NODES, held, {"spec": {"unschedulable": True}})
    cordoned = await site.until(held, lambda one: one is not None and one.is_drain)
    assert cordoned is not None
    assert cordoned.reason == "slurm-operator: bridge: the Kubernetes Node is cordoned"
    await site.until_job(job, "RUNNING")
    await site.kube.merge_patch(NODES, held, {"spec": {"unschedulable": None}})
    _ = await site.until(held, lambda one: one is not None and not one.is_drain)

    # A machine that has grown keeps its job, and its node is made again after it.
    await site.put_node(held, cpu="8")
    for _ in range(6):
        await site.passes(plan.SETTLED_S)
    await site.until_job(job, "RUNNING")
    assert (await site.shown())["message"] == f"{held} gets another size when it is idle"
    await site.entry.client.cancel_job(job)
    _ = await site.until(held, lambda one: one is not None and one.cpus >= 7 and is_free(one))

    # The label is gone while a job runs: the node stays for it, and goes with it.
    job = await site.submit()
    (held,) = (await site.entry.client.job(job)).nodes
    await site.kube.merge_patch(NODES, held, {"metadata": {"labels": {f"{site.name}/slurm": None}}})
    _ = await site.until(held, lambda one: one is not None and one.is_drain)
    for _ in range(4):
        await site.passes()
    await site.until_job(job, "RUNNING")
    await site.entry.client.cancel_job(job)
    _ = await site.until(held, lambda one: one is None)

    # A Kubernetes Node that does not exist any more is no node of Slurm any more. Of the deletion of the last node a
    # list tells only if something else changed in the second of the list before it: passes come in other seconds.
    (left,) = {first, second} - {held}
    _ = await site.kube.delete(NODES, left, uid=None)
    _ = await site.until(left, lambda one: one is None, pause=2.5)
    assert dict(site.entry.nodes) == {}


class _Only:
    """The Slurm of one Cluster."""

    def __init__(self, entry: ClusterClient) -> None:
        self._entry = entry

    def get(self, uid: str) -> ClusterClient | None:
        return self._entry if uid == self._entry.uid else None


async def test_nodes_that_are_alike_are_made_and_one_that_is_to_be_reserved_stays(site: Site) -> None:
    first, second = f"{site.name}-0.site", f"{site.name}-1.site"
    await site.put_node(first)
    await site.put_node(second)
    _ = await site.until(first, lambda node: node is not None and node.is_idle)
    _ = await site.until(second, lambda node: node is not None and node.is_idle)
    begin = datetime.now(UTC) + timedelta(minutes=10)
    spec = ReservationSpec(name="held", nodes=first, users=["root"], start_time=begin, duration=timedelta(hours=1))
    _ = await site.entry.client.create_reservation(spec)

    _ = await site.kube.merge_patch(NODES, first, {"metadata": {"labels": {f"{site.name}/slurm": None}}})
    async with asyncio.timeout(PATIENCE_S):
        while "named by reservation held" not in (await site.shown())["message"]:
            await site.passes()
            await asyncio.sleep(0.2)
    assert first in site.entry.nodes

    await site.entry.client.delete_reservation("held")
    _ = await site.until(first, lambda node: node is None)


async def test_nodes_are_changed_drained_and_deleted_together(site: Site) -> None:
    names = [f"{site.name}-{number}.site" for number in range(2)]

    async def all_are(holds: Callable[[Node | None], bool]) -> list[Node | None]:
        return [await site.until(one, holds) for one in names]

    async def label(**labels: str | None) -> None:
        for one in names:
            _ = await site.kube.merge_patch(NODES, one, {"metadata": {"labels": labels}})

    for one in names:
        await site.put_node(one)
    _ = await all_are(lambda node: node is not None and node.is_usable and "zone.eu-1" in node.features)

    await label(zone="eu-2")
    for node in await all_are(lambda node: node is not None and "zone.eu-2" in node.features):
        assert node is not None
        assert "zone.eu-1" not in node.features
        assert "k8s" in node.partitions

    for one in names:
        await site.put_node(one, unschedulable=True)
    _ = await all_are(lambda node: node is not None and node.is_drain)
    for one in names:
        await site.put_node(one, unschedulable=False)
    _ = await all_are(lambda node: node is not None and node.is_usable and not node.reason)

    await label(**{f"{site.name}/slurm": None})
    _ = await all_are(lambda node: node is None)
    assert (await site.shown())["nodes"] == 0
