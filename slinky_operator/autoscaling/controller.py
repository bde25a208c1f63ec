"""One pass over a Cluster for the NodeSets in it that have autoscaling.

The jobs of a Cluster are asked for once, however many NodeSets there are, and again after a time that grows with what
the answer has cost. Without an answer nothing is changed: not knowing what is needed is no reason to remove a node.
What is remembered (since when nodes are too many) is lost with the process, and then begins again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from typing_extensions import override

from slinky_api import labels
from slinky_api.conditions import Reason
from slinky_api.errors import InvalidObjectError
from slinky_api.events import EventReason
from slinky_api.v1alpha1.nodeset.autoscaling import AutoscalingStatus
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import ScalingMode
from slinky_operator.autoscaling import observation, report
from slinky_operator.autoscaling.report import Blocked
from slinky_operator.autoscaling.rules import demand
from slinky_operator.autoscaling.rules.decision import History, Limits, Move, decide
from slinky_operator.autoscaling.rules.effort import Effort
from slinky_operator.autoscaling.rules.rooms import Shape
from slinky_operator.autoscaling.rules.view import NodeDemand, View
from slinky_operator.autoscaling.triggers import is_scaled
from slinky_operator.kube import errors
from slinky_operator.kube.cache.parse_cache import ParseCache
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Patcher, Recorder
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slinky_operator.metrics.changes import Changes
from slinky_operator.reconcile.cached.indexes import CLUSTER_INDEX
from slinky_operator.reconcile.reconciler import Reconciler
from slinky_operator.reconcile.writes.status_writer import StatusWriter
from slinky_operator.runtime import threads
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm.connection.contact import Contact, ContactState
from slinky_operator.slurm.jobs.query_budget import wait_after
from slurm_client.errors import SlurmError
from slurm_client.models import Job, Node, Partition

logger = logging.getLogger(__name__)

POLL_S: Final = 3.0
"""Seconds between two looks at the jobs of a Cluster, at least."""

AT_ONCE_S: Final = 1.0
"""Seconds after a look before a change of a NodeSet's spec brings another one."""

RETRY_S: Final = 5.0
"""Seconds after which a Slurm that has not answered is asked again."""

REWRITE_S: Final = 30.0
"""Seconds between two messages of a NodeSet that differ in nothing but the jobs that they name."""

SMALL: Final = 200
"""Jobs and nodes that are counted at once; more are in a thread."""


class Client(Protocol):
    """What is used of `slurm_client.SlurmClient`."""

    async def partitions(self) -> Iterable[Partition]:
        """All partitions."""
        ...


