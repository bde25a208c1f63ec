"""Wiring: everything that lives as long as the process is built here, connected, run and ended in order.

What is where: caches (mirrors of what users write, fed by kopf; informers of what we own) are filled by every replica,
so that a standby takes over at once; controllers wait for the caches and for leadership. One fence stands before every
write to Kubernetes and to every Slurm; the Lease alone is written past it.

Order of ending: no more keys, passes under way finish, Slurm's connections close, caches and kopf end, the Lease is
given back. A crash of any background task ends the process with an error, and so does the loss of the Lease.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import httpx

from slinky_api import labels
from slinky_operator import front
from slinky_operator.cluster import controller as cluster
from slinky_operator.cluster import observe as cluster_observe
from slinky_operator.cluster import triggers as cluster_wiring
from slinky_operator.cluster.components import Images
from slinky_operator.cluster.execute.config_sources import ConfigMapWatcher
from slinky_operator.cluster.execute.context import Tools
from slinky_operator.cluster.plan import Environment
from slinky_operator.cluster.slurm_connection import Pace
from slinky_operator.kube import resources
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.connection import Connection
from slinky_operator.kube.domain import own_domain
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.fence import DeadlineFence, Fence, OpenFence
from slinky_operator.kube.informer import Handler, Informer
from slinky_operator.kube.lease import Elector
from slinky_operator.kube.managed_fields import keep_fields_of
from slinky_operator.kube.mirror import Mirror
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import Resource
from slinky_operator.kube.rival import until_alone
from slinky_operator.kube.store import Key
from slinky_operator.nodeset import controller as nodeset
from slinky_operator.nodeset import indexes
from slinky_operator.nodeset.execute import takeover
from slinky_operator.nodeset.model.kubernetes_nodes import prune as prune_host
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.runtime.controller import Controller
from slinky_operator.runtime.health import HealthServer
from slinky_operator.runtime.loop_lag import LoopLag
from slinky_operator.runtime.memory import freeze_caches
from slinky_operator.runtime.metrics import Metrics
from slinky_operator.runtime.queue import WorkQueue
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.settings import Settings
from slinky_operator.slurm.clients import ClientMap
from slurm_client.intake import MIB, Intake
from slurm_client.watch import NodeEvent

logger = logging.getLogger(__name__)

COMPONENT: Final = "slurm-operator"
MANAGED: Final = f"{labels.LABEL_APP_MANAGED_BY}={labels.MANAGED_BY}"
"""Label selector of what the Cluster controller makes."""

OF_A_CLUSTER: Final = labels.LABEL_CLUSTER_NAME
"""Label selector of pods that belong to a Cluster: daemons and nodes."""

CHILDREN: Final = (
    resources.STATEFULSETS,
    resources.DEPLOYMENTS,
    resources.SERVICES,
    resources.CONFIGMAPS,
    resources.PODDISRUPTIONBUDGETS,
)


class Caches:
    """What the operator sees of Kubernetes: two kinds that users write, pods, Nodes, and what belongs to Clusters."""

    def __init__(self, client: KubeClient, settings: Settings) -> None:
        namespaces = settings.namespaces

        def mirror(resource: Resource, **options: Any) -> Mirror:
            return Mirror(client, resource, namespaces=namespaces, relist_every=settings.resync_interval, **options)

        self.clusters = mirror(resources.CLUSTERS)
        self.nodesets = mirror(
            resources.NODESETS,
            indexers={**cluster_observe.NODESET_INDEXERS, **indexes.INDEXES_OF_NODESETS},
        )
        self.pods = Informer(
            client,
            resources.PODS,
            namespaces=namespaces,
            label_selector=OF_A_CLUSTER,
            indexers={**cluster_observe.INDEXERS, **indexes.INDEXES_OF_PODS},
        )
        self.revisions = Informer(
            client,
            resources.CONTROLLERREVISIONS,
            namespaces=namespaces,
            label_selector=indexes.SELECTOR,
            indexers=indexes.INDEXES_OF_REVISIONS,
        )
        self.claims = Informer(
            client,
            resources.PERSISTENTVOLUMECLAIMS,
            namespaces=namespaces,
            label_selector=indexes.SELECTOR,
            indexers=indexes.INDEXES_OF_CLAIMS,
        )
        self.children = {
            resource: Informer(
                client,
                resource,
                namespaces=namespaces,
                label_selector=MANAGED,
                indexers=cluster_observe.INDEXERS,
                prune=keep_fields_of(labels.FIELD_MANAGER),
            )
            for resource in CHILDREN
        }
        # Nodes belong to no namespace.
        self.hosts = Informer(client, resources.NODES, prune=prune_host) if settings.watch_nodes else None

    @property
    def mirrors(self) -> Sequence[Mirror]:
        """Those that kopf feeds."""
        return self.clusters, self.nodesets

    @property
    def all(self) -> Sequence[Mirror | Informer]:
        """Every cache."""
        hosts = [self.hosts] if self.hosts is not None else []
        return *self.mirrors, self.pods, self.revisions, self.claims, *self.children.values(), *hosts

    def for_clusters(self) -> cluster_observe.Caches:
        """Return what the Cluster controller reads."""
        return cluster_observe.Caches(
            self.clusters.store,
            self.nodesets.store,
            self.pods.store,
            *(self.children[resource].store for resource in CHILDREN),
        )


async def run(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT.

    Raises
    ------
    NoCredentials
        There is no API server to talk to.
    TaskCrashed
        A background task ended, the election among them (leadership lost). The process must be started again.
    """
    metrics = Metrics()
    stop, ended = asyncio.Event(), asyncio.Event()
    # From the beginning: as the first process of a container it would not hear a signal that it does not wait for.
    _listen(ended)
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(await Connection.connect(settings.kubeconfig))
        fence: Fence = DeadlineFence() if settings.leader_election else OpenFence()
        client = KubeClient(
            connection,
            fence=fence,
            field_manager=labels.FIELD_MANAGER,
            timeout=settings.request_timeout,
            observer=metrics.request,
            max_in_flight=settings.max_requests_in_flight,
        )
        caches = Caches(client, settings)
        supervisor = Supervisor()
        health = HealthServer(metrics.registry, host=settings.health_host, port=settings.health_port)
        health.add_liveness("tasks", supervisor.crashed)
        for cache in caches.all:
            health.add_readiness(f"cache {cache.resource}", cache.synced)
        await health.start()
        stack.push_async_callback(health.stop)
        leading = asyncio.Event()
        # Given back after everything below has ended, and nothing can write any more.
        if isinstance(fence, DeadlineFence):
            elector = _elector(connection, settings, fence)
            leading = elector.leading
            stack.push_async_callback(elector.release)
        else:
            elector = None
            leading.set()
        await stack.enter_async_context(supervisor)
        if elector is not None:
            supervisor.start("election", elector.run())
        recorder = Recorder(client, component=COMPONENT, instance=settings.identity)
        clients = ClientMap(fence, intake=Intake(settings.slurm_answer_limit * MIB))
        stack.push_async_callback(clients.close_all)
        texts = ConfigMapWatcher(client, supervisor)
        alone = asyncio.Event()
        health.add_readiness("no other operator", alone)
        controllers = await stack.enter_async_context(
            _controllers(settings, client, caches, clients, texts, recorder, metrics, leading, alone)
        )
        for controller in controllers:
            health.add_liveness(controller.name, controller.unhealthy)
        kopf_ready = asyncio.Event()
        supervisor.start("event-loop lag", LoopLag(metrics.loop_lag.observe).run())
        supervisor.start("events", recorder.run())
        supervisor.start("leadership", _tell_leadership(leading, metrics))
        supervisor.start("other operators", _wait_for_others(client, settings, recorder, alone))
        for cache in caches.all:
            supervisor.start(f"cache {cache.resource}", cache.run())
        supervisor.start("freeze caches", _freeze(caches))
        supervisor.start("signals", _listen_again(kopf_ready, ended))
        for controller in controllers:
            supervisor.start(controller.name, _until_cancelled(controller))
        # kopf comes last: when it ends it cancels every task that is younger than itself.
        health.add_readiness("kopf", kopf_ready)
        supervisor.start(
            "kopf",
            front.run(
                connection,
                caches.mirrors,
                identity=settings.identity,
                namespaces=settings.namespaces,
                stop=stop,
                ready=kopf_ready,
            ),
        )
        await supervisor.wait(ended)
        logger.info("ending: finishing what is under way")
        await asyncio.gather(*(controller.stop(settings.shutdown_grace) for controller in controllers))
        await recorder.flush()


