"""One pass over a NodeSet: observe, survey, ask what is missing, decide, execute and report, in turn.

What it keeps between passes is kept by uid of the NodeSet, and may be lost: writes that the caches do not show yet,
guards known to exist, and the names of nodes whose pods a kubelet has reported as ended. After a restart the caches
start from a fresh list, guards are looked up, and for the ended pods Slurm's own timeout applies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, ParamSpec, TypeVar

from typing_extensions import override

from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.status import NodeSetStatus
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.cache.expectations import Expectations
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.cache.weight import run_in_thread
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Recorder
from slinky_operator.kube.resources import CLUSTERS, NODESETS
from slinky_operator.metrics.changes import Changes
from slinky_operator.nodeset.execute.context import PassContext, PassOutcome
from slinky_operator.nodeset.execute.executor import Executor
from slinky_operator.nodeset.execute.hosts.machines import Machines
from slinky_operator.nodeset.execute.queries import slurm_queries, survey_queries
from slinky_operator.nodeset.memory import Memory
from slinky_operator.nodeset.model import ssh_keys
from slinky_operator.nodeset.model.actions import RemoveFinalizer, ShowStates
from slinky_operator.nodeset.model.drain_requests import DrainRequest
from slinky_operator.nodeset.model.kubernetes_nodes import Hosts
from slinky_operator.nodeset.model.pods import output_room
from slinky_operator.nodeset.model.pods.registered_pods import Marking
from slinky_operator.nodeset.model.snapshot import Snapshot
from slinky_operator.nodeset.model.ssh_keys import MissingKeys
from slinky_operator.nodeset.observation import ssh_secrets
from slinky_operator.nodeset.observation.observe import Observer
from slinky_operator.nodeset.planning.decisions import Decisions
from slinky_operator.nodeset.planning.plan import Plan, plan
from slinky_operator.nodeset.planning.requeue import LATER, SOON
from slinky_operator.nodeset.planning.steady import Steady, follow, goes_on, steady
from slinky_operator.nodeset.planning.survey import Survey, survey
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.nodeset.ports import AskVolumes, Slurm, SlurmByCluster
from slinky_operator.nodeset.report import status, trouble_events
from slinky_operator.nodeset.reserved_names import ReservedNames
from slinky_operator.nodeset.slurm_nodes import identity, kubernetes_features, running_steps
from slinky_operator.nodeset.triggers import NodeSetTriggers
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.reconciler import ParsingReconciler, Postponed
from slinky_operator.reconcile.writes.parts import stored_status
from slinky_operator.runtime.controller import Result

P = ParamSpec("P")
T = TypeVar("T")

REQUEUE_AFTER_WRITE_S: Final = 0.05
"""Seconds until the pass after one that wrote to Slurm: the cache shows the write by then."""

GATHERING: Final = 0.0004
"""Seconds per pod for which changes are batched into one pass over a NodeSet: some ten times what a pass takes.

