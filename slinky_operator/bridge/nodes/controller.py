"""One pass over a Cluster for the Kubernetes Nodes that are nodes of its Slurm."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Protocol

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.status import BridgeStatus
from slinky_operator.bridge.clusters import had_bridge, is_allowed, wants_bridge
from slinky_operator.bridge.features import is_ours, mark_of
from slinky_operator.bridge.nodes.execute import Execution
from slinky_operator.bridge.nodes.model import report
from slinky_operator.bridge.nodes.model.plan import Plan, plan
from slinky_operator.bridge.nodes.model.report import Outcome
from slinky_operator.bridge.nodes.model.warnings import problems_of, remarks_of, unknown_kinds
from slinky_operator.bridge.nodes.model.wishes import (
    Problem,
    problems_of_classes,
    problems_of_name,
    problems_of_sharing,
    refusal_of,
    refusal_of_release,
    wanted_of,
)
from slinky_operator.bridge.nodes.observation import Memory, Observation, Slurm
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.kube.resources import CLUSTERS, NAMESPACES
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.reconciler import Reconciler
from slinky_operator.reconcile.text import cut
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm.connection.contact import ContactState
from slurm_client.errors import SlurmError

REST_S: Final = 2.0
"""Seconds for which changes are batched: many Kubernetes Nodes change together."""

AGAIN_S: Final = 15.0
"""Seconds until the next look at what waits for jobs to end, or at what was refused."""

LOOK_S: Final = 300.0
"""Seconds until the next pass if nothing happens: pods and Slurm's configuration are read again by and by."""


