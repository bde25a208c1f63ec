"""A frozen snapshot of everything a pass reads, from caches and memory; no request is sent here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Final

from slinky_api import labels
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    LOGINSETS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SERVICES,
    STATEFULSETS,
    TOKENS,
)
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX
from slinky_operator.reconcile.secrets import Source
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import TextSource
from slinky_operator.slurm.connection.cluster_client import ClusterClient
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.slurm.connection.signed_messages import SharedKey
from slinky_operator.slurm.pods import pod_ownership
from slurm_client.models import Node

CLUSTER_LABELS: Final = "cluster-labels"
"""Index of a Cluster's objects: over `namespace/name` by the label with its name, if there is one with a uid too."""

UNMARKED: Final = "unmarked"
"""Index of pods over `namespace/name of the Cluster`: those without the label with the Cluster's uid, or whose owners
differ from that label. Daemons and preflights are among them, and slurmd pods that have lost it."""

SLURMD_PODS: Final = "slurmd-pods"
"""Index of pods of NodeSets over `namespace/name of the Cluster`. Pods are classified when they change, not in each
pass: there are thousands of them."""


def by_cluster_labels(obj: Object) -> list[str]:
    """Indexer for `CLUSTER_LABELS`."""
    found = obj["metadata"].get("labels") or {}
    name = found.get(labels.LABEL_CLUSTER_NAME)
    return [f"{obj['metadata'].get('namespace', '')}/{name}"] if name and found.get(labels.LABEL_CLUSTER_UID) else []


def unmarked(obj: Object) -> list[str]:
    """Indexer for `UNMARKED`."""
    own = obj["metadata"].get("labels") or {}
    name = own.get(labels.LABEL_CLUSTER_NAME)
    if not name or (labels.LABEL_CLUSTER_UID in own and pod_ownership.is_slurmd(obj)):
        return []
    return [f"{obj['metadata'].get('namespace', '')}/{name}"]


def slurmd_pods(obj: Object) -> list[str]:
    """Indexer for `SLURMD_PODS`."""
    name = (obj["metadata"].get("labels") or {}).get(labels.LABEL_CLUSTER_NAME)
    if not name or obj.get("kind", PODS.kind) != PODS.kind or not pod_ownership.is_slurmd(obj):
        return []
    return [f"{obj['metadata'].get('namespace', '')}/{name}"]


INDEXERS: Final[Mapping[str, Indexer]] = {
    CLUSTER_LABELS: by_cluster_labels,
    UNMARKED: unmarked,
    SLURMD_PODS: slurmd_pods,
}
"""Indexes that stores of children and pods must have."""

CHILDREN: Final = (STATEFULSETS, DEPLOYMENTS, SERVICES, CONFIGMAPS, PODDISRUPTIONBUDGETS, LOGINSETS, TOKENS)
"""What the Cluster controller creates, in the order of the stores in `Caches`."""

KINDS: Final = frozenset(one.kind for one in CHILDREN)
"""Kinds of children."""


@dataclass(frozen=True, slots=True)
class Caches:
    """The stores that a pass reads."""

    clusters: Store
    node_sets: Store
    """With `INDEXES_OF_NODESETS`."""

    pods: Store
    """Pods that have a label with the name of a Cluster; with `INDEXERS`."""

    stateful_sets: Store
    deployments: Store
    services: Store
    config_maps: Store
    budgets: Store
    """Objects with the operator's label `app.kubernetes.io/managed-by`; each with `INDEXERS`."""

    login_sets: Store
    """All of them, those of users too; with `INDEXERS`."""

    tokens: Store
    """The same."""

    @property
    def children(self) -> tuple[Store, ...]:
        """Stores of objects that belong to a Cluster."""
        return (
            self.stateful_sets,
            self.deployments,
            self.services,
            self.config_maps,
            self.budgets,
            self.login_sets,
            self.tokens,
        )


@dataclass(frozen=True, slots=True)
class SlurmView:
    """What is known of a Cluster's Slurm."""

    contact: Contact
    fingerprint: str
    """Identifies what the connection was made from."""

    nodes: Mapping[str, Node]
    answered_at: datetime | None
    slurm_version: str
    api_version: str
    replicas: frozenset[str] = frozenset()
    """URLs of the slurmrestds that are called."""

    slurm_key: SharedKey | None = None
    """The key of auth/slurm that questions to slurmds are signed with."""


