"""Wiring: everything that lives as long as the process is built, connected, run and stopped here, in order.

Caches (mirrors of what users write, fed by kopf; informers of what the operator owns) are filled by every replica, so
that a standby takes over at once; controllers wait for the caches and for leadership, before each pass: a leader whose
Lease lapses stands by. One fence checks every write to Kubernetes and to every Slurm; only the Lease is written without
it.

Order of shutdown: no more keys, running passes finish, connections to Slurm close, caches and kopf stop, the Lease is
released. A crash of any background task ends the process with an error, and so does the loss of the Lease.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.events import EventReason
from slinky_operator import controllers as switchboard
from slinky_operator import custom_resource_watch
from slinky_operator.jobs import phases
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.calls.connection import Connection
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.events import Recorder
from slinky_operator.kube.leadership.fence import DeadlineFence, Fence, OpenFence
from slinky_operator.kube.leadership.lease import Elector
from slinky_operator.kube.leadership.legacy_operator import until_alone
from slinky_operator.kube.leadership.releases import Releases
from slinky_operator.kube.leadership.scope import ALL
from slinky_operator.kube.resources import CLUSTERS, Resource
from slinky_operator.metrics.budgets import Budgets
from slinky_operator.metrics.contacts import Contacts, Watches
from slinky_operator.metrics.objects import Objects
from slinky_operator.metrics.process import Metrics
from slinky_operator.nodeset.execute import delete_pods
from slinky_operator.nodeset.model import takeover
from slinky_operator.nodeset.slurm_nodes import drains
from slinky_operator.reconcile.cached.caches import Caches
from slinky_operator.reconcile.cached.gate import Gate as ReadingGate
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.spec import ControllerSpec, Services
from slinky_operator.reconcile.triggers import connect, observe
from slinky_operator.runtime import threads
from slinky_operator.runtime.controller import Controller, Gate
from slinky_operator.runtime.garbage_collection import freeze_caches, pause_collector
from slinky_operator.runtime.health import HealthServer
from slinky_operator.runtime.logging import LevelSwitch
from slinky_operator.runtime.loop_lag import LoopLag
from slinky_operator.runtime.tasks import Supervisor
from slinky_operator.settings import Settings
from slinky_operator.slurm.connection.clients import ClientMap
from slinky_operator.slurm.connection.job_output import JobOutput
from slinky_operator.slurm.connection.pod_reader import PodReader
from slurm_client.connection.intake import MIB, Intake

logger = logging.getLogger(__name__)

COMPONENT: Final = "slurm-operator"


async def run(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT.

    Raises
    ------
    NoCredentials
        There is no API server to connect to.
    TaskCrashed
        A background task ended, for example the election (leadership lost). The process must be restarted.
    """
    metrics = Metrics(
        causes=drains.Cause, without_drain=delete_pods.WITHOUT_DRAIN, ends=(*phases.ENDS, Reason.END_NOT_SEEN)
    )
    stop, ended = asyncio.Event(), asyncio.Event()
    _prepare(asyncio.get_running_loop(), settings, ended)
    with pause_collector():
        # Before anything else runs on the loop.
        specs = switchboard.wanted(settings)
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(await Connection.connect(settings.kubeconfig))
        fence: Fence = DeadlineFence() if settings.leader_election else OpenFence()
        client = KubeClient(
            connection,
            fence=fence,
            field_manager=labels.FIELD_MANAGER,
            timeout=settings.request_timeout,
            observer=metrics.kubernetes_calls,
            max_in_flight=settings.max_requests_in_flight,
        )
        caches = Caches(
            client,
            (cache for controller in specs for cache in controller.caches(settings)),
            namespaces=settings.namespaces,
            relist_every=settings.resync_interval,
            budget=settings.namespace_budget * MIB,
            total=settings.memory_limit * MIB // 2 or None,
        )
        supervisor = Supervisor()
        health = HealthServer(metrics.registry, host=settings.health_host, port=settings.health_port)
        health.add_liveness("tasks", supervisor.crashed)
        for cache in caches.all:
            health.add_readiness(f"cache {cache.resource}", cache.synced)
        await health.start()
        stack.push_async_callback(health.stop)
        unfenced = _unfenced(connection, settings)
        elector = _elector(unfenced, settings, fence) if isinstance(fence, DeadlineFence) else None
        leading = _leading(elector)
        if elector is not None:
            # Released after everything below has ended, when nothing can write any more.
            stack.push_async_callback(elector.release)
        await stack.enter_async_context(supervisor)
        if elector is not None:
            supervisor.start("election", elector.run())
        recorder = Recorder(client, component=COMPONENT, instance=settings.identity, observer=metrics.changes.event)
        clients = ClientMap(
            fence,
            intake=Intake(settings.slurm_answer_limit * MIB),
            hook=metrics.slurm_calls,
            overrides=settings.slurmrestd_overrides,
        )
        _show(metrics, caches, clients, leading)
        stack.push_async_callback(clients.close_all)
        alone = asyncio.Event()
        health.add_readiness("no other operator", alone)
        http = await stack.enter_async_context(PodReader(clients.intake))
        readable = ClusterReader(caches.store(CLUSTERS), settings.namespaces)
        services = Services(settings, client, caches, readable, clients, recorder, supervisor, http, metrics.changes)
        releases = _releases(unfenced, elector, settings, recorder, health)
        gates = [*(cache.synced for cache in caches.all), leading, alone, *([releases.begun] if releases else ())]
        controllers = _controllers(specs, services, metrics, gates, lambda: releases.elsewhere if releases else ())
        for controller in controllers:
            health.add_liveness(controller.name, controller.unhealthy)
        kopf_ready = asyncio.Event()
        background = {
            "event-loop lag": LoopLag(metrics.loop_lag.observe).run(),
            "events": recorder.run(),
            "other operators": _wait_for_others(client, settings, recorder, alone),
            **{f"cache {cache.resource}": cache.run() for cache in caches.all},
            "freeze caches": _freeze(caches),
            "what did not fit": caches.refill(),
            **{f"namespaces {number}": one.run() for number, one in enumerate(caches.interests.values())},
            "signals": _listen_again(kopf_ready, ended),
            **({"other releases": releases.run()} if releases else {}),
            **(await _kubelet_api(services, stack, (leading, alone), metrics)),
        }
        for name, task in background.items():
            supervisor.start(name, task)
        for controller in controllers:
            supervisor.start(controller.name, _until_cancelled(controller))
        # Before what passes use is closed, after a crash too.
        stack.push_async_callback(_end, supervisor, controllers)
        # kopf is started last: when it ends, it cancels every task that is younger than itself.
        health.add_readiness("kopf", kopf_ready)
        supervisor.start(
            "kopf",
            custom_resource_watch.run(
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


async def _kubelet_api(
    services: Services, stack: AsyncExitStack, gates: Sequence[asyncio.Event], metrics: Metrics
) -> dict[str, Coroutine[Any, Any, None]]:
    """The task of the kubelet API of virtual Nodes, if there may be some."""
    if not services.settings.virtual_nodes_clusters:
        return {}
    from slinky_operator.virtual_nodes.kubelet import build as kubelet_api  # noqa: PLC0415 not where it is off

    events = (*gates, *(cache.synced for cache in services.caches.all))
    ends = metrics.kubelet_certificate.set
    output = await stack.enter_async_context(JobOutput())
    api = kubelet_api.build(services, output, lambda: all(event.is_set() for event in events), ends)
    return {"kubelet API": api.run()}


def _show(metrics: Metrics, caches: Caches, clients: ClientMap, leading: asyncio.Event) -> None:
    """Show caches, objects, contacts and who leads in the metrics."""
    metrics.leader.set_function(lambda: float(leading.is_set()))
    stores = {resource: cache.store for resource, cache in caches.by_resource.items()}
    for collector in (
        Objects(stores, leads=leading.is_set),
        Watches(caches.by_resource),
        Budgets({"users": caches.of_users, "operator": caches.of_operator}, caches.total),
        Contacts(clients),
    ):
        metrics.registry.register(collector)


def _unfenced(connection: Connection, settings: Settings) -> KubeClient:
    # A separate client: the fence depends on the Lease, and its renewals must not queue behind other requests.
    return KubeClient(
        connection, fence=OpenFence(), field_manager=labels.FIELD_MANAGER, timeout=settings.lease_renew_deadline
    )


def _leading(elector: Elector | None) -> asyncio.Event:
    """Set once this process leads: at once without an election."""
    if elector is not None:
        return elector.leading
    leading = asyncio.Event()
    leading.set()
    return leading


def _elector(client: KubeClient, settings: Settings, fence: DeadlineFence) -> Elector:
    return Elector(
        client,
        namespace=settings.lease_namespace,
        name=settings.lease_name,
        identity=settings.identity,
        fence=fence,
        duration=settings.lease_duration,
        renew_deadline=settings.lease_renew_deadline,
        retry_period=settings.lease_retry_period,
        labels={labels.LABEL_OPERATOR: "true"},
        annotations={
            labels.ANNOTATION_SERVES: ",".join(settings.namespaces) or ALL,
            labels.ANNOTATION_SERVICE_ACCOUNT: settings.service_account,
        },
    )


def _releases(
    client: KubeClient, elector: Elector | None, settings: Settings, recorder: Recorder, health: HealthServer
) -> Releases | None:
    """What keeps other releases of this operator apart; without a Lease they could not know of this one."""
    if elector is None:
        return None
    releases = Releases(
        client,
        elector,
        home=settings.lease_namespace,
        name=settings.lease_name,
        namespaces=settings.namespaces,
        named=settings.other_operators,
        tell=lambda lease, words: recorder.warning(lease, EventReason.OTHER_OPERATOR, words),
    )
    health.add_readiness("no other release", releases.problem)
    return releases


def _controllers(
    specs: Sequence[ControllerSpec],
    services: Services,
    metrics: Metrics,
    gates: Sequence[Gate],
    elsewhere: Callable[[], Collection[str]],
) -> list[Controller[Key]]:
    """Build all controllers and connect everything that triggers them."""
    built = [(spec, spec.build(services)) for spec in specs]
    caches = services.caches.by_resource
    for _, one in built:
        # Before any trigger: a pass triggered by a pod must find the write that it was waiting for.
        observe(one.triggers, caches)
    controllers = []
    for spec, one in built:
        controller: Controller[Key] = Controller(
            spec.name,
            ReadingGate(
                one.reconciler, spec.resource, _read(spec, services.settings), services.caches, elsewhere
            ).reconcile,
            tell=one.reconciler.tell,
            workers=spec.workers(services.settings),
            gates=gates,
            metrics=metrics.controller(spec.name),
            describe=spec.describe,
            lane=lambda key: key[0] or None,
        )
        connect(one.triggers, controller.queue, caches, services.slurm)
        controllers.append(controller)
    return controllers


def _prepare(loop: asyncio.AbstractEventLoop, settings: Settings, ended: asyncio.Event) -> None:
    """Set up what the whole process has of the event loop: signals and threads."""
    # From the start: PID 1 of a container does not receive a signal that it has no handler for.
    _listen(ended)
    switch = LevelSwitch(level=settings.log_level, form=settings.log_format)
    loop.add_signal_handler(signal.SIGUSR1, switch.turn)
    threads.serve_names(loop)


def _read(spec: ControllerSpec, settings: Settings) -> set[Resource]:
    """The kinds that a controller reads."""
    return {cache.resource for cache in spec.caches(settings)}


def _listen(ended: asyncio.Event) -> None:
    """Handle SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)


async def _listen_again(kopf_ready: asyncio.Event, ended: asyncio.Event) -> None:
    """Handle the signals again: kopf replaces the handlers when it starts, and must end last."""
    await kopf_ready.wait()
    _listen(ended)
    await asyncio.Event().wait()


async def _until_cancelled(controller: Controller[Key]) -> None:
    """Run a controller; that its workers end on shutdown is no crash."""
    await controller.run()
    await asyncio.Event().wait()


async def _end(supervisor: Supervisor, controllers: Sequence[Controller[Key]]) -> None:
    """Cancel the passes that still run, and wait until they have ended."""
    for controller in controllers:
        await supervisor.stop(controller.name)


async def _wait_for_others(client: KubeClient, settings: Settings, recorder: Recorder, alone: asyncio.Event) -> None:
    """Let the controllers start once Slinky's own operator is not running."""
    await until_alone(
        client,
        takeover.LEASE,
        settings.namespaces,
        frozenset({*settings.slinky_namespaces, settings.lease_namespace}),
        lambda lease, words: recorder.warning(lease, EventReason.OTHER_OPERATOR, words),
    )
    alone.set()
    await asyncio.Event().wait()


async def _freeze(caches: Caches) -> None:
    """Exclude filled caches from garbage collection."""
    for cache in caches.all:
        await cache.synced.wait()
    freeze_caches()
    await asyncio.Event().wait()