class Slurm(Protocol):
    """What is used of a Cluster's `ClusterClient`."""

    @property
    def client(self) -> Client:
        """Its client."""
        ...

    contact: Contact
    nodes_at: float | None
    queue_at: float | None

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Its nodes."""
        ...

    async def fresh_jobs(self) -> Sequence[Job]:
        """All jobs, asked for now."""
        ...


class SlurmByUid(Protocol):
    """What is used of `slinky_operator.slurm.connection.clients.ClientMap`."""

    def get(self, uid: str) -> Slurm | None:
        """The Slurm of a Cluster."""
        ...


@dataclass(slots=True)
class Memory:
    """What is remembered of one Cluster."""

    looked_at: float | None = None
    """Monotonic seconds of the last look."""
    next_at: float = 0.0
    """Monotonic seconds of the next."""
    generations: Mapping[str, int] = field(default_factory=dict)
    """Of its NodeSets at the last look, by uid."""
    histories: dict[str, History] = field(default_factory=dict)
    shapes: dict[str, tuple[Shape, Shape]] = field(default_factory=dict)
    """By uid of a NodeSet: what its nodes were to offer by its spec, and what they have registered with then."""
    written_at: dict[str, float] = field(default_factory=dict)

    def keep(self, uids: frozenset[str]) -> None:
        """Forget all NodeSets but these."""
        for known in (self.histories, self.shapes, self.written_at):
            for uid in known.keys() - uids:
                del known[uid]


class AutoscalingReconciler(Reconciler):
    """Scales the NodeSets of Clusters.

    Parameters
    ----------
    kube, recorder
        Write replicas, status and Events.
    clusters, nodesets
        Caches, the latter with `INDEXES_OF_NODESETS`.
    slurm
        The Slurm of every Cluster.
    changes
        Counts replicas that were set.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: Kube,
        recorder: Recorder,
        clusters: Store,
        nodesets: Store,
        slurm: SlurmByUid,
        changes: Changes,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(CLUSTERS, clusters, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._nodesets = nodesets
        self._slurm = slurm
        self._changes = changes
        self._clock = clock
        self._now = now
        self._status = StatusWriter(NODESETS, kube)
        self._parsed: ParseCache[NodeSet] = ParseCache(NodeSet)
        self._memory: dict[Key, Memory] = {}

    @override
    async def tell(self, key: Key, error: BaseException) -> None:
        """Report that NodeSets cannot be written; the status of the Cluster is its own controller's."""
        cluster = self.objects.get(*key)
        if cluster is not None and isinstance(error, errors.Forbidden | errors.Invalid):
            self._recorder.warning(cluster, Reason.REQUEST_REFUSED, f"autoscaling cannot write a NodeSet: {error}")

    @override
    async def gone(self, key: Key) -> Result:
        self._memory.pop(key, None)
        self._parsed.keep(nodeset["metadata"].get("uid", "") for nodeset in self._nodesets)
        return Result()

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        found = [one for one in self._nodesets.find(CLUSTER_INDEX, f"{key[0]}/{key[1]}") if _is_meant(one)]
        slurm = self._slurm.get(obj["metadata"]["uid"])
        if not found or obj["metadata"].get("deletionTimestamp"):
            if slurm is not None:
                slurm.queue_at = None
            return await self.gone(key)
        memory = self._memory.setdefault(key, Memory())
        memory.keep(frozenset(one["metadata"]["uid"] for one in found))
        now = self._clock()
        generations = {one["metadata"]["uid"]: one["metadata"].get("generation", 0) for one in found}
        due = memory.next_at
        if generations != memory.generations and memory.looked_at is not None:
            due = min(due, memory.looked_at + AT_ONCE_S)
        if now < due:
            return Result(due - now)
        memory.looked_at, memory.generations = now, generations
        sets = await self._read_all(found)
        counting = key[0], obj["metadata"]["uid"]
        if threads.COUNTS.has(counting):
            # A pass that gave up has left it. Slurm is not asked meanwhile.
            why, seen = report.STILL_COUNTING, None
        else:
            why, seen = await _look(slurm)
        if seen is None:
            # One that lets calls hang must not occupy the workers that other Clusters need.
            memory.next_at = self._clock() + max(RETRY_S, 2 * (self._clock() - now))
            for one, nodeset in sets:
                await self._show(one, nodeset, memory, report.blocked(why))
            return Result(max(0.0, memory.next_at - self._clock()))
        if slurm is not None:
            slurm.queue_at = now
        await self._scale(sets, seen, memory, now, counting)
        return Result(max(0.0, memory.next_at - self._clock()))

    async def _read_all(self, found: Sequence[Object]) -> list[tuple[Object, NodeSet]]:
        """The NodeSets that can be read; of the others their own controller says why not."""
        await self._parsed.prepare(*found)
        sets = []
        for one in found:
            try:
                nodeset = self._parsed.read(one)
            except InvalidObjectError:
                # Its status says so already, by the NodeSet controller.
                continue
            if nodeset.spec.autoscaling is not None:
                sets.append((one, nodeset))
        return sets

    async def _scale(
        self,
        sets: Sequence[tuple[Object, NodeSet]],
        seen: _Seen,
        memory: Memory,
        began: float,
        counting: threads.Key,
    ) -> None:
        """Count what jobs need, and act on each NodeSet; the next look waits the longer the more this has cost."""
        scaled = []
        for one, nodeset in sets:
            if nodeset.mode is ScalingMode.STATEFUL_SET:
                scaled.append((one, nodeset))
            else:
                await self._show(one, nodeset, memory, report.blocked(report.NOT_ON_EACH_NODE))
        nodesets = [nodeset for _, nodeset in scaled]
        if len(seen.jobs) + len(seen.nodes) > SMALL:
            found = await threads.COUNTS.run(counting, self._count, nodesets, seen, dict(memory.shapes))
        else:
            found = self._count(nodesets, seen, dict(memory.shapes))
        wanted, shapes, memory.shapes = found
        memory.next_at = self._clock() + max(POLL_S, wait_after(self._clock() - began))
        for one, nodeset in scaled:
            known = shapes[nodeset.name] != observation.UNKNOWN
            await self._act(one, nodeset, memory, wanted[nodeset.name], known=known)

    def _count(
        self, nodesets: Sequence[NodeSet], seen: _Seen, known: dict[str, tuple[Shape, Shape]]
    ) -> tuple[dict[str, NodeDemand], dict[str, Shape], dict[str, tuple[Shape, Shape]]]:
        """Count what jobs need; say what the nodes of each NodeSet are taken to offer, and what is known of that."""
        effort = Effort(self._clock)
        view = self._view(nodesets, seen, known)
        return demand.count(view, effort), {one.name: one.shape for one in view.sets}, known

    def _view(self, nodesets: Sequence[NodeSet], seen: _Seen, known: dict[str, tuple[Shape, Shape]]) -> View:
        names = {nodeset.name: nodeset for nodeset in nodesets}
        for node in seen.nodes.values():
            owner = next((names[feature] for feature in node.features if feature in names), None)
            if owner is not None and node.is_usable and node.cpus:
                known[owner.uid] = observation.shape_of_spec(owner), observation.shape_of_node(node)
        sets = []
        for nodeset in nodesets:
            shape = observation.shape_of_spec(nodeset)
            then, seen_shape = known.get(nodeset.uid, (shape, shape))
            if then == shape:
                shape = seen_shape
            partitions = observation.partitions_of(nodeset.name, seen.partitions)
            sets.append(observation.scaled_set(nodeset, shape, partitions))
        return observation.view(sets, seen.jobs, seen.nodes, seen.partitions, self._now())

    async def _act(self, obj: Object, nodeset: NodeSet, memory: Memory, wanted: NodeDemand, *, known: bool) -> None:
        """Set replicas if they are to change, and show what was decided."""
        spec = nodeset.spec.autoscaling
        if spec is None:
            return
        limits = Limits(
            least=spec.min_replicas,
            most=spec.max_replicas,
            headroom=spec.headroom,
            idle_time=spec.idle_time.total_seconds(),
            scale_down_delay=spec.scale_down_delay.total_seconds(),
        )
        before, past = nodeset.spec.replicas, memory.histories.get(nodeset.uid, History())
        ours, complete = observation.ours_of(nodeset), wanted.complete
        decision = decide(limits, before, ours, wanted.nodes, past, self._clock(), complete=complete)
        if decision.move in {Move.HOLD, Move.ADOPT} and await self._is_set_by_hpa(nodeset):
            # Not adopted: what it has set is looked at again for as long as it was the last to set it.
            at = decision.history.by_others_at
            kept = replace(decision.history, by_others_at=past.by_others_at if at is None else at)
            memory.histories[nodeset.uid] = kept
            await self._show(obj, nodeset, memory, report.blocked(report.OTHER, decision.wanted))
            return
        if decision.move in {Move.SET, Move.ADOPT}:
            try:
                await set_replicas(self._kube, obj, decision.replicas)
            except (errors.Conflict, errors.NotFound):
                # Somebody was faster, or the cache is behind: the next look decides on what is there then.
                memory.next_at = min(memory.next_at, self._clock() + AT_ONCE_S)
                return
            if decision.move is Move.SET:
                self._changes.replicas_changed(before or 0, decision.replicas)
                self._recorder.normal(obj, EventReason.AUTOSCALED, report.change(before, decision, wanted))
        memory.histories[nodeset.uid] = decision.history
        bad_cost = (
            bool(nodeset.metadata.annotations.get(labels.ANNOTATION_COST)) and observation.cost_of(nodeset) is None
        )
        status = report.decided(spec, wanted, decision, known=known, bad_cost=bad_cost)
        await self._show(obj, nodeset, memory, status)

    async def _is_set_by_hpa(self, nodeset: NodeSet) -> bool:
        """Ask the API server: the cache has no records of who wrote what."""
        try:
            return is_set_by_hpa(await self._kube.get(NODESETS, nodeset.name, nodeset.namespace))
        except errors.NotFound:
            return False

    async def _show(self, obj: Object, nodeset: NodeSet, memory: Memory, wanted: AutoscalingStatus) -> None:
        """Write the status if it says something else; texts alone not too often."""
        stored = nodeset.status.autoscaling
        now, at = self._clock(), memory.written_at.get(nodeset.uid)
        if stored is not None and _gist(stored) == _gist(wanted):
            if stored.message == wanted.message or (at is not None and now - at < REWRITE_S):
                return
        elif wanted.reason in report.TROUBLES and (stored is None or stored.reason != wanted.reason):
            self._recorder.warning(obj, wanted.reason, wanted.message)
        memory.written_at[nodeset.uid] = now
        before = {} if stored is None else {"autoscaling": stored.to_dict()}
        _ = await self._status.write(obj, before, {"autoscaling": wanted.to_dict()})


@dataclass(frozen=True, slots=True)
class _Seen:
    """What Slurm has shown."""

    jobs: Sequence[Job]
    nodes: Mapping[str, Node]
    partitions: Sequence[Partition]


NO_CONNECTION: Final = Blocked(
    Reason.CLUSTER_NOT_READY, "the Cluster has no connection to its Slurm yet, so nothing is scaled"
)


async def _look(slurm: Slurm | None) -> tuple[Blocked, _Seen | None]:
    """Ask for jobs and partitions; why not if there is no answer."""
    if slurm is None or slurm.contact.state is ContactState.CONNECTING or slurm.nodes_at is None:
        return NO_CONNECTION, None
    if slurm.contact.state is not ContactState.READY:
        return _away(slurm.contact.why), None
    try:
        jobs = await slurm.fresh_jobs()
        partitions = tuple(await slurm.client.partitions())
    except SlurmError as error:
        return _away(str(error)), None
    return NO_CONNECTION, _Seen(jobs, dict(slurm.nodes), partitions)


def _away(why: str) -> Blocked:
    return Blocked(Reason.SLURM_UNREACHABLE, f"Slurm does not say which jobs wait, so nothing is scaled: {why}")


def _is_meant(obj: Object) -> bool:
    return is_scaled(obj) and not obj["metadata"].get("deletionTimestamp")


def _gist(status: AutoscalingStatus) -> tuple[bool, int | None, str]:
    return status.active, status.wanted, status.reason


HPA_MANAGERS: Final = frozenset({"kube-controller-manager", "horizontal-pod-autoscaler"})
"""Field managers under which a HorizontalPodAutoscaler writes to the scale subresource."""


async def set_replicas(kube: Patcher, obj: Object, replicas: int) -> None:
    """Set the replicas of a NodeSet, together with the note that autoscaling has set them.

    One patch for one version of the object: a number that somebody sets at the same moment is never overwritten unseen,
    and a process that ends after the patch leaves nothing half done.

    Raises
    ------
    Conflict
        The NodeSet has changed since `obj`.
    KubeError
        The API server failed or refused.
    """
    metadata = obj["metadata"]
    await kube.merge_patch(
        NODESETS,
        metadata["name"],
        {
            "metadata": {"annotations": {labels.ANNOTATION_AUTOSCALED: str(replicas)}},
            "spec": {"replicas": replicas},
        },
        metadata.get("namespace"),
        resource_version=metadata["resourceVersion"],
        uid=metadata["uid"],
    )


def is_set_by_hpa(obj: Object) -> bool:
    """Whether a HorizontalPodAutoscaler was the last to change replicas, as the API server has recorded it."""
    for entry in obj["metadata"].get("managedFields") or ():
        fields = entry.get("fieldsV1")
        spec = fields.get("f:spec") if isinstance(fields, dict) else None
        if (
            entry.get("subresource") == "scale"
            and entry.get("manager") in HPA_MANAGERS
            and isinstance(spec, dict)
            and "f:replicas" in spec
        ):
            return True
    return False
