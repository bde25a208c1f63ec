"""The NodeSet controller on a real API server, with a fake slurmrestd and simulated machines."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from slinky_api import labels
from slinky_api.conditions import PodCondition
from slinky_operator.kube import errors
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.calls.writing import Propagation
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CLUSTERS,
    CONFIGMAPS,
    CONTROLLERREVISIONS,
    NAMESPACES,
    NODES,
    NODESETS,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    SERVICEACCOUNTS,
    Resource,
)
from slinky_operator.nodeset import controller as nodeset
from slinky_operator.nodeset.execute.hosts.drain_requests import DrainRequests
from slinky_operator.nodeset.execute.hosts.machines import Machines as MachineKeeper
from slinky_operator.nodeset.execute.hosts.slurms import clients
from slinky_operator.nodeset.model.machines import MachineRules
from slinky_operator.nodeset.observation import indexes
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.nodeset.spec import SPEC
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS, PODS_OF_CLUSTERS, prune_node
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.triggers import connect, observe
from slinky_operator.runtime.controller import Controller
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.contact import Endpoint
from slurm_client.testing import FakeSlurmrestd
from slurm_client.tokens import StaticToken, TokenProvider
from tests.integration.nodeset.machines import Machines
from tests.support.control_plane import ControlPlane
from tests.support.no_log_servers import unasked
from tests.support.served import apply_crds


@pytest.fixture(scope="session")
def crds(control_plane: ControlPlane) -> None:
    apply_crds(control_plane.kubectl)


@dataclass
class Site:
    """A namespace with a Cluster, its Slurm, and the controller over it."""

    kubeconfig: Path
    kube: KubeClient
    namespace: str
    slurm: FakeSlurmrestd
    cluster: Object
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    token: TokenProvider = field(default_factory=lambda: StaticToken("token"))
    poll_interval: float = 0.1
    """Seconds between questions to Slurm."""
    ahead: timedelta = timedelta(0)
    """How far the operator's clock is ahead of Slurm's."""
    serves_drain_requests: bool = False
    """Whether DrainRequests in the namespace are served."""
    machine_rules: MachineRules | None = None
    """What may be done about machines."""
    transport: Callable[[Endpoint], httpx.AsyncBaseTransport] | None = None
    """What the operator reaches Slurm by; the network if absent."""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _clients: ClientMap | None = None

    async def start(self) -> None:
        """Start the operator, as after a crash: with nothing in memory."""
        own = [self.namespace]
        # What tests may have to wait for is not only what the API server has, but what the operator has seen of it.
        self.nodesets = Informer(self.kube, NODESETS, namespaces=own, indexers=INDEXES_OF_NODESETS)
        clusters = Informer(self.kube, CLUSTERS, namespaces=own)
        self.pods = Informer(
            self.kube,
            PODS,
            namespaces=own,
            label_selector=PODS_OF_CLUSTERS,
            indexers=indexes.INDEXES_OF_PODS,
        )
        hosts = Informer(self.kube, NODES, prune=prune_node)
        self.revisions = Informer(
            self.kube,
            CONTROLLERREVISIONS,
            namespaces=own,
            label_selector=indexes.SELECTOR,
            indexers=indexes.INDEXES_OF_REVISIONS,
        )
        self.claims = Informer(
            self.kube,
            PERSISTENTVOLUMECLAIMS,
            namespaces=own,
            label_selector=indexes.SELECTOR,
            indexers=indexes.INDEXES_OF_CLAIMS,
        )
        self._clients = ClientMap(OpenFence(), transport=self.transport)
        recorder = Recorder(self.kube, component="slurm-operator", instance="test")
        slurm_of = clients(self._clients, lambda key: self.cluster["metadata"]["uid"] if key[1] == "c" else None)
        rules = self.machine_rules
        drain_requests = DrainRequests(
            self.kube,
            self.namespace,
            self.pods.store,
            slurm_of,
            sleep=lambda _: asyncio.sleep(0.2),
        )
        reconciler = nodeset.NodeSetReconciler(
            self.kube,
            nodesets=self.nodesets.store,
            clusters=ClusterReader(clusters.store),
            pods=self.pods.store,
            watch_hosts=True,
            revisions=self.revisions.store,
            claims=self.claims.store,
            slurm=self._clients,
            recorder=recorder,
            defaults=Defaults(image="slurmd"),
            ask_volumes=unasked,
            drain_requests=drain_requests.by_host if self.serves_drain_requests else dict,
            machines=MachineKeeper(self.kube, rules, slurm_of, clock=time.monotonic) if rules is not None else None,
            now=lambda: datetime.now(UTC) + self.ahead,
        )
        informers = (self.nodesets, clusters, self.pods, self.revisions, self.claims, hosts)
        controller: Controller[Key] = Controller(
            SPEC.name, reconciler.reconcile, tell=reconciler.tell, gates=[one.synced for one in informers]
        )
        triggers = replace(
            reconciler.triggers.table(reconciler.expectations.observe), others=(drain_requests.subscribe,)
        )
        caches = {one.resource: one for one in informers}
        observe(triggers, caches)
        connect(triggers, controller.queue, caches, self._clients)
        runs = (*(one.run() for one in informers), recorder.run(), controller.run(), drain_requests.run())
        self._tasks = [asyncio.create_task(one) for one in runs]
        await self._connect()

    async def _connect(self) -> None:
        metadata = self.cluster["metadata"]
        assert self._clients is not None
        await self._clients.put(
            metadata["uid"],
            self.namespace,
            metadata["name"],
            # A machine that stands still for seconds is no Slurm out of reach: tests say when it is.
            endpoint=Endpoint(self.slurm.url, timeout=30.0, poll_interval=self.poll_interval),
            token=self.token,
            fingerprint="1",
        )

    async def create_cluster_again(self) -> str:
        """Create the Cluster once more under its name, and connect it; gives its uid."""
        body = {key: self.cluster[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "c"}}
        self.cluster = await self.kube.create(CLUSTERS, body, self.namespace)
        await self._connect()
        return str(self.cluster["metadata"]["uid"])

    async def crash(self) -> None:
        """End the operator at whatever it is doing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._clients is not None:
            await self._clients.close_all()

    # What users do

    async def apply(self, replicas: int | None, name: str = "a", **spec: Any) -> Object:
        number = {} if replicas is None else {"replicas": replicas}
        body = {
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"clusterName": "c", **number, **spec},
        }
        return await self.kube.apply(NODESETS, body, field_manager="user")

    async def scale(self, replicas: int, name: str = "a") -> None:
        await self.kube.scale(NODESETS, name, self.namespace, replicas)

    async def delete(self, propagation: Propagation, name: str = "a") -> None:
        await self.kube.delete(NODESETS, name, self.namespace, uid=None, propagation=propagation)

    # Kubernetes Nodes, without a machine behind them

    async def add_host(self, name: str, **metadata: Any) -> str:
        """Add a Node; gives its name, which is unlike that of any other test's."""
        whole = f"{name}-{self.namespace.rpartition('-')[2]}"
        await self.kube.create(NODES, {"metadata": {"name": whole, **metadata}, "spec": {}})
        self.hosts.append(whole)
        # The API server taints each new Node as not ready; no controller is here to take that back.
        await self.kube.merge_patch(NODES, whole, {"spec": {"taints": None}})
        return whole

    async def label(self, host: str, **given: str | None) -> None:
        await self.kube.merge_patch(NODES, host, {"metadata": {"labels": given}})

    async def cordon(self, host: str, *, because: str = "", on: bool = True) -> None:
        annotations = {labels.ANNOTATION_NODE_CORDON_REASON: because or None}
        patch: Object = {"metadata": {"annotations": annotations}, "spec": {"unschedulable": on or None}}
        await self.kube.merge_patch(NODES, host, patch)

    # What tests look at

    async def nodeset(self, name: str = "a") -> Object:
        return await self.kube.get(NODESETS, name, self.namespace)

    async def condition(self, kind: str, name: str = "a") -> Object:
        found = (await self.nodeset(name)).get("status", {}).get("conditions", [])
        return next((one for one in found if one["type"] == kind), {})

    async def names(self, resource: Resource = PODS) -> list[str]:
        return sorted(one["metadata"]["name"] for one in (await self.kube.list(resource, self.namespace)).items)

    async def gone(self, name: str = "a") -> bool:
        try:
            await self.nodeset(name)
        except errors.NotFound:
            return True
        return False

    def sees(self, node: str) -> bool:
        """Whether the operator's picture of Slurm shows a node."""
        client = self._clients.get(self.cluster["metadata"]["uid"]) if self._clients is not None else None
        return client is not None and node in client.nodes

    async def ready(self, count: int, name: str = "a") -> bool:
        """Whether so many pods are all there are, and ready, by a pass that has seen the spec as it is now."""
        obj = await self.nodeset(name)
        status = obj.get("status") or {}
        seen = status.get("observedGeneration") == obj["metadata"]["generation"]
        return bool(seen and status.get("readyReplicas") == count == status.get("replicas"))

    async def replaced(self, before: Object) -> bool:
        """Whether another pod of the same name has registered.

        The status of the NodeSet does not tell: it may still be that of the pass before the old pod went.
        """
        for pod in (await self.kube.list(PODS, self.namespace)).items:
            if pod["metadata"]["name"] == before["metadata"]["name"]:
                kinds = {one["type"] for one in (pod.get("status") or {}).get("conditions") or ()}
                return pod["metadata"]["uid"] != before["metadata"]["uid"] and PodCondition.REGISTERED in kinds
        return False

    async def until(self, condition: Callable[[], Any], what: str, seconds: float = 120.0) -> None:
        """Wait until a condition holds; plain or asynchronous."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    value = condition()
                    if asyncio.iscoroutine(value):
                        value = await value
                    if value:
                        return
                    await asyncio.sleep(0.05)
        except TimeoutError:
            sets = (await self.kube.list(NODESETS, self.namespace)).items
            told = [(one["metadata"], one.get("status", {}).get("conditions")) for one in sets]
            nodes = {name: (str(node.state), node.reason) for name, node in self.slurm.nodes.items()}
            raise AssertionError(f"never: {what}\n{told}\n{await self.names()}\n{nodes}") from None

    async def guards(self) -> list[str]:
        return [name for name in await self.names(CONFIGMAPS) if name.startswith("nodeset-")]


def reason(site: Site, node: str) -> str:
    """The reason of a node that is drained; else nothing."""
    return site.slurm.nodes[node].reason if site.slurm.nodes[node].is_drain else ""


async def up(site: Site, count: int) -> None:
    """Bring a NodeSet of that many pods up."""
    await site.apply(count)
    await site.until(lambda: site.ready(count), f"{count} nodes are ready")


@pytest.fixture
async def site(control_plane: ControlPlane, crds: None) -> AsyncIterator[Site]:
    async with FakeSlurmrestd() as slurm, site_over(control_plane, slurm) as made:
        yield made


@asynccontextmanager
async def site_over(
    control_plane: ControlPlane, slurm: Any, *, spec: Object | None = None, **settings: Any
) -> AsyncIterator[Site]:
    """A site over a slurmrestd, a fake one or a real one; its Cluster runs elsewhere, if no spec says otherwise."""
    elsewhere = {
        "server": slurm.url,
        "token": {"secretRef": "token"},
        "controller": {"external": {"host": "slurmctld"}},
    }
    namespace = f"nodeset-{uuid.uuid4().hex[:8]}"
    requests: list[tuple[str, str, str]] = []
    async with await Connection.connect(control_plane.kubeconfig) as connection:
        kube = KubeClient(
            connection,
            fence=OpenFence(),
            field_manager=labels.FIELD_MANAGER,
            observer=lambda *about: requests.append(about[:3]),
        )
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        await kube.apply(SERVICEACCOUNTS, {"metadata": {"name": "default", "namespace": namespace}})
        cluster = await kube.create(
            CLUSTERS,
            {
                "apiVersion": CLUSTERS.api_version,
                "kind": "Cluster",
                "metadata": {"name": "c", "namespace": namespace},
                "spec": elsewhere if spec is None else spec,
            },
        )
        status = {"isReady": True, "config": {"hash": "1", "appliedHash": "1", "nodeSets": ["a", "a-b"]}}
        await kube.patch_status(CLUSTERS, "c", status, namespace)
        site = Site(control_plane.kubeconfig, kube, namespace, slurm, cluster, requests, **settings)
        await site.start()
        try:
            yield site
        finally:
            await site.crash()
            for host in site.hosts:
                with suppress(errors.NotFound):
                    await kube.delete(NODES, host, uid=None)


@pytest.fixture
async def machines(site: Site) -> AsyncIterator[Machines]:
    pods = Informer(site.kube, PODS, namespaces=[site.namespace])
    played = Machines(site.kube, site.slurm, site.namespace, pods)
    tasks = [asyncio.create_task(pods.run()), asyncio.create_task(played.run())]
    yield played
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    failed = [one for one in results if isinstance(one, Exception)]
    if failed:
        raise ExceptionGroup("the machines broke", failed)
