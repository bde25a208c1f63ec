"""What the NodeSet controller exports to the process: the caches it reads, and how it is built from the settings."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from slinky_operator.identity.pod import SSSD, SssdImage
from slinky_operator.kube.cache.store import Key, key_of
from slinky_operator.kube.domain import own_domain
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, CONTROLLERREVISIONS, NODES, NODESETS, PERSISTENTVOLUMECLAIMS, PODS
from slinky_operator.nodeset.controller import NodeSetReconciler
from slinky_operator.nodeset.execute.hosts.drain_requests import DrainRequests
from slinky_operator.nodeset.execute.hosts.machines import Machines
from slinky_operator.nodeset.execute.hosts.proof import Bridged, SlurmOf
from slinky_operator.nodeset.execute.hosts.slurms import bridged, clients
from slinky_operator.nodeset.model.machines import MachineRules
from slinky_operator.nodeset.observation import indexes
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.reconcile.cached.caches import CacheSpec
from slinky_operator.reconcile.cached.indexes import INDEXES_OF_NODESETS, OWNERS, PODS_OF_CLUSTERS, node_pruner
from slinky_operator.reconcile.cached.kept_fields import prune_claim, prune_pod
from slinky_operator.reconcile.spec import Built, ControllerSpec, Services
from slinky_operator.settings import ALL, Settings
from slinky_operator.slurm.connection.volume_query import ask_volumes
from slinky_operator.slurm.naming import SLURMD
from slinky_operator.slurm.pods.volume_room import JOB_OUTPUT


def _caches(settings: Settings) -> Sequence[CacheSpec]:
    found = [
        CacheSpec(CLUSTERS, mirrored=True),
        CacheSpec(NODESETS, INDEXES_OF_NODESETS, mirrored=True),
        CacheSpec(PODS, indexes.INDEXES_OF_PODS, PODS_OF_CLUSTERS, prune_pod, owners=OWNERS),
        CacheSpec(CONTROLLERREVISIONS, indexes.INDEXES_OF_REVISIONS, indexes.SELECTOR, owners=OWNERS),
        CacheSpec(PERSISTENTVOLUMECLAIMS, indexes.INDEXES_OF_CLAIMS, indexes.SELECTOR, prune_claim, owners=OWNERS),
    ]
    # Nodes are cluster-scoped: an operator restricted to some namespaces may not watch them.
    return (
        [*found, CacheSpec(NODES, prune=node_pruner(bridged=bool(settings.bridge_clusters)))]
        if settings.watch_nodes
        else found
    )


def _build(services: Services) -> Built:
    settings, caches = services.settings, services.caches
    image = Defaults(
        image=settings.images[SLURMD],
        image_pull_policy=settings.image_pull_policy,
        domain=settings.cluster_domain or own_domain(),
        sssd=SssdImage(settings.images[SSSD], settings.image_pull_policy),
        agent=settings.image_agent,
    )
    requests = _drain_requests(services) if settings.drain_requests_namespace else None
    reconciler = NodeSetReconciler(
        services.kube,
        nodesets=caches.store(NODESETS),
        clusters=services.clusters,
        pods=caches.store(PODS),
        revisions=caches.store(CONTROLLERREVISIONS),
        claims=caches.store(PERSISTENTVOLUMECLAIMS),
        watch_hosts=settings.watch_nodes,
        slurm=services.slurm,
        recorder=services.recorder,
        defaults=image,
        drain_requests=requests.by_host if requests is not None else dict,
        machines=_machines(services) if settings.machine_namespaces else None,
        ask_volumes=lambda looker: ask_volumes(services.http, looker, (JOB_OUTPUT,), time.monotonic),
        max_startup=settings.max_concurrent_startup,
        patience=timedelta(seconds=settings.registration_patience),
        changes=services.changes,
    )
    table = reconciler.triggers.table(reconciler.expectations.observe)
    return Built(reconciler, table if requests is None else replace(table, others=(requests.subscribe,)))


def _drain_requests(services: Services) -> DrainRequests:
    """NVSentinel's requests to drain, listed and served in the background."""
    found = DrainRequests(
        services.kube,
        services.settings.drain_requests_namespace,
        services.caches.store(PODS),
        _slurm_of(services),
        _bridged(services),
    )
    services.supervisor.start("DrainRequests", found.run())
    return found


def _machines(services: Services) -> Machines:
    """What has machines rebooted or deleted."""
    settings = services.settings
    rules = MachineRules(
        frozenset(settings.machine_namespaces),
        settings.machine_label,
        settings.reboot_by,
        delete_nodes=settings.delete_nodes,
    )
    return Machines(services.kube, rules, _slurm_of(services), _bridged(services), clock=time.monotonic)


def _slurm_of(services: Services) -> SlurmOf:
    def uid_of(key: Key) -> str | None:
        cluster = services.clusters.known(key)
        return cluster.uid if cluster is not None else None

    return clients(services.slurm, uid_of)


def _bridged(services: Services) -> Bridged:
    allowed = services.settings.bridge_clusters

    def with_bridges() -> list[Object]:
        return [one for one in services.clusters.store if ALL in allowed or "/".join(map(str, key_of(one))) in allowed]

    def labels_of(host: str) -> Mapping[str, str]:
        node = services.caches.store(NODES).get(None, host)
        return (node["metadata"].get("labels") or {}) if node is not None else {}

    def is_whole() -> bool:
        store = services.clusters.store
        if ALL in allowed:
            return store.is_whole
        return not any(store.missing(one.partition("/")[0]) for one in allowed)

    return bridged(services.slurm, with_bridges, labels_of, is_whole)


SPEC: Final = ControllerSpec(
    "nodeset", NODESETS, caches=_caches, build=_build, workers=lambda settings: settings.nodeset_workers
)
