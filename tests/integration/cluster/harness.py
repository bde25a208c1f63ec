"""The Cluster controller with real caches, without the rest of the operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry
from typing_extensions import override

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.context import PassContext, agent_url
from slinky_operator.cluster.controller import ClusterReconciler, server_of
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.observe import CHILDREN, INDEXERS, Caches
from slinky_operator.cluster.parts.connection.slurm_connection import Pace
from slinky_operator.cluster.plan import Environment
from slinky_operator.cluster.rollout.config_sources import ConfigMapWatcher
from slinky_operator.cluster.spec import SPEC
from slinky_operator.cluster.triggers import ClusterTriggers
from slinky_operator.kube import resources
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.managed_fields import keep_fields_of
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.leadership.fence import Fence, OpenFence
from slinky_operator.kube.objects import Object
from slinky_operator.metrics.changes import Changes
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.triggers import connect
from slinky_operator.runtime.controller import Controller
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.pod_reader import PodReader
from slurm_client.connection.intake import Intake

IMAGES = Images(
    {
        "slurmctld": "localhost/slinky/slurmctld:26.05",
        "slurmrestd": "localhost/slinky/slurmrestd:26.05",
        "agent": "localhost/slinky/slurm-operator:dev",
        "slurmd": "localhost/slinky/slurmd:26.05",
    },
    pull_policy="Never",
)


@dataclass
class Running:
    """What a test may look at."""

    kube: KubeClient
    caches: Caches
    clients: ClientMap
    texts: ConfigMapWatcher
    controller: Controller[Key]
    requests: list[tuple[str, str, str]]
    """Verb, resource and outcome of every request."""
    metrics: CollectorRegistry
    """What it has done."""

    @property
    def writes(self) -> list[tuple[str, str, str]]:
        """Requests that were no reads."""
        return [one for one in self.requests if one[0] not in {"get", "list", "watch"}]


class DiesAfter(OpenFence):
    """Lets a number of writes out, and then none: what a process leaves behind that is killed between two of them."""

    def __init__(self, writes: int) -> None:
        self.left = writes
        self.died = asyncio.Event()
        self.writes: Callable[[], int] | None = None

    @override
    def closed_because(self) -> str | None:
        if self.writes is None or self.writes() < self.left:
            return None
        self.died.set()
        return "this process is dead"


@asynccontextmanager
async def running(
    kubeconfig: Path,
    *,
    namespace: str,
    server: Callable[[Cluster, Caches], str] = server_of,
    agent: Callable[[Object], str] = agent_url,
    images: Images = IMAGES,
    fence: Fence | None = None,
    intake: Intake | None = None,
) -> AsyncIterator[Running]:
    """Run the controller over one namespace."""
    requests: list[tuple[str, str, str]] = []
    fence = fence or OpenFence()
    async with (
        await Connection.connect(kubeconfig) as connection,
        asyncio.TaskGroup() as group,
        Supervisor() as supervisor,
    ):
        kube = KubeClient(
            connection,
            fence=fence,
            field_manager=labels.FIELD_MANAGER,
            observer=lambda *about: requests.append(about[:3]),
        )
        managed = f"{labels.LABEL_APP_MANAGED_BY}={labels.MANAGED_BY}"

        def informer(resource: resources.Resource, selector: str | None = managed) -> Informer:
            return Informer(
                kube,
                resource,
                namespaces=[namespace],
                label_selector=selector,
                indexers=INDEXERS,
                prune=keep_fields_of(labels.FIELD_MANAGER),
            )

        clusters = Informer(kube, resources.CLUSTERS, namespaces=[namespace])
        node_sets = Informer(kube, resources.NODESETS, namespaces=[namespace], indexers=INDEXES_OF_NODESETS)
        pods = informer(resources.PODS, labels.LABEL_CLUSTER_NAME)
        children = [informer(resource) for resource in CHILDREN]
        caches = Caches(clusters.store, node_sets.store, pods.store, *(one.store for one in children))
        clients = ClientMap(fence, intake=intake)
        http = PodReader(clients.intake)
        recorder = Recorder(kube, component="slurm-operator", instance="test")
        texts = ConfigMapWatcher(kube, supervisor)
        metrics = CollectorRegistry()
        context = PassContext(
            kube, SecretReader(kube), texts, clients, recorder, http, agent_url=agent, changes=Changes(metrics)
        )
        reconciler = ClusterReconciler(
            caches, context, Environment(images, Pace(timeout=5.0, poll_interval=0.2)), server_of=server
        )
        everything = [clusters, node_sets, pods, *children]
        controller = Controller(
            "cluster",
            reconciler.reconcile,
            tell=reconciler.tell,
            gates=[one.synced for one in everything],
            describe=SPEC.describe,
        )
        triggers = ClusterTriggers(clients).table(texts.subscribe)
        connect(triggers, controller.queue, {one.resource: one for one in everything}, clients)
        tasks = [group.create_task(one.run()) for one in everything]
        tasks += [group.create_task(recorder.run()), group.create_task(controller.run())]
        try:
            yield Running(kube, caches, clients, texts, controller, requests, metrics)
        finally:
            await controller.stop(5.0)
            await recorder.flush()
            await clients.close_all()
            await http.close()
            for task in tasks:
                task.cancel()
