"""Both controllers over one namespace in memory, for tests that run whole passes one by one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, cast

import httpx
from typing_extensions import override

from slinky_operator.cluster import observe as cluster_observe
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.controller import ClusterReconciler
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.plan import Environment
from slinky_operator.cluster.rollout.config_sources import ConfigMapWatcher
from slinky_operator.kube import resources
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import EventType, Recorder
from slinky_operator.kube.leadership.fence import OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.metrics.changes import Changes
from slinky_operator.nodeset.controller import NodeSetReconciler
from slinky_operator.nodeset.observation import indexes
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.nodeset.ports import AskVolumes, Slurm
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.runtime.controller import Result
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.slurm.connection.clients import ClientMap, _network
from slinky_operator.slurm.connection.contact import Contact, ContactState, Endpoint
from slinky_operator.slurm.connection.pod_reader import PodReader
from slurm_client.connection.intake import Intake
from slurm_client.models import Diag, Job, Node
from tests.support.memory_kube import MemoryKube
from tests.support.no_log_servers import unasked

COUNTED: Final = Changes()
"""Of all operators here: nobody reads it, and to make its metrics takes as long as a short pass."""

NAMESPACE = "here"
KEY = (NAMESPACE, "a")


class NoNetwork(httpx.AsyncBaseTransport):
    """Nobody answers; what an endpoint is made of is read as for the network."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._real = _network(endpoint)

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody is there", request=request)

    @override
    async def aclose(self) -> None:
        await self._real.aclose()


@dataclass
class SilentRecorder:
    """Keeps Events."""

    told: list[tuple[str, str]] = field(default_factory=list)

    def event(self, obj: Object, kind: EventType, reason: str, message: str) -> None:
        self.told.append((reason, message))

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((reason, message))

    def warning(self, obj: Object, reason: str, message: str) -> None:
        self.told.append((reason, message))


class EmptySlurm:
    """A Slurm without nodes and jobs that takes every order."""

    def __init__(self) -> None:
        self.shown: dict[str, tuple[float, float] | None] = {}
        """What the metrics have of job output, by NodeSet."""

    contact = Contact(ContactState.READY, datetime(2026, 1, 1, tzinfo=UTC), "")
    nodes_at = 0.0

    @property
    def nodes(self) -> Mapping[str, Node]:
        return {}

    @property
    def client(self) -> Any:
        return self

    async def shared_jobs(self) -> Sequence[Job]:
        return ()

    async def jobs(self) -> Sequence[Job]:
        return ()

    async def diag(self) -> Diag:
        return Diag(now=datetime(2026, 1, 1, tzinfo=UTC))

    async def refresh(self, names: Iterable[str]) -> Mapping[str, Node | None]:
        return dict.fromkeys(names)

    def show_output(self, nodeset: str, shares: tuple[float, float] | None) -> None:
        self.shown[nodeset] = shares

    def hurry(self, *, whole: bool = False) -> None:
        pass


class OneSlurm:
    """The client map of the NodeSet controller."""

    def __init__(self) -> None:
        self.slurm = EmptySlurm()

    def get(self, uid: str) -> Slurm | None:
        return cast("Slurm", self.slurm)


@dataclass
class Operator:
    """Both controllers."""

    kube: MemoryKube
    clusters: ClusterReconciler
    nodesets: NodeSetReconciler
    recorder: SilentRecorder
    slurm: EmptySlurm

    def add(self, kind: str, spec: object, status: Mapping[str, Any] | None = None, name: str = "a") -> None:
        """A user's object, as the API server would store it."""
        resource = resources.CLUSTERS if kind == "Cluster" else resources.NODESETS
        metadata = {"name": name, "namespace": NAMESPACE, "generation": 1, "uid": f"uid-of-{kind}-{name}"}
        body = {"apiVersion": "slinky.slurm.net/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
        self.kube.put(resource, body | ({"status": dict(status)} if status else {}))

    def status(self, kind: str, name: str = "a") -> dict[str, Any]:
        """Its status."""
        plural = "clusters" if kind == "Cluster" else "nodesets"
        found: dict[str, Any] = self.kube.objects[plural, NAMESPACE, name].get("status") or {}
        return found

    async def pass_over(self, kind: str) -> Result:
        """One pass over the object that tests are about."""
        return await (self.clusters if kind == "Cluster" else self.nodesets).reconcile(KEY)


@asynccontextmanager
async def operator(ask_volumes: AskVolumes = unasked) -> AsyncIterator[Operator]:
    """Build both controllers over an empty namespace, and what asks job log servers."""
    kube = MemoryKube()
    recorder = SilentRecorder()
    transport = httpx.MockTransport(_absent)
    async with Supervisor() as supervisor, PodReader(Intake(), transport=transport) as http:
        clients, one = ClientMap(OpenFence(), transport=NoNetwork), OneSlurm()
        client = cast("KubeClient", kube)
        nodesets = kube.cache(resources.NODESETS, INDEXES_OF_NODESETS)
        pods = kube.cache(resources.PODS, {**cluster_observe.INDEXERS, **indexes.INDEXES_OF_PODS})
        children = (kube.cache(resource, cluster_observe.INDEXERS) for resource in cluster_observe.CHILDREN)
        clusters = kube.cache(resources.CLUSTERS)
        caches = cluster_observe.Caches(clusters, nodesets, pods, *children)
        context = PassContext(
            client,
            SecretReader(client),
            ConfigMapWatcher(client, supervisor),
            clients,
            cast("Recorder", recorder),
            http,
            COUNTED,
        )
        yield Operator(
            kube,
            ClusterReconciler(
                caches,
                context,
                Environment(
                    Images({"slurmctld": "slurmctld", "slurmrestd": "slurmrestd", "agent": "agent", "slurmd": "slurmd"})
                ),
            ),
            NodeSetReconciler(
                client,
                nodesets=nodesets,
                clusters=ClusterReader(clusters),
                pods=pods,
                revisions=kube.cache(resources.CONTROLLERREVISIONS, indexes.INDEXES_OF_REVISIONS),
                claims=kube.cache(resources.PERSISTENTVOLUMECLAIMS, indexes.INDEXES_OF_CLAIMS),
                watch_hosts=True,
                slurm=one,
                recorder=recorder,
                defaults=Defaults(image="slurmd"),
                ask_volumes=ask_volumes,
                clock=lambda: 1.0,
                changes=COUNTED,
            ),
            recorder,
            one.slurm,
        )
        await clients.close_all()


def _absent(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no agent is there", request=request)
