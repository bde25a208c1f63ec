"""One pass over a Cluster.

The key is namespace and name. What is remembered is kept by uid: a Cluster that was deleted and recreated starts clean.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.status import ClusterStatus
from slinky_operator.cluster import adoption
from slinky_operator.cluster.actions import SetFinalizer
from slinky_operator.cluster.context import PassContext
from slinky_operator.cluster.executor import act
from slinky_operator.cluster.memory.memory import Memory
from slinky_operator.cluster.observe import Caches, Snapshot, observe
from slinky_operator.cluster.plan import Environment, Plan, plan
from slinky_operator.cluster.plan import secrets as secrets_of
from slinky_operator.cluster.rollout import agent_questions
from slinky_operator.cluster.status.status import COUNTS, invalid
from slinky_operator.identity import users
from slinky_operator.kube import errors
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.cache.weight import LONG_TEXT, is_small, rest_after, run_in_thread
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slinky_operator.reconcile import secrets
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX
from slinky_operator.reconcile.reconciler import ParsingReconciler
from slinky_operator.reconcile.writes.parts import stored_status
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import names_of_sources
from slinky_operator.slurm.connection.contact import ContactState

logger = logging.getLogger(__name__)

MANY_LINES: Final = 50
"""Number of NodeSets, nodes outside Kubernetes and partitions from which on rules run in a thread."""

MANY_NODES: Final = 500
"""Number of Slurm's nodes from which on rules run in a thread: they count them, some 5 us each."""

GATHERING: Final = 0.0002
"""Seconds per node of Slurm for which changes are batched into one pass: thousands of pods may go at a time."""

LONGEST_GATHERING: Final = 0.5
"""Seconds for which they are at most, as events of nodes are (`triggers.NODE_EVENT_DELAY`), which end a rest."""

ROUNDS: Final = 8
"""Rounds within one pass, each after something was learned; more would delay others."""

LATE: Final = 1.0
"""Seconds until the next pass if the cache of Clusters is behind the API server."""

ServerOf = Callable[[Cluster, Caches], str]


def server_of(cluster: Cluster, caches: Caches) -> str:
    """URL of a Cluster's slurmrestd.

    For a managed Cluster it is the address of the Service: it works before every name server knows the name, which they
    cache as missing for half a minute. Empty while there is no Service.
    """
    if cluster.spec.external:
        return naming.server(cluster)
    service = caches.services.get(cluster.namespace, naming.restapi(cluster.name))
    address = ((service or {}).get("spec") or {}).get("clusterIP") or ""
    if not address or address == "None":
        return ""
    return f"http://{f'[{address}]' if ':' in address else address}:{naming.SLURMRESTD_PORT}"