def _elector(connection: Connection, settings: Settings, fence: DeadlineFence) -> Elector:
    # A client of its own: the Lease is what the fence hangs on, and its renewals must not queue behind other requests.
    client = KubeClient(
        connection, fence=OpenFence(), field_manager=labels.FIELD_MANAGER, timeout=settings.lease_renew_deadline
    )
    return Elector(
        client,
        namespace=settings.lease_namespace,
        name=settings.lease_name,
        identity=settings.identity,
        fence=fence,
        duration=settings.lease_duration,
        renew_deadline=settings.lease_renew_deadline,
        retry_period=settings.lease_retry_period,
    )


@asynccontextmanager
async def _controllers(
    settings: Settings,
    client: KubeClient,
    caches: Caches,
    clients: ClientMap,
    texts: ConfigMapWatcher,
    recorder: Recorder,
    metrics: Metrics,
    leading: asyncio.Event,
    alone: asyncio.Event,
) -> AsyncIterator[list[Controller[Key]]]:
    """Build both controllers and connect everything that wakes them."""
    gates = [*(cache.synced for cache in caches.all), leading, alone]
    async with httpx.AsyncClient(trust_env=False) as http:
        tools = Tools(
            kube=client, sources=SecretReader(client), texts=texts, clients=clients, recorder=recorder, http=http
        )
        images = Images(
            settings.image_slurmctld,
            settings.image_slurmrestd,
            settings.image_agent,
            settings.image_slurmd,
            settings.image_pull_policy,
        )
        pace = Pace(settings.slurm_timeout, settings.node_poll_interval, settings.node_poll_interval_max)
        clusters = cluster.ClusterReconciler(caches.for_clusters(), tools, Environment(images, pace))
        of_clusters: Controller[Key] = Controller(
            "cluster",
            clusters.reconcile,
            tell=clusters.tell,
            workers=settings.cluster_workers,
            gates=gates,
            metrics=metrics.controller("cluster"),
            describe=cluster_wiring.describe,
        )
        reconciler = nodeset.NodeSetController(
            client,
            nodesets=caches.nodesets.store,
            clusters=caches.clusters.store,
            pods=caches.pods.store,
            watch_hosts=caches.hosts is not None,
            revisions=caches.revisions.store,
            claims=caches.claims.store,
            slurm=clients,
            recorder=recorder,
            defaults=Defaults(
                settings.image_slurmd, settings.image_pull_policy, settings.cluster_domain or own_domain()
            ),
            max_startup=settings.max_concurrent_startup,
            patience=timedelta(seconds=settings.registration_patience),
        )
        of_nodesets: Controller[Key] = Controller(
            nodeset.NAME,
            reconciler.reconcile,
            tell=reconciler.tell,
            workers=settings.nodeset_workers,
            gates=gates,
            metrics=metrics.controller(nodeset.NAME),
            describe=lambda key: (resources.NODESETS.kind, key[0], key[1]),
        )
        # Expectations first: who is woken by a pod must find what it was waiting for.
        caches.pods.add_handler(reconciler.expectations.observe)
        _wake_clusters(of_clusters.queue, caches, clients, texts)
        _wake_nodesets(of_nodesets.queue, caches, clients, reconciler)
        yield [of_clusters, of_nodesets]