@dataclass(frozen=True, slots=True)
class ClusterPods:
    """The pods of a Cluster."""

    slurmd_names: tuple[str, ...] = ()
    """Names of the pods of NodeSets that are, or may be, this Cluster's, or a former one's of its name."""

    slurmds: tuple[Object, ...] = ()
    """These pods, in no particular order."""

    controller: Object | None = None
    """slurmctld's, if it is not being deleted."""

    controller_ending: Object | None = None
    """slurmctld's pod while it is being deleted."""

    daemons: Mapping[str, tuple[Object, ...]] = field(default_factory=dict)
    """Those of daemons other than slurmctld, by `app.kubernetes.io/component`; none that is being deleted."""

    preflights: Mapping[str, Object] = field(default_factory=dict)
    """Those of preflights, by name."""

    logins: tuple[Object, ...] = ()
    """Those of all its LoginSets, those that are being removed too: their sessions may go on for hours."""

    @property
    def of_daemons(self) -> frozenset[str]:
        """Names of the pods of slurmctld and of the other daemons."""
        every = (self.controller, self.controller_ending, *chain(*self.daemons.values()))
        return frozenset(one["metadata"]["name"] for one in every if one is not None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a pass reads."""

    cluster: Cluster
    raw: Object
    node_sets: tuple[tuple[NodeSet, Object], ...]
    """NodeSets that name this Cluster, in order of name."""

    children: Mapping[tuple[str, str], Object]
    """Objects that the operator has created for this Cluster, or a former one of its name, by kind and name.

    They have the Cluster's name in their labels, and a name derived from it; LoginSets, whose names depend on the spec,
    its name and a uid in their labels."""

    pods: ClusterPods
    sources: Mapping[str, Source]
    slurm: SlurmView | None
    memory: Memory
    server: str = ""
    """Address of slurmrestd."""

    texts: Mapping[str, TextSource] = field(default_factory=dict)
    """ConfigMaps with parts of the configuration, by name."""

    invalid_node_sets: tuple[tuple[Object, InvalidObjectError], ...] = field(default=())
    older_elsewhere: int = 0
    """How many older Clusters of the namespace have a Slurm elsewhere; 0 for one whose Slurm is managed."""

    @property
    def slurm_answers(self) -> bool:
        """Whether Slurm serves the operator."""
        return self.slurm is not None and self.slurm.contact.state is ContactState.READY


def observe(
    cluster: Cluster,
    raw: Object,
    caches: Caches,
    memory: Memory,
    sources: Mapping[str, Source],
    client: ClusterClient | None,
    server: str,
    now: float,
    texts: Mapping[str, TextSource],
) -> Snapshot:
    """Build the snapshot of one Cluster, at `now` (monotonic seconds)."""
    node_sets: list[tuple[NodeSet, Object]] = []
    invalid: list[tuple[Object, InvalidObjectError]] = []
    key = f"{cluster.namespace}/{cluster.name}"
    found = caches.node_sets.find(CLUSTER_INDEX, key)
    for cached in sorted(found, key=lambda one: one["metadata"]["name"]):
        obj = memory.writes.newest("NodeSet", cached["metadata"]["name"], cached, now) or cached
        try:
            node_sets.append((memory.node_sets.read(obj), obj))
        except InvalidObjectError as error:
            invalid.append((obj, error))
    children = {
        (obj["kind"], obj["metadata"]["name"]): obj
        for store in caches.children
        for obj in store.find(CLUSTER_LABELS, key)
        if store is caches.login_sets or naming.is_child(cluster.name, obj["metadata"]["name"])
    }
    for kind, name in list(memory.writes.own_writes):
        newest = memory.writes.newest(kind, name, children.get((kind, name)), now)
        if newest is not None and kind in KINDS and by_cluster_labels(newest) == [key]:
            children[kind, name] = newest
    return Snapshot(
        cluster=cluster,
        raw=raw,
        node_sets=tuple(node_sets),
        children=children,
        pods=_pods(cluster, caches.pods),
        sources=sources,
        slurm=None if client is None else _view(client),
        memory=memory.frozen(),
        server=server,
        texts=texts,
        invalid_node_sets=tuple(invalid),
        older_elsewhere=_older_elsewhere(raw, caches.clusters) if cluster.spec.external else 0,
    )


def _pods(cluster: Cluster, store: Store) -> ClusterPods:
    key = f"{cluster.namespace}/{cluster.name}"
    pod = store.get(cluster.namespace, naming.controller_pod(cluster.name))
    unmarked_pods = store.find(UNMARKED, key)
    return ClusterPods(
        slurmd_names=tuple(sorted(name for _, name in store.find_keys(SLURMD_PODS, key))),
        slurmds=tuple(store.find(SLURMD_PODS, key)),
        controller=pod if _is_controller(pod, cluster) else None,
        controller_ending=pod if _is_controller(pod, cluster, ending=True) else None,
        daemons=_daemon_pods(unmarked_pods, cluster),
        preflights={one["metadata"]["name"]: one for one in unmarked_pods if is_trial(one, cluster.name)},
        logins=tuple(one for one in unmarked_pods if _has_component(one, cluster, naming.COMPONENT_LOGIN)),
    )


def is_trial(pod: Object, cluster: str) -> bool:
    """Whether a pod is that of a trial, of the Cluster with this name."""
    own = naming.selector_labels_of(cluster, naming.COMPONENT_PREFLIGHT)
    named = naming.is_preflight(cluster, pod["metadata"]["name"])
    return (
        named and own.items() <= (pod["metadata"].get("labels") or {}).items() and pod_ownership.may_be_preflight(pod)
    )


def _older_elsewhere(raw: Object, clusters: Store) -> int:
    """Invalid ones count, since each may be valid in the next moment; those that are being deleted do not."""
    own = _age(raw)
    return sum(
        1
        for one in clusters.items(raw["metadata"]["namespace"])
        if (one.get("spec") or {}).get("server") and not one["metadata"].get("deletionTimestamp") and _age(one) < own
    )


def _age(obj: Object) -> tuple[str, str]:
    """What orders objects by age, those of one second by uid."""
    return obj["metadata"].get("creationTimestamp") or "", obj["metadata"].get("uid") or ""


def _is_controller(pod: Object | None, cluster: Cluster, *, ending: bool = False) -> bool:
    if pod is None or bool(pod["metadata"].get("deletionTimestamp")) is not ending:
        return False
    return pod_ownership.may_be_daemon(pod) and _has_component(pod, cluster, naming.COMPONENT_CONTROLLER)


def _daemon_pods(pods: Iterable[Object], cluster: Cluster) -> dict[str, tuple[Object, ...]]:
    """Pods of daemons by component; slurmctld's is found by its name."""
    found: dict[str, tuple[Object, ...]] = {}
    for pod in pods:
        component = (pod["metadata"].get("labels") or {}).get(labels.LABEL_APP_COMPONENT)
        if component in {None, naming.COMPONENT_CONTROLLER, naming.COMPONENT_PREFLIGHT}:
            continue
        named = pod["metadata"]["name"].startswith(f"{naming.daemon(cluster.name, component)}-")
        ending = bool(pod["metadata"].get("deletionTimestamp"))
        if named and not ending and _has_component(pod, cluster, component) and pod_ownership.may_be_daemon(pod):
            found[component] = (*found.get(component, ()), pod)
    return found


def _has_component(pod: Object, cluster: Cluster, component: str) -> bool:
    """Whether a pod has the labels of a daemon, which alone prove nothing: anybody may set them."""
    return naming.selector_labels(cluster, component).items() <= (pod["metadata"].get("labels") or {}).items()


def _view(client: ClusterClient) -> SlurmView:
    return SlurmView(
        contact=client.contact,
        fingerprint=client.fingerprint,
        nodes=client.nodes,
        answered_at=client.answered_at,
        slurm_version=client.client.slurm_version,
        api_version=client.client.api_version or "",
        replicas=frozenset(client.replicas.urls),
        slurm_key=client.slurm_key,
    )