Otherwise pods created or deleted by the hundred would each trigger a pass over all of them."""

THREAD_THRESHOLD_PODS: Final = 200
"""Number of pods, existing or desired, from which on rules run in a thread."""

RETRY_SLURM_S: Final = 5.0
"""Seconds until the next try after Slurm has failed to answer a query or a write."""

STARTUP: Final = 1000
"""Pods of one NodeSet that may be starting at a time, if its spec does not set it."""

PATIENCE: Final = timedelta(minutes=5)
"""How long a slurmd may run before it registers."""


class NodeSetReconciler(ParsingReconciler[NodeSet]):
    """Reconciles NodeSets.

    Parameters
    ----------
    kube
        The API server.
    nodesets, clusters, pods, revisions, claims
        Caches, with `INDEXES_OF_NODESETS`, `INDEXES_OF_PODS` and so on where they exist.
    watch_hosts
        Whether `triggers.host` is called with the Kubernetes Nodes. Without them cordons are not noticed.
    slurm
        The Slurm of each Cluster.
    recorder
        Emits Events.
    defaults
        The operator's settings for new pods.
    ask_volumes
        Asks a job log server how much room its volume has.
    drain_requests
        NVSentinel's requests to drain, by Kubernetes Node; none if they are not served, and None if not known yet.
    machines
        Has machines of bad Nodes rebooted or deleted; None if nobody may ask for that.
    now, clock
        The wall clock, and monotonic seconds.
    max_startup
        How many pods of a NodeSet may be starting, if its spec does not set it.
    patience
        How long a slurmd may run before it registers; then its pod is recreated.
    marking
        When it is written on pods themselves that they have registered.
    changes
        Counts what is done, for metrics.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        nodesets: Store,
        clusters: ClusterReader,
        pods: Store,
        revisions: Store,
        claims: Store,
        watch_hosts: bool,
        slurm: SlurmByCluster,
        recorder: Recorder,
        defaults: Defaults,
        ask_volumes: AskVolumes,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        drain_requests: Callable[[], Mapping[str, DrainRequest] | None] = dict,
        machines: Machines | None = None,
        max_startup: int = STARTUP,
        patience: timedelta = PATIENCE,
        marking: Marking = Marking(),  # noqa: B008 - frozen
        changes: Changes | None = None,
    ) -> None:
        super().__init__(NODESETS, nodesets, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._changes = changes or Changes()
        self._defaults = defaults
        self._ask_volumes = ask_volumes
        self._now = now
        self._clock = clock
        self._drain_requests = drain_requests
        self._machines = machines
        hosts = Hosts(now) if watch_hosts else None
        self._observer = Observer(
            nodesets,
            clusters,
            pods,
            revisions,
            claims,
            hosts,
            slurm,
            clock=clock,
            now=now,
            max_startup=max_startup,
            patience=patience,
            marking=marking,
        )
        self.expectations = Expectations(pods, clock=clock)
        """Add `expectations.observe` as the first handler of the pod informer."""
        self._guards: dict[str, str] = {}
        self._reserved = ReservedNames(clock)
        self._memory: dict[str, Memory] = {}
        self._steady: dict[str, Steady] = {}
        """Last passes that planned nothing, by uid: others like them are left out."""
        self.triggers = NodeSetTriggers(nodesets, clusters.store, pods, hosts, self._memory, self._forget, clock)
        """What triggers it: each handler returns the keys to reconcile."""

    @override
    async def read(self, obj: Object) -> NodeSet:
        await self._observer.prepare(obj)
        nodeset = self._observer.readings.nodeset(obj)
        memory = self._memory.get(nodeset.uid)
        await self._observer.read_ahead(nodeset, memory.registered if memory is not None else frozenset())
        return nodeset

    @override
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        stored = stored_status(NodeSetStatus, obj)
        return stored.as_stored(), status.invalid(None, stored, str(error), self._now()).to_dict()

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        uid = obj["metadata"]["uid"]
        if not self.expectations.satisfied(uid):
            return Postponed(self.expectations.expires_in(uid))
        nodeset = await self.parse(obj)
        if nodeset is None:
            return Result()
        memory = self._memory.setdefault(uid, Memory())
        cluster = self._observer.cluster(nodeset)
        slurm = self._observer.slurm(cluster)
        if memory.is_awaited(memory.follow_write(slurm), self._clock()):
            return Postponed(REQUEUE_AFTER_WRITE_S * 4, rest=REQUEUE_AFTER_WRITE_S)
        snapshot = self._observer.observe(
            nodeset,
            cluster_gone=cluster is None and await self._is_gone(nodeset),
            ended=memory.ended,
            unlisted=memory.unlisted(slurm),
            registered=memory.registered,
            guard=self._guards.get(uid, ""),
        )
        snapshot = replace(
            snapshot,
            drain_requests=self._drain_requests(),
            machine_rules=self._machines.rules if self._machines is not None else None,
            recorded=memory.recorded,
            steps=memory.steps,
            idle=running_steps.idle(memory.steps, self._now()),
            rooms=memory.rooms,
            checks=memory.checks,
            missing_keys=await self._missing_keys(nodeset, memory),
            checks_are_old=memory.are_checks_old(self._clock()),
            state_writes=memory.state_writes(self._clock()),
            refused_traits=memory.refused_traits(self._clock()),
        )
        rest = GATHERING * len(snapshot.pods)
        if (before := self._steady.pop(uid, None)) is not None and self._is_left_out(before, snapshot):
            now = self._followed(before, snapshot)
            counted = now.loads.shown_in(nodeset.status)
            if counted != nodeset.status:
                _ = await self.status.write(obj, nodeset.status.as_stored(), counted.to_dict())
            self._steady[uid] = now
            return Result(_with_keys(now.wakes_in(self._now()), snapshot), rest=rest)
        return Result(_with_keys(await self._whole_pass(obj, nodeset, snapshot, slurm, memory), snapshot), rest=rest)

    async def _missing_keys(self, nodeset: NodeSet, memory: Memory) -> tuple[MissingKeys, ...]:
        """What is missing of the Secrets that `spec.ssh` names; looked at once in a while."""
        named = ssh_secrets.wanted(nodeset)
        if memory.needs_keys(named, self._clock()):
            memory.note_keys(named, await ssh_secrets.missing(self._kube, nodeset.namespace, named), self._clock())
        return memory.missing_keys

    def _is_left_out(self, before: Steady, snapshot: Snapshot) -> bool:
        """Whether a pass only has to count nodes again."""
        return goes_on(before, snapshot, self._now())

    def _followed(self, before: Steady, snapshot: Snapshot) -> Steady:
        """The pass that is left out, with its counts."""
        return follow(before, snapshot)

    async def _whole_pass(
        self, obj: Object, nodeset: NodeSet, snapshot: Snapshot, slurm: Slurm | None, memory: Memory
    ) -> float | None:
        """Plan, act and report; returns the seconds until the next pass."""
        seen = await self._survey(snapshot, slurm, memory)
        snapshot, planned = seen.snapshot, await self._pure(seen.snapshot, plan, seen)
        states = sum(len(one.pods) for one in planned.actions if isinstance(one, ShowStates))
        memory.note_state_writes(states + planned.decisions.registrations.late)
        if slurm is not None and memory.needs_list(snapshot.unlisted.intersection(planned.decisions.waiting_for_slurm)):
            slurm.hurry()
        cluster = self._observer.cluster(nodeset)
        outcome = await Executor(self._context(nodeset, obj, cluster, slurm, snapshot)).carry_out(planned.actions)
        memory.note_checks(outcome.checks, self._clock())
        memory.note_traits(outcome.traits, self._clock())
        _note(memory, outcome, snapshot, slurm)
        rooms = memory.rooms if outcome.rooms else snapshot.rooms
        snapshot = snapshot.with_learnt(rooms, memory.refused_traits(self._clock()))
        if outcome.slurm_error is not None:
            snapshot = snapshot.blinded(slurm_queries.reason_of(outcome.slurm_error), str(outcome.slurm_error))
        told = (*outcome.refusals, *outcome.kept)
        failed = (
            ExceptionGroup(f"NodeSet {nodeset.namespace}/{nodeset.name}", outcome.errors) if outcome.errors else None
        )
        failure = None if failed is None else self.failures.note(obj, failed, told)
        if failed is None and (unsettled := memory.settles_in(snapshot, self._clock)) is not None:
            # Whether Slurm answers is known in a moment: until then the status from before the start is kept.
            return min(unsettled, SOON)
        if _lets_go(planned, outcome):
            return _next(planned, outcome)
        decided = _with_outcome(planned.decisions, outcome)
        wanted = await self._pure(snapshot, status.report, snapshot, decided, self._now(), told, failure)
        await self._report(obj, nodeset, wanted, memory)
        memory.registered = planned.decisions.registrations.uids
        if failed is not None:
            raise failed
        is_settled = outcome.slurm_error is None and not told
        is_settled = is_settled and not kubernetes_features.words_of(snapshot.refused_traits)
        found = steady(seen, planned, wanted.status) if is_settled else None
        if found is not None:
            self._steady[nodeset.uid] = found
        return _next(planned, outcome)

    async def _survey(self, snapshot: Snapshot, slurm: Slurm | None, memory: Memory) -> Survey:
        """Survey what exists, and again with the answers to what must be asked before anything is decided."""
        seen = await self._pure(snapshot, survey, snapshot, self._now())
        if seen.suspects:
            snapshot = await survey_queries.find_pods(self._kube, snapshot, seen.suspects)
            seen = await self._pure(snapshot, survey, snapshot, self._now())
        if seen.unheard and slurm is not None and memory.may_ask_for_nodes(self._clock()):
            snapshot = await survey_queries.ask_for_nodes(slurm, snapshot, seen.unheard)
            seen = await self._pure(snapshot, survey, snapshot, self._now())
        if seen.needs_jobs and slurm is not None:
            since = memory.orphaned_since(seen.reusable_names, self._clock())
            snapshot = await survey_queries.query_jobs(slurm, snapshot, since=since)
            seen = await self._pure(snapshot, survey, snapshot, self._now())
        return seen

    async def _pure(self, snapshot: Snapshot, rules: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run rules on a snapshot: all they read is frozen, so that long ones can run in a thread."""
        if max(len(snapshot.pods), snapshot.nodeset.spec.replicas or 0) < THREAD_THRESHOLD_PODS:
            return rules(*args, **kwargs)
        nodeset = snapshot.nodeset
        return await run_in_thread((nodeset.namespace, "NodeSet", nodeset.uid), rules, *args, **kwargs)

    def _context(
        self, nodeset: NodeSet, obj: Object, cluster: Cluster | None, slurm: Slurm | None, snapshot: Snapshot
    ) -> PassContext:
        return PassContext(
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
            clock=self._clock,
            machines=self._machines,
            changes=self._changes,
            recorded=snapshot.recorded,
            steps=snapshot.steps,
            rooms=snapshot.rooms,
            ask_volumes=self._ask_volumes,
        )

    async def _is_gone(self, nodeset: NodeSet) -> bool:
        """Whether the API server itself answers that the Cluster does not exist."""
        try:
            await self._kube.get(CLUSTERS, nodeset.spec.cluster_name, nodeset.namespace)
        except kube_errors.NotFound:
            return True
        return False

    async def _report(self, obj: Object, nodeset: NodeSet, wanted: status.Report, memory: Memory) -> None:
        """Write the status, then emit Events about new troubles."""
        _ = await self.status.write(obj, nodeset.status.as_stored(), wanted.status.to_dict())
        for trouble in trouble_events.due(memory, nodeset.status, wanted.troubles):
            self._recorder.warning(obj, str(trouble.reason), trouble.text)

    def _forget(self, uid: str) -> None:
        self.expectations.forget(uid)
        self.failures.passed(uid)
        self._observer.forget(uid)
        self._reserved.release(uid)
        self._guards.pop(uid, None)
        self._memory.pop(uid, None)
        self._steady.pop(uid, None)


def _note(memory: Memory, outcome: PassOutcome, snapshot: Snapshot, slurm: Slurm | None) -> None:
    """Remember what a pass has learnt."""
    memory.note(outcome.told_slurm_at, outcome.recorded)
    memory.note_steps(outcome.steps, snapshot.pods)
    memory.note_rooms(outcome.rooms, snapshot.pods)
    if slurm is not None:
        nodeset = snapshot.nodeset
        slurm.show_output(nodeset.name, None if nodeset.deleting else output_room.least(memory.rooms))


def _with_outcome(decisions: Decisions, outcome: PassOutcome) -> Decisions:
    """The decisions, with what their execution has shown."""
    found = replace(decisions, named={**decisions.named, **outcome.named})
    if found.replacement is None or not outcome.machines:
        return found
    waits = {**found.replacement.waits, **outcome.machines}
    return replace(found, replacement=replace(found.replacement, waits=waits))


def _with_keys(wake_up: float | None, snapshot: Snapshot) -> float | None:
    """Seconds until the next pass; without an event one is due while a Secret with keys may come."""
    if not snapshot.missing_keys:
        return wake_up
    return ssh_keys.AGAIN if wake_up is None else min(wake_up, ssh_keys.AGAIN)


def _next(planned: Plan, outcome: PassOutcome) -> float | None:
    """Seconds until the next pass."""
    times = [planned.wake_up] if planned.wake_up is not None else []
    if outcome.slurm_error is not None:
        times.append(RETRY_SLURM_S)
    elif outcome.acted:
        times.append(REQUEUE_AFTER_WRITE_S)
    if outcome.refusals or any(one is not None and one.why for one in outcome.traits.values()):
        # The same would be refused again; removing the cause usually triggers a pass. A deadline is not delayed.
        times = [LATER, *([max(planned.wake_up, SOON)] if planned.wake_up is not None else [])]
    elif outcome.kept or outcome.named:
        times = [max(one, 1.0) for one in times] or [LATER]
    return min(times, default=None)


def _lets_go(planned: Plan, outcome: PassOutcome) -> bool:
    """Whether the NodeSet has been released: it may be gone, and there is nothing to report."""
    asked_for = any(isinstance(action, RemoveFinalizer) for action in planned.actions)
    is_kept = outcome.kept or outcome.named
    return asked_for and not outcome.errors and not is_kept and outcome.slurm_error is None
