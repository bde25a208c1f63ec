"""One pass over a Cluster for its virtual Nodes. Slurm is never asked here: `partition_poll` does that beside."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Final

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.status import KubeletApiStatus, PartitionStatus, VirtualNodesStatus
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder
from slinky_operator.kube.resources import CLUSTERS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.reconciler import Reconciler
from slinky_operator.runtime.controller import Result
from slinky_operator.virtual_nodes.nodes import writes
from slinky_operator.virtual_nodes.nodes.execute import Execution, Leases
from slinky_operator.virtual_nodes.nodes.model import report
from slinky_operator.virtual_nodes.nodes.model.outcome import AGAIN_S
from slinky_operator.virtual_nodes.nodes.model.partition_status import shown_partitions
from slinky_operator.virtual_nodes.nodes.model.plan import plan
from slinky_operator.virtual_nodes.nodes.model.snapshot import Problem, Snapshot
from slinky_operator.virtual_nodes.nodes.model.wishes import host_of, refusal_of
from slinky_operator.virtual_nodes.nodes.observation import Memory, Observation
from slinky_operator.virtual_nodes.nodes.partition_poll import PartitionPoll
from slinky_operator.virtual_nodes.nodes.reachability_poll import ReachabilityPoll

PARTITIONS_EVERY_S: Final = 5.0
"""Seconds between two writes of the partitions in the status of one Cluster."""


class VirtualNodesReconciler(Reconciler):
    """Keeps the virtual Nodes of Clusters.

    Parameters
    ----------
    kube, recorder
        Write Nodes, the status and Events.
    clusters
        Parsed Clusters.
    observation
        What a pass knows.
    poll
        What Slurm says of partitions.
    reachability
        Whether the API server reaches the kubelet API.
    leases
        Renewed at once after a Node was made.
    allowed
        `<namespace>/<name>` of the Clusters that may have virtual Nodes, or `*`.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: writes.Kube,
        recorder: Recorder,
        clusters: ClusterReader,
        observation: Observation,
        poll: PartitionPoll,
        reachability: ReachabilityPoll,
        leases: Leases,
        allowed: Collection[str],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(CLUSTERS, clusters.store, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._clusters = clusters
        self._observation = observation
        self._poll = poll
        self._reachability = reachability
        self._allowed = allowed
        self._clock = clock
        self._now = now
        self._execution = Execution(kube, recorder, leases, clock)
        self._memory: dict[Key, Memory] = {}

    @override
    async def tell(self, key: Key, error: BaseException) -> None:
        """The conditions of a Cluster are its own controller's; refusals are in the status that passes write."""

    @override
    async def gone(self, key: Key) -> Result:
        if not self._observation.of_cluster(key):
            self._forget(key)
            return Result()
        try:
            # The cache may be outdated.
            _ = await self._kube.get(CLUSTERS, key[1], key[0])
        except errors.NotFound:
            memory = self._memory.setdefault(key, Memory("", self._clock()))
            snapshot = self._observation.ending(key, "", f"Cluster {'/'.join(key)} does not exist any more")
            outcome = await self._execution.carry_out(None, snapshot, plan(snapshot, self._now()), memory)
            return Result(outcome.pause(AGAIN_S))
        return Result(AGAIN_S)

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        if host_of(obj) is None and not self._observation.of_cluster(key):
            self._forget(key)
            return Result()
        cluster = await self._clusters.find(key)
        if cluster is None:
            # Its own controller says why it cannot be read; its Nodes stay as they are.
            return Result()
        memory = self._memory.get(key)
        if memory is None or memory.uid != cluster.uid:
            memory = self._memory[key] = Memory(cluster.uid, self._clock())
        wanted = cluster.spec.jobs.virtual_nodes
        refusal = refusal_of(cluster, self._clusters.store, self._allowed)
        if wanted is None or refusal is not None:
            return await self._end(key, obj, cluster, memory, refusal)
        snapshot, due = await self._observation.snapshot(key, cluster.uid, wanted, memory, self._clock())
        made = plan(snapshot, self._now())
        outcome = await self._execution.carry_out(obj, snapshot, made, memory)
        self._reachability.ask()
        told = _told(cluster, report.report(snapshot, made, outcome), self._reachability.known)
        partitions, left = self._partitions(cluster, snapshot, memory)
        if await self._show(obj, cluster, told, partitions) and partitions != cluster.status.partitions:
            memory.partitions_at = self._clock()
        pause = outcome.pause(due)
        return Result(min((one for one in (pause, left) if one is not None), default=None))

    def _partitions(
        self, cluster: Cluster, snapshot: Snapshot, memory: Memory
    ) -> tuple[tuple[PartitionStatus, ...], float | None]:
        """The partitions to show, and the seconds until they may change if that is not now."""
        stored = cluster.status.partitions
        if snapshot.facts is None or snapshot.wanted is None:
            return stored, None
        found = shown_partitions(snapshot.wanted.partitions, snapshot.facts, snapshot.jobs, stored)
        since = math.inf if memory.partitions_at is None else self._clock() - memory.partitions_at
        if found == stored or since >= PARTITIONS_EVERY_S:
            return found, None
        return stored, PARTITIONS_EVERY_S - since

    async def _end(self, key: Key, obj: Object, cluster: Cluster, memory: Memory, refusal: Problem | None) -> Result:
        """A pass over a Cluster that is to have no virtual Nodes."""
        why = refusal[1] if refusal else "spec.jobs.virtualNodes was removed"
        snapshot = self._observation.ending(key, cluster.uid, why)
        outcome = await self._execution.carry_out(obj, snapshot, plan(snapshot, self._now()), memory)
        if refusal is not None and not cluster.deleting:
            # Whether the API server reaches a Node that is not there is not asked.
            told = _told(cluster, report.refused(refusal, snapshot, outcome), None)
            _ = await self._show(obj, cluster, told, ())
        return Result(outcome.pause(None))

    async def _show(
        self,
        obj: Object,
        cluster: Cluster,
        wanted: VirtualNodesStatus,
        partitions: tuple[PartitionStatus, ...],
    ) -> bool:
        """Write the status if it says something else, and say whether; the Cluster's controller makes a condition."""
        before = _fields(cluster.status.virtual_nodes, cluster.status.partitions)
        return await self.status.write(obj, before, _fields(wanted, partitions)) is not None

    def _forget(self, key: Key) -> None:
        known = self._memory.pop(key, None)
        if known is not None:
            self._poll.forget(one.uid for one in self._memory.values())


def _told(cluster: Cluster, wanted: VirtualNodesStatus, reached: KubeletApiStatus | None) -> VirtualNodesStatus:
    """What is shown of the Nodes: an operator that has just started knows nothing yet, and lets stand what is there."""
    stored = cluster.status.virtual_nodes
    if stored is None:
        return wanted.model_copy(update={"kubelet_api": reached})
    shown = stored if stored.ready is not None and wanted.reason == Reason.CONNECTING else wanted
    return shown.model_copy(update={"kubelet_api": reached or stored.kubelet_api})


def _fields(nodes: VirtualNodesStatus | None, partitions: Sequence[PartitionStatus]) -> dict[str, object]:
    shown: dict[str, object] = {} if nodes is None else {"virtualNodes": nodes.to_dict()}
    return {**shown, "partitions": [one.to_dict() for one in partitions]} if partitions else shown