class ClusterReconciler(ParsingReconciler[Cluster]):
    """Reconciles Clusters.

    Parameters
    ----------
    caches
        Read only.
    context
        Clients and writers.
    environment
        From the settings.
    server_of
        Returns the URL of a Cluster's slurmrestd.
    wall
        The time of day.
    """

    def __init__(
        self,
        caches: Caches,
        context: PassContext,
        environment: Environment,
        *,
        server_of: ServerOf = server_of,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(CLUSTERS, caches.clusters, context.kube, context.recorder, clock=context.clock, now=wall)
        self._caches = caches
        self._context = context
        self._environment = environment
        self._server_of = server_of
        self._wall = wall
        self._memories: dict[Key, Memory] = {}
        self._read: ParseCache[Cluster] = ParseCache(Cluster)

    @override
    async def read(self, obj: Object) -> Cluster:
        await self._read.prepare(obj)
        return self._read.read(obj)

    @override
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        stored = stored_status(ClusterStatus, obj)
        words = "; ".join(map(str, error.problems))
        return obj.get("status") or {}, invalid(obj, stored, words, self._wall()).to_dict()

    @override
    async def gone(self, key: Key) -> Result:
        await self._forget(key)
        return await self._tidy_up(key)

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        rest = 0.0
        for _ in range(ROUNDS):
            cached = self._caches.clusters.get(*key)
            if cached is None:
                return await self.gone(key)
            memory = await self._memory(key, cached["metadata"]["uid"])
            raw = memory.writes.newest(CLUSTERS.kind, key[1], cached, self._context.clock()) or cached
            cluster = await self.parse(raw)
            if cluster is None:
                return Result()
            again, wake_up = await self._round(cluster, raw, memory)
            rest = memory.rest
            if not again:
                return Result(wake_up, rest)
        return Result(0.0, rest)

    async def _round(self, cluster: Cluster, raw: Object, memory: Memory) -> tuple[bool, float | None]:
        context = self._context
        client = context.clients.get(cluster.uid)
        trouble = client is None or client.contact.state is not ContactState.READY or memory.keys.troubled
        found = self._caches.node_sets.find(CLUSTER_INDEX, f"{cluster.namespace}/{cluster.name}")
        sources = await context.sources.read(
            cluster.namespace,
            secrets_of(cluster, found),
            older_than=secrets.OLD_IN_TROUBLE if trouble else secrets.OLD,
        )
        sources_of_texts = (*names_of_sources(cluster.spec), *users.config_maps(cluster.spec.identity))
        texts = await context.texts.read((cluster.namespace, cluster.name), sources_of_texts)
        now = context.clock()
        server = self._server_of(cluster, self._caches)
        await memory.node_sets.prepare(*found)
        memory.node_sets.keep(one["metadata"]["uid"] for one in found)
        snapshot = observe(cluster, raw, self._caches, memory, sources, client, server, now, texts)
        memory.answers.retain(snapshot.pods.of_daemons)
        made = await self._plan(snapshot, memory)
        memory.keys.known, memory.keys.troubled = made.keys.known, made.keys.troubled
        memory.rollout.runs = made.runs or memory.rollout.runs
        memory.keys.seen = made.keys.secrets.seen or memory.keys.seen
        memory.keys.staged = made.keys.secrets.staged or memory.keys.staged
        try:
            again = await act(made.actions, cluster, memory, context)
        except adoption.SupersededError as error:
            logger.info("%s: the cache is late", error)
            return False, LATE
        if made.status is not None and made.status.config is not None:
            context.changes.configuration(
                cluster.uid, made.status.config.hash, made.status.config.applied_hash, context.clock()
            )
        if not again and made.status is not None and not made.counts_only:
            await self._write_status(raw, memory, made.status)
        return again, made.wake_up

    async def _plan(self, snapshot: Snapshot, memory: Memory) -> Plan:
        """Plan, in a thread if texts are long or there are many lines or nodes."""
        arguments = snapshot, self._environment, self._context.clock(), self._wall()
        is_long, nodes = _is_long(snapshot), len(snapshot.slurm.nodes) if snapshot.slurm is not None else 0
        memory.rest = min(LONGEST_GATHERING, GATHERING * nodes)
        if not is_long and nodes <= MANY_NODES:
            return plan(*arguments)
        began = time.monotonic()
        try:
            cluster = snapshot.cluster
            return await run_in_thread((cluster.namespace, "Cluster", cluster.uid), plan, *arguments)
        finally:
            if is_long:
                memory.rest = max(memory.rest, rest_after(time.monotonic() - began))

    async def _write_status(self, raw: Object, memory: Memory, status: ClusterStatus) -> None:
        written = await self.status.write(raw, raw.get("status") or {}, status.to_dict())
        if written is None:
            return
        memory.writes.note(written.answer, self._context.clock())
        if not written.patch.keys().isdisjoint(COUNTS):
            memory.counts_written_at = self._context.clock()

    async def _memory(self, key: Key, uid: str) -> Memory:
        """What is remembered of the Cluster with this key, and of no earlier one with its name."""
        known = self._memories.get(key)
        if known is None or known.uid != uid:
            await self._forget(key)
            known = self._memories[key] = Memory(uid)
        return known

    async def _forget(self, key: Key) -> None:
        """Drop what is remembered of the Cluster with this key, and its connection."""
        known = self._memories.get(key)
        if known is None:
            return
        await self._context.clients.close(known.uid)
        await self._context.texts.forget(key)
        agent_questions.forget(self._context.http, key[0], known.uid)
        self.failures.passed(known.uid)
        del self._memories[key]
        self._read.forget(known.uid)

    async def _tidy_up(self, key: Key) -> Result:
        """Clean up after a Cluster that is gone for good, and release NodeSets that wait for it."""
        namespace, name = key
        await adoption.sweep(self._context.kube, self._caches, key)
        await adoption.sweep_trials(self._context.kube, self._caches, key)
        waiting = [
            obj
            for obj in self._caches.node_sets.find(CLUSTER_INDEX, f"{namespace}/{name}")
            if obj["metadata"].get("deletionTimestamp")
            and labels.FINALIZER_NODESET_CONFIG in (obj["metadata"].get("finalizers") or ())
            and labels.FINALIZER_NODESET_DRAIN not in (obj["metadata"].get("finalizers") or ())
        ]
        if not waiting:
            return Result()
        try:
            # The cache may be outdated.
            _ = await self._context.kube.get(CLUSTERS, name, namespace)
        except errors.NotFound:
            for obj in waiting:
                action = SetFinalizer(NODESETS, obj, labels.FINALIZER_NODESET_CONFIG, present=False)
                _ = await act((action,), _nobody(namespace, name), Memory(""), self._context)
        return Result()


def _is_long(snapshot: Snapshot) -> bool:
    """Whether the rules would block the event loop for long: by the length of all texts and the number of lines."""
    characters = sum(len(text) for source in snapshot.texts.values() for text in source.texts.values())
    spec = snapshot.cluster.spec
    many = len(snapshot.node_sets) + len(spec.nodes) + len(spec.partitions)
    # The number of nodes in a list is not counted here: that takes as long as parsing it.
    lists = any("[" in one.name or "," in one.name for one in spec.nodes)
    return characters > LONG_TEXT or many > MANY_LINES or lists or not is_small(snapshot.raw)


def _nobody(namespace: str, name: str) -> Cluster:
    return Cluster.model_validate({"metadata": {"name": name, "namespace": namespace}})