def _wake_clusters(queue: WorkQueue[Key], caches: Caches, clients: ClientMap, texts: ConfigMapWatcher) -> None:
    wiring = cluster_wiring.wire(queue, clients, texts)
    caches.clusters.add_handler(wiring.clusters)
    caches.nodesets.add_handler(wiring.node_sets)
    caches.pods.add_handler(wiring.pods)
    for informer in caches.children.values():
        informer.add_handler(wiring.children)


def _wake_nodesets(
    queue: WorkQueue[Key], caches: Caches, clients: ClientMap, reconciler: nodeset.NodeSetController
) -> None:
    def waking(keys: Callable[[Object | None, Object | None], Iterable[Key]]) -> Handler:
        def handler(old: Object | None, new: Object | None) -> None:
            for key in keys(old, new):
                queue.add(key)

        return handler

    def node(cluster_uid: str, event: NodeEvent) -> None:
        for key in reconciler.waking.node(cluster_uid, event.old, event.new):
            queue.add(key)

    def contact(cluster_uid: str, _: object) -> None:
        for key in reconciler.waking.contact(cluster_uid):
            queue.add(key)

    caches.nodesets.add_handler(waking(reconciler.waking.nodeset))
    caches.clusters.add_handler(waking(reconciler.waking.cluster))
    caches.pods.add_handler(waking(reconciler.waking.pod))
    caches.claims.add_handler(waking(reconciler.waking.claim))
    if caches.hosts is not None:
        caches.hosts.add_handler(waking(reconciler.waking.host))
    clients.subscribe(node)
    clients.subscribe_contact(contact)


def _listen(ended: asyncio.Event) -> None:
    """Note SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)


async def _listen_again(kopf_ready: asyncio.Event, ended: asyncio.Event) -> None:
    """Take the signals back: kopf takes them for itself when it starts, and must end last."""
    await kopf_ready.wait()
    _listen(ended)
    await asyncio.Event().wait()


async def _until_cancelled(controller: Controller[Key]) -> None:
    """Run a controller; its workers end when the process is asked to, and that is no crash."""
    await controller.run()
    await asyncio.Event().wait()


async def _tell_leadership(leading: asyncio.Event, metrics: Metrics) -> None:
    """Show in the metrics who leads, for as long as the process lives."""
    await leading.wait()
    metrics.leader.set(1)
    await asyncio.Event().wait()


async def _wait_for_others(client: KubeClient, settings: Settings, recorder: Recorder, alone: asyncio.Event) -> None:
    """Let the controllers begin once Slinky's own operator is not at work."""
    await until_alone(
        client,
        takeover.LEASE,
        settings.namespaces,
        frozenset({*settings.slinky_namespaces, settings.lease_namespace}),
        lambda lease, words: recorder.warning(lease, "OtherOperator", words),
    )
    alone.set()
    await asyncio.Event().wait()


async def _freeze(caches: Caches) -> None:
    """Take filled caches out of the garbage collector's rounds."""
    for cache in caches.all:
        await cache.synced.wait()
    freeze_caches()
    await asyncio.Event().wait()
