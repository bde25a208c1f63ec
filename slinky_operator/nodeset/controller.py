"""The NodeSet controller: strings observe, plan, act and status together, and says what wakes it.

What it keeps between passes is kept by uid of the NodeSet, and dispensable: writes that the caches have yet to show,
guards known to exist, and the names of nodes whose pods a kubelet has declared ended. After a restart the caches start
from a fresh list, guards are looked up, and for the ended pods Slurm's own timeout takes over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from slinky_api import labels
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.nodeset import NodeSet, NodeSetStatus, ScalingMode
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.expectations import Expectations
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slinky_operator.kube.store import Indexer, Key, Store, by_label
from slinky_operator.nodeset import asking, facts, identity, status
from slinky_operator.nodeset.act import Actor
from slinky_operator.nodeset.actions import LetGo
from slinky_operator.nodeset.generated import Defaults
from slinky_operator.nodeset.hosts import Hosts
from slinky_operator.nodeset.means import Means, Outcome
from slinky_operator.nodeset.observe import (
    CLAIM_INDEX,
    NODE_INDEX,
    OLDEST_PICTURE,
    POD_INDEX,
    REVISION_INDEX,
    Observer,
    blinded,
    with_jobs,
)
from slinky_operator.nodeset.plan import LATER, Plan, plan
from slinky_operator.nodeset.ports import Kube, Recorder, Slurm, SlurmByCluster
from slinky_operator.nodeset.reserved import ReservedNames
from slinky_operator.nodeset.snapshot import Snapshot
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm.clients import ContactState
from slurm_client import errors as slurm_errors
from slurm_client.models import Node

logger = logging.getLogger(__name__)

NAME: Final = "nodeset"

AT_ONCE: Final = 0.05
"""Seconds until the pass after one that wrote to Slurm: what it wrote is in the cache by then."""

BLIND: Final = 5.0
"""Seconds until the next try after Slurm has failed to answer a question or a write."""

STARTUP: Final = 1000
"""Pods of one NodeSet that may be starting at a time, where its spec does not say."""

CLUSTER_INDEX: Final = "cluster"
"""Index of the NodeSet cache over `<namespace>/<cluster>`."""

HOST_INDEX: Final = "host"
"""Index of the pod cache over the Kubernetes Node that a pod of a NodeSet is bound to."""

INDEXES_OF_PODS: Final[Mapping[str, Indexer]] = {
    POD_INDEX: lambda obj: (
        [uid] if (uid := (obj["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_UID)) else []
    ),
    NODE_INDEX: lambda obj: (
        [f"{cluster}/{facts.node_name(obj)}"]
        if (cluster := (obj["metadata"].get("labels") or {}).get(labels.LABEL_CLUSTER_UID))
        and labels.LABEL_NODESET_UID in obj["metadata"]["labels"]
        else []
    ),
    HOST_INDEX: lambda obj: (
        [host]
        if labels.LABEL_NODESET_UID in (obj["metadata"].get("labels") or {})
        and (host := (obj.get("spec") or {}).get("nodeName"))
        else []
    ),
}
"""Indexes the pod cache must have."""

INDEXES_OF_REVISIONS: Final[Mapping[str, Indexer]] = {REVISION_INDEX: by_label(labels.LABEL_NODESET_UID)}
"""Indexes the ControllerRevision cache must have."""

INDEXES_OF_CLAIMS: Final[Mapping[str, Indexer]] = {
    CLAIM_INDEX: lambda obj: [
        f"{obj['metadata'].get('namespace') or ''}/{name}"
        for name in [(obj["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_NAME)]
        if name
    ]
}
"""Indexes the claim cache must have."""

INDEXES_OF_NODESETS: Final[Mapping[str, Indexer]] = {
    CLUSTER_INDEX: lambda obj: [
        f"{obj['metadata'].get('namespace') or ''}/{(obj.get('spec') or {}).get('clusterName') or ''}"
    ]
}
"""Indexes the NodeSet cache must have."""

SELECTOR: Final = labels.LABEL_NODESET_NAME
"""Label selector of what belongs to any NodeSet."""


@dataclass(slots=True)
class _Memory:
    """What is remembered of one NodeSet."""

    ended: set[str] = field(default_factory=set)
    told_slurm_at: float | None = None
    """Clock of the last write to Slurm that its cache may not show; until it does, nothing is counted."""


class NodeSetController:
    """Reconciles NodeSets.

    Parameters
    ----------
    kube
        The API server.
    nodesets, clusters, pods, revisions, claims
        Caches, with `INDEXES_OF_NODESETS`, `INDEXES_OF_PODS` and so on where there are such.
    watch_hosts
        Whether `keys_of_host` will be told of the Kubernetes Nodes. Without them cordons are not noticed.
    slurm
        The Slurm of each Cluster.
    recorder
        Takes Events.
    defaults
        The operator's settings for new pods.
    now, clock
        The wall clock, and seconds that are never set back.
    max_startup
        How many pods of a NodeSet may be starting, where its spec does not say.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        nodesets: Store,
        clusters: Store,
        pods: Store,
        revisions: Store,
        claims: Store,
        watch_hosts: bool,
        slurm: SlurmByCluster,
        recorder: Recorder,
        defaults: Defaults,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        max_startup: int = STARTUP,
    ) -> None:
        self._kube = kube
        self._nodesets = nodesets
        self._clusters = clusters
        self._recorder = recorder
        self._defaults = defaults
        self._now = now
        self._clock = clock
        self._pods = pods
        self._hosts = Hosts() if watch_hosts else None
        self._observer = Observer(
            clusters, pods, revisions, claims, self._hosts, slurm, clock=clock, max_startup=max_startup
        )
        self.expectations = Expectations(pods, clock=clock)
        """Add `expectations.observe` as the first handler of the pod informer."""
        self._guards: dict[str, str] = {}
        self._reserved = ReservedNames(clock)
        self._memory: dict[str, _Memory] = {}

    # What wakes it

    def keys_of_nodeset(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of NodeSets: their own key."""
        obj = new if new is not None else old
        if obj is None:
            return
        if new is None or (old is not None and old["metadata"]["uid"] != new["metadata"]["uid"]):
            self._forget((old or obj)["metadata"]["uid"])
        yield _key(obj)

    def keys_of_cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: all NodeSets that name it, unless nothing has changed that they read."""
        if old is not None and new is not None and _relevant(old) == _relevant(new):
            return
        for obj in filter(None, (new if new is not None else old,)):
            namespace, name = _key(obj)
            for nodeset in self._nodesets.find(CLUSTER_INDEX, f"{namespace}/{name}"):
                yield _key(nodeset)

    def keys_of_pod(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of pods: their NodeSet. Notes which of them had ended when they went."""
        obj = new if new is not None else old
        if obj is None:
            return
        own = obj["metadata"].get("labels") or {}
        uid, name = own.get(labels.LABEL_NODESET_UID), own.get(labels.LABEL_NODESET_NAME)
        if not uid or not name:
            return
        memory = self._memory.setdefault(uid, _Memory())
        if new is None and facts.has_ended(obj.get("status") or {}, deleting=True):
            memory.ended.add(facts.node_name(obj))
        elif new is not None:
            memory.ended.discard(facts.node_name(obj))
        yield obj["metadata"].get("namespace") or "", name

    def keys_of_claim(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of claims: their NodeSet when one goes, since its name may be waited for."""
        if new is None and old is not None:
            own = old["metadata"].get("labels") or {}
            yield old["metadata"].get("namespace") or "", own.get(labels.LABEL_NODESET_NAME) or ""

    def keys_of_node(self, cluster_uid: str, old: Node | None, new: Node | None) -> Iterable[Key]:
        """Node event of a Cluster's Slurm: the NodeSet the record names, or whose pod has that name."""
        node = new if new is not None else old
        if node is None:
            return
        found: set[Key] = set()
        for record in (old, new):
            namespace, slash, name = (record.extra if record is not None else "").partition("/")
            if slash and self._nodesets.get(namespace, name) is not None:
                found.add((namespace, name))
        if not found:
            found.update(self._by_name(cluster_uid, node.name))
            found.update(_key_of_owner(pod) for pod in self._pods.find(NODE_INDEX, f"{cluster_uid}/{node.name}"))
            if old is None or new is None:
                # A name that was somebody else's may be free, or one that was free is not.
                of_cluster = frozenset(self.keys_of_contact(cluster_uid))
                on_hosts = {_key(nodeset) for nodeset in self._nodesets if _is_on_hosts(nodeset)}
                found.update(on_hosts & of_cluster)
        yield from found

    def keys_of_host(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Kubernetes Nodes: NodeSets with pods there, and those that may want one there.

        Nobody if nothing has changed that means anything.
        """
        host = self._hosts.observe(old, new) if self._hosts is not None else None
        if host is None:
            return
        found = {_key_of_owner(pod) for pod in self._pods.find(HOST_INDEX, host.name)}
        found.update(_key(nodeset) for nodeset in self._nodesets if _is_on_hosts(nodeset))
        yield from found

    def keys_of_contact(self, cluster_uid: str) -> Iterable[Key]:
        """Change of contact with a Cluster's Slurm: all NodeSets that name it."""
        for cluster in self._clusters:
            if cluster["metadata"]["uid"] == cluster_uid:
                namespace, name = _key(cluster)
                for nodeset in self._nodesets.find(CLUSTER_INDEX, f"{namespace}/{name}"):
                    yield _key(nodeset)

    def _by_name(self, cluster_uid: str, node: str) -> Iterable[Key]:
        """The NodeSet that would name a pod so, among those of a Cluster."""
        head, dash, _ = node.rpartition("-")
        if not dash:
            return
        for key in self.keys_of_contact(cluster_uid):
            if key[1] == head:
                yield key

    # The pass

    async def reconcile(self, key: Key) -> Result:
        """Bring one NodeSet nearer to its spec.

        Raises
        ------
        KubeError
            What the API server could not do; the pass is repeated.
        """
        obj = self._nodesets.get(*key)
        if obj is None:
            return Result()
        uid = obj["metadata"]["uid"]
        if not self.expectations.satisfied(uid):
            return Result(self.expectations.expires_in(uid))
        try:
            nodeset = self._observer.readings.nodeset(obj)
        except InvalidObjectError as error:
            await self._tell_invalid(obj, str(error))
            return Result()
        memory = self._memory.setdefault(uid, _Memory())
        cluster = self._observer.cluster(nodeset)
        slurm = self._observer.slurm(cluster)
        if self._must_wait_for_slurm(memory, slurm):
            return Result(AT_ONCE * 4)
        snapshot = self._observer.observe(
            nodeset,
            cluster_gone=cluster is None and await self._is_gone(nodeset),
            ended=frozenset(memory.ended),
            guard=self._guards.get(uid, ""),
        )
        snapshot, planned = await self._plan(snapshot, slurm)
        outcome = await Actor(self._means(nodeset, obj, cluster, slurm, snapshot)).carry_out(planned.actions)
        if outcome.told_slurm:
            memory.told_slurm_at = self._clock()
        if outcome.slurm_error is not None:
            snapshot = blinded(snapshot, asking.reason_of(outcome.slurm_error), str(outcome.slurm_error))
        if not _lets_go(planned, outcome):
            told = (*outcome.refusals, *outcome.kept)
            await self._write_status(nodeset, status.build(snapshot, planned.assessment, self._now(), told))
        if outcome.errors:
            raise ExceptionGroup(f"NodeSet {nodeset.namespace}/{nodeset.name}", outcome.errors)
        return Result(_next(planned, outcome))

    async def _plan(self, snapshot: Snapshot, slurm: Slurm | None) -> tuple[Snapshot, Plan]:
        """Plan, with the jobs asked for if the plan needs them."""
        made = plan(snapshot, self._now())
        if made.needs_jobs and slurm is not None:
            try:
                snapshot = with_jobs(snapshot, await asking.jobs(slurm, fresh=made.fresh_jobs))
            except slurm_errors.SlurmError as error:
                snapshot = blinded(snapshot, asking.reason_of(error), str(error))
            made = plan(snapshot, self._now())
        return snapshot, made

    def _must_wait_for_slurm(self, memory: _Memory, slurm: Slurm | None) -> bool:
        """Whether a write of ours may be missing in the picture of a Slurm that can be asked.

        A count made too early would drain one node more for the same purpose.
        """
        if memory.told_slurm_at is None or slurm is None or slurm.contact.state is not ContactState.READY:
            return False
        if slurm.nodes_at is not None and slurm.nodes_at > memory.told_slurm_at:
            memory.told_slurm_at = None
            return False
        slurm.hurry()
        return self._clock() - memory.told_slurm_at < OLDEST_PICTURE

    def _means(
        self, nodeset: NodeSet, obj: Object, cluster: Cluster | None, slurm: Slurm | None, snapshot: Snapshot
    ) -> Means:
        return Means(
            kube=self._kube,
            slurm=slurm,
            nodeset=nodeset,
            cluster=cluster,
            obj=obj,
            revision=snapshot.revision,
            claims=snapshot.claims,
            owner=identity.tag(nodeset.namespace, nodeset.name),
            defaults=self._defaults,
            expectations=self.expectations,
            guards=self._guards,
            reserved=self._reserved,
            recorder=self._recorder,
            now=self._now,
        )

    async def _is_gone(self, nodeset: NodeSet) -> bool:
        """Whether the API server itself says that there is no such Cluster."""
        try:
            await self._kube.get(CLUSTERS, nodeset.spec.cluster_name, nodeset.namespace)
        except kube_errors.NotFound:
            return True
        return False

    async def _write_status(self, nodeset: NodeSet, wanted: NodeSetStatus) -> None:
        stored, new = nodeset.status.to_dict(), wanted.to_dict()
        if stored == new:
            return
        # A merge leaves what it is not told of: what is no more must be named.
        patch = dict.fromkeys(stored.keys() - new.keys()) | new
        try:
            await self._kube.patch_status(NODESETS, nodeset.name, patch, nodeset.namespace, uid=nodeset.uid)
        except kube_errors.NotFound:
            logger.debug("%s/%s went before its status was written", nodeset.namespace, nodeset.name)

    async def _tell_invalid(self, obj: Mapping[str, Any], text: str) -> None:
        try:
            stored = NodeSetStatus.model_validate(obj.get("status") or {})
        except ValueError:
            stored = NodeSetStatus()
        wanted = status.invalid(None, stored, text, self._now())
        if wanted != stored:
            metadata = obj["metadata"]
            await self._kube.patch_status(
                NODESETS, metadata["name"], wanted.to_dict(), metadata.get("namespace"), uid=metadata["uid"]
            )

    def _forget(self, uid: str) -> None:
        self.expectations.forget(uid)
        self._observer.forget(uid)
        self._reserved.release(uid)
        self._guards.pop(uid, None)
        self._memory.pop(uid, None)


def _next(planned: Plan, outcome: Outcome) -> float | None:
    """When to come again."""
    times = [planned.wake_up] if planned.wake_up is not None else []
    if outcome.slurm_error is not None:
        times.append(BLIND)
    elif outcome.acted:
        times.append(AT_ONCE)
    if outcome.refusals:
        # The same would be refused again; a change of what is in the way mostly wakes us.
        times = [LATER]
    elif outcome.kept:
        times = [max(one, 1.0) for one in times] or [LATER]
    return min(times, default=None)


def _lets_go(planned: Plan, outcome: Outcome) -> bool:
    """Whether the NodeSet has been released: it may be gone, and there is nothing to tell."""
    return any(isinstance(action, LetGo) for action in planned.actions) and not outcome.errors and not outcome.kept


def _relevant(cluster: Mapping[str, Any]) -> tuple[Any, ...]:
    """What NodeSets read of a Cluster."""
    metadata = cluster["metadata"]
    config = (cluster.get("status") or {}).get("config") or {}
    return (
        metadata["uid"],
        metadata.get("deletionTimestamp"),
        metadata.get("generation"),
        tuple(config.get("nodeSets") or ()),
        tuple((one.get("name"), one.get("message")) for one in config.get("refused") or ()),
    )


def _is_on_hosts(nodeset: Mapping[str, Any]) -> bool:
    """Whether a NodeSet has one pod on each matching Node, by its mode once fixed, else by its spec."""
    spec = nodeset.get("spec") or {}
    mode = (nodeset.get("status") or {}).get("scalingMode") or spec.get("scalingMode")
    return mode == ScalingMode.DAEMON_SET if mode else spec.get("replicas") is None


def _key_of_owner(pod: Mapping[str, Any]) -> Key:
    """Key of the NodeSet a pod belongs to."""
    metadata = pod["metadata"]
    return metadata.get("namespace") or "", metadata["labels"].get(labels.LABEL_NODESET_NAME) or ""


def _key(obj: Mapping[str, Any]) -> Key:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]