class SlurmByUid(Protocol):
    """What is used of `slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> Slurm | None:
        """The Slurm of a Cluster."""
        ...


class BridgeNodesReconciler(Reconciler):
    """Keeps a node of Slurm for each Kubernetes Node that a Cluster chooses.

    Parameters
    ----------
    kube, recorder
        Read Namespaces and pods, write the status and Events.
    clusters
        Parsed Clusters.
    nodesets
        The cache of NodeSets, whose names are taken.
    observation
        What a pass knows.
    slurm
        The Slurm of every Cluster.
    allowed
        `<namespace>/<name>` of the Clusters that may have such nodes, or `*`.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: Kube,
        recorder: Recorder,
        clusters: ClusterReader,
        nodesets: Store,
        observation: Observation,
        slurm: SlurmByUid,
        allowed: Collection[str],
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(CLUSTERS, clusters.store, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._clusters = clusters
        self._nodesets = nodesets
        self._observation = observation
        self._slurm = slurm
        self._allowed = allowed
        self._clock = clock
        self._execution = Execution(recorder, clock)
        self._memory: dict[Key, Memory] = {}

    @override
    async def tell(self, key: Key, error: BaseException) -> None:
        """The conditions of a Cluster are its own controller's; refusals are in the status that passes write."""

    @override
    async def gone(self, key: Key) -> Result:
        _ = self._memory.pop(key, None)
        return Result()

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        if not wants_bridge(obj) and not had_bridge(obj):
            return await self.gone(key)
        cluster = await self._clusters.find(key)
        if cluster is None:
            # Its own controller says why it cannot be read; its nodes stay as they are.
            return Result()
        memory = self._memory.get(key)
        if memory is None or memory.uid != cluster.uid:
            memory = self._memory[key] = Memory(cluster.uid)
        slurm = self._slurm.get(cluster.uid)
        if slurm is None or slurm.nodes_at is None or slurm.contact.state is not ContactState.READY:
            return await self._away(obj, cluster, slurm)
        if not memory.mark:
            memory.mark = await self._mark(key)
        try:
            wanted, result = await self._run(key, obj, cluster, slurm, memory)
        except SlurmError as error:
            wanted = report.away(cut(str(error), report.LONGEST // 2), _count(slurm, memory), is_away=True)
            result = Result(AGAIN_S, REST_S)
        except errors.Forbidden as error:
            told = f"{error.target}: {error.message}. The chart slurm-bridge gives the operator its rights"
            wanted = report.refused((Reason.FORBIDDEN, told), Outcome(), (), _count(slurm, memory))
            result = Result(AGAIN_S, REST_S)
        await self._show(obj, cluster, wanted)
        return result

    async def _run(
        self, key: Key, obj: Object, cluster: Cluster, slurm: Slurm, memory: Memory
    ) -> tuple[BridgeStatus | None, Result]:
        """A pass over a Cluster whose Slurm answers: what is shown, and when the next is due."""
        bridge = cluster.spec.jobs.bridge
        problem = refusal_of_release(slurm.client.slurm_version)
        if problem is not None:
            told = None if bridge is None else report.refused(problem, Outcome(), (), 0)
            # slurmrestd may be upgraded without ever being away: nothing tells of that, and a look costs no request.
            return told, Result(AGAIN_S, REST_S)
        problem = refusal_of(cluster, self._allowed)
        if bridge is None or problem is not None:
            return await self._end(obj, slurm, memory, problem)
        wanted = wanted_of(bridge)
        about = (cluster.metadata.generation, slurm.client.slurm_version)
        found = await memory.configuration.read(slurm.client, self._clock(), *about, name=wanted.name)
        blocking = (*problems_of_name(wanted.name, self._names_of_nodesets(key)), *problems_of(found))
        seen = await self._observation.snapshot(wanted, memory, slurm, found, self._clock(), blocking)
        made = plan(seen.snapshot)
        outcome = await self._execution.carry_out(obj, seen.snapshot, made, slurm, memory)
        shared = await self._observation.shared(memory, seen.snapshot.hosts, self._others(key))
        accounts = {name for tenant in cluster.spec.jobs.tenants for name in tenant.accounts}
        problems = (
            *made.problems,
            *problems_of_sharing(shared),
            *unknown_kinds(self._observation.missing_kinds(wanted, found)),
            *problems_of_classes(wanted, reads_devices=self._observation.reads_devices),
        )
        told = report.shown(
            replace(made, problems=problems), outcome, tuple(remarks_of(found, accounts)), _count(slurm, memory)
        )
        return told, self._due(made, outcome, seen.due)

    async def _end(
        self, obj: Object, slurm: Slurm, memory: Memory, problem: Problem | None
    ) -> tuple[BridgeStatus | None, Result]:
        """A pass over a Cluster that is to have no such nodes."""
        why = "Slurm places no pods there any more"
        snapshot = self._observation.ending(memory, slurm, why)
        made = plan(snapshot)
        outcome = await self._execution.carry_out(obj, snapshot, made, slurm, memory)
        count = _count(slurm, memory)
        due = self._due(made, outcome, None)
        if problem is None:
            # The field stays until nothing is left: it brings a pass over the Cluster when the operator starts.
            told = report.refused((Reason.DELETING, "spec.jobs.bridge was removed"), outcome, made.waiting, count)
            return (told if count else None), due
        return report.refused(problem, outcome, made.waiting, count), due

    def _due(self, made: Plan, outcome: Outcome, reads: float | None) -> Result:
        waits = made.again or outcome.failures or outcome.waiting
        times = [LOOK_S, *([AGAIN_S] if waits else []), *([reads] if reads is not None else [])]
        if outcome.changed or made.pending:
            times.append(REST_S)
        return Result(min(times), REST_S)

    async def _away(self, obj: Object, cluster: Cluster, slurm: Slurm | None) -> Result:
        """A pass over a Cluster whose Slurm does not answer: nothing is changed."""
        stored = cluster.status.bridge
        nodes = stored.nodes if stored is not None else 0
        is_away = slurm is not None and slurm.contact.state is ContactState.UNREACHABLE
        why = slurm.contact.why if slurm is not None else "the Cluster has no connection to its Slurm"
        known = stored is not None and stored.ready is not None
        if is_away or not known:
            # An operator that has just started knows nothing yet, and lets stand what is there.
            await self._show(obj, cluster, report.away(why, nodes, is_away=is_away))
        return Result(None, REST_S)

    async def _mark(self, key: Key) -> str:
        namespace = await self._kube.get(NAMESPACES, key[0] or "")
        return mark_of(str(namespace["metadata"]["uid"]), key[1])

    def _others(self, key: Key) -> list[Object]:
        """Other Clusters that want a bridge, and may have one."""
        store = self._clusters.store
        return [
            obj for obj in store if wants_bridge(obj) and key_of(obj) != key and is_allowed(key_of(obj), self._allowed)
        ]

    def _names_of_nodesets(self, key: Key) -> frozenset[str]:
        found = self._nodesets.find(CLUSTER_INDEX, "/".join((key[0] or "", key[1])))
        return frozenset(str(obj["metadata"]["name"]) for obj in found)

    async def _show(self, obj: Object, cluster: Cluster, wanted: BridgeStatus | None) -> None:
        """Write the status if it says something else; the Cluster's controller makes a condition of it."""
        _ = await self.status.write(obj, _fields(cluster.status.bridge), _fields(wanted))


def _count(slurm: Slurm, memory: Memory) -> int:
    return sum(is_ours(node, memory.mark) for node in slurm.nodes.values())


def _fields(bridge: BridgeStatus | None) -> dict[str, object]:
    return {} if bridge is None else {"bridge": bridge.to_dict()}
